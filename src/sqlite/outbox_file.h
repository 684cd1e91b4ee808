// The tables of an outbox in an SQLite file, as a relay asks them: with their prefix, and many
// statements in one transaction.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sqlite/connection.h"

namespace hapax::sqlite {

class OutboxFile {
 public:
  // The file must be there, with the tables up to version `needs`: a relay makes none.
  [[nodiscard]] static Result<OutboxFile> open(const std::string& path, std::string prefix,
                                               std::uint32_t needs);

  [[nodiscard]] Status check_version(std::uint32_t needs);
  [[nodiscard]] Result<std::vector<Row>> ask(std::string_view sql,  // with {prefix}
                                             const std::vector<Value>& values);
  // Runs `act` in a transaction that writes; an error undoes it.
  template <class Act>
  [[nodiscard]] Status in_write(const Act& act) {
    HAPAX_CHECK(connection_.run("BEGIN IMMEDIATE"));
    Status done = act();
    if (done) done = connection_.run("COMMIT");
    if (!done && connection_.in_transaction()) {
      ignore(connection_.run("ROLLBACK"), "the first error is told");
    }
    return done;
  }

 private:
  OutboxFile(Connection connection, std::string prefix)
      : connection_(std::move(connection)), prefix_(std::move(prefix)) {}

  Connection connection_;
  std::string prefix_;
};

}  // namespace hapax::sqlite
