// The session in which a relay asks the tables of an outbox: opened again when lost, in the
// schema that the tables are in.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "postgres/connection.h"

namespace hapax::postgres {

class OutboxSession {
 public:
  // `forget` is called whenever a connection is about to be made, the first included. Y8: it may be
  // to another server, or to a history that this one has lost, so nothing known before counts.
  OutboxSession(std::string uri, std::string schema, ConnectOptions options,
                std::function<void()> forget);
  OutboxSession(const OutboxSession&) = delete;
  OutboxSession& operator=(const OutboxSession&) = delete;

  [[nodiscard]] Status connect();
  [[nodiscard]] Status reconnect();  // if the connection is lost
  // Another connection to the same server, under this name.
  [[nodiscard]] Result<Connection> open_beside(const std::string& name) const;

  [[nodiscard]] Result<Rows> ask(const Query& question);
  [[nodiscard]] Result<Rows> ask(const std::string& sql, const Values& values);  // with {schema}
  // Never on a new connection: what the questions say of lanes would be forgotten meanwhile.
  // REQUIRES: reconnect() said Ok.
  [[nodiscard]] Result<std::pair<Rows, Rows>> ask_both(const Query& first, const Query& second);

  [[nodiscard]] std::string named(std::string_view sql) const;  // with the schema in it
  [[nodiscard]] Status check_version(std::uint32_t needs);      // REQUIRES: connect() said Ok.
  [[nodiscard]] std::uint64_t questions() const { return questions_; }

 private:
  const std::string uri_;
  const std::string schema_;
  const ConnectOptions options_;
  const std::function<void()> forget_;
  std::optional<Connection> connection_;
  std::uint64_t questions_ = 0;
};

}  // namespace hapax::postgres
