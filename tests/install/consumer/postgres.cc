// A stranger who has libpq and hapax::postgres.

#include <libpq-fe.h>

#include <hapax/inbox.h>
#include <hapax/outbox.h>
#include <hapax/postgres.h>

int main() {
  PGconn* connection = PQconnectdb("host=/nowhere");
  const auto database = hapax::on_postgres(connection);
  PQfinish(connection);
  return database.ok() ? 1 : 0;  // Nobody is there, which is an error and no crash.
}
