#include <utility>

#include <hapax/database.h>

#include "tables/tables.h"

namespace hapax {

Database::Database(std::unique_ptr<tables::Tables> tables) : tables_(std::move(tables)) {}
Database::~Database() = default;

bool Database::in_transaction() const { return tables_->in_transaction(); }

Status Database::with_transaction(const std::function<Status()>& work) {
  return in_transaction() ? in_savepoint(work) : in_own_transaction(work);
}

Status Database::in_own_transaction(const std::function<Status()>& work) {
  constexpr std::string_view kWhy = "the work has failed; a lost connection undoes it, too";
  HAPAX_CHECK(tables_->begin());
  Status done = Ok{};
  try {
    done = work();
  } catch (...) {
    if (in_transaction()) ignore(tables_->run("ROLLBACK"), kWhy);
    throw;
  }
  if (!done) {
    if (in_transaction()) ignore(tables_->run("ROLLBACK"), kWhy);
    return done;
  }
  return tables_->commit();
}

Status Database::in_savepoint(const std::function<Status()>& work) {
  constexpr const char* kUndo = "ROLLBACK TO SAVEPOINT hapax";
  constexpr const char* kRelease = "RELEASE SAVEPOINT hapax";
  HAPAX_CHECK(tables_->run("SAVEPOINT hapax"));
  const auto undo = [&] {
    if (!tables_->run(kUndo)) return;  // The connection is lost, and with it the transaction.
    ignore(tables_->run(kRelease), "the savepoint is empty now");
  };
  Status done = Ok{};
  try {
    done = work();
    if (done) done = tables_->run(kRelease);
  } catch (...) {
    undo();
    throw;
  }
  if (!done) undo();
  return done;
}

}  // namespace hapax
