#include "resp_store.h"

#include <charconv>
#include <utility>

#include "access/authenticator.h"
#include "access/gatherer.h"
#include "answer_json.h"
#include "base/format.h"
#include "behind.h"
#include "op_command.h"
#include "resp/session.h"
#include "store_contract.h"

namespace hapax::contract {

namespace {

// --- the server's side

class OpenAuthenticator final : public access::Authenticator {
 public:
  Result<access::Admission> authenticate(std::string_view, std::string_view) override {
    return Error{Errc::kUnauthenticated, "nobody signs in here"};
  }
  bool holds(const access::Admission&) override { return true; }
  const std::optional<access::Caller>& anybody() const override { return anybody_; }

 private:
  const std::optional<access::Caller> anybody_ =
      access::Caller{{"", std::string(access::kAnybody), access::Rights::all()}};
};

// --- the client's side

std::string request_of(const Words& words) {
  std::string out = base::format("*{}\r\n", words.size());
  for (const std::string& word : words) {
    base::append_format(out, "${}\r\n{}\r\n", word.size(), word);
  }
  return out;
}

// What went wrong, from "ERR HX1003 not_found: …".
Error error_of(std::string_view line) {
  const std::size_t at = line.find("HX1");
  const std::size_t colon = line.find(": ", at == std::string_view::npos ? 0 : at);
  if (at == std::string_view::npos || colon == std::string_view::npos) {
    return {Errc::kInvalidArgument, std::string(line)};
  }
  std::uint16_t number = 0;
  std::from_chars(line.data() + at + 2, line.data() + colon, number);
  return {static_cast<Errc>(number), std::string(line.substr(colon + 2))};
}

Error lost() { return {Errc::kShuttingDown, "the connection is lost"}; }

// A reply of RESP3, as JSON would have it; bytes as they are.
class ReplyReader {
 public:
  explicit ReplyReader(Socket& socket) : socket_(socket) {}

  Result<Json> read() {
    auto line = socket_.take_until("\r\n");
    if (!line) return lost();
    line->resize(line->size() - 2);
    const std::string_view rest = std::string_view(*line).substr(1);
    switch (line->front()) {
      case '+':
        return Json{std::string(rest)};
      case '-':
        return error_of(rest);
      case ':':
        return Json{number(rest)};
      case '#':
        return Json{rest == "t"};
      case '_':
        return Json{};
      case '$':
        return bulk(static_cast<std::size_t>(number(rest)));
      case '*':
        return list(number(rest));
      case '%':
        return map(number(rest));
      default:
        return Error{Errc::kInvalidArgument, "an unknown reply: " + *line};
    }
  }

 private:
  static std::int64_t number(std::string_view text) {
    std::int64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
  }
  Result<Json> bulk(std::size_t size) {
    auto bytes = socket_.take(size + 2);
    if (!bytes) return lost();
    bytes->resize(size);
    return Json{*std::move(bytes)};
  }
  Result<Json> list(std::int64_t size) {
    Json::Array all;
    for (std::int64_t i = 0; i < size; ++i) {
      HAPAX_TRY(Json one, read());
      all.push_back(std::move(one));
    }
    return Json{std::move(all)};
  }
  Result<Json> map(std::int64_t size) {
    Json::Object all;
    for (std::int64_t i = 0; i < size; ++i) {
      HAPAX_TRY(const Json name, read());
      HAPAX_TRY(Json value, read());
      all.push_back({*name.get<std::string>(), std::move(value)});
    }
    return Json{std::move(all)};
  }

  Socket& socket_;
};

void greet(Socket& socket) {
  if (!socket.send(request_of({"HELLO", "3"}))) return;
  if (!ReplyReader(socket).read()) socket.close();
}

class RespStore final : public Store {
 public:
  explicit RespStore(std::unique_ptr<Store> store)
      : behind_(std::move(store)), context_{behind_.entry(), authenticator_, "tests", {}} {
    behind_.start([this](net::Link& link) -> std::shared_ptr<net::Session> {
      return std::make_shared<resp::Session>(link, context_, *gatherer_);
    });
    gatherer_.emplace(behind_.entry(), behind_.loop());
  }
  ~RespStore() override {
    pool_.close();
    behind_.stop();
  }

  Result<Answer> commit(const Commit& commit) override {
    const bool alone =
        commit.ops.size() == 1 && commit.mode == Mode::kAtomic && !commit.id && !commit.transaction;
    return alone ? commit_one(commit.ops.front()) : commit_many(commit);
  }
  // A door has no second way to ask: the caller waits.
  void submit(const Commit& commit, Done done) override { done(this->commit(commit)); }

  Result<Records> read(const ReadRange& range) override {
    return told({"HX.READ", std::string(range.stream), "FROM", std::to_string(range.from.value),
                 "MAX", std::to_string(range.max), "BYTES_MAX", std::to_string(range.bytes_max)},
                records_from);
  }
  Result<std::optional<IdStatus>> find_id(std::string_view stream, std::string_view id,
                                          std::optional<std::string_view> group) override {
    Words words{"HX.FIND_ID", std::string(stream), std::string(id)};
    if (group) words.insert(words.end(), {"GROUP", std::string(*group)});
    return found(words, id_from);
  }
  Result<std::optional<ClaimStatus>> find_claim(std::string_view scope,
                                                std::string_view key) override {
    return found({"HX.FIND_CLAIM", std::string(scope), std::string(key)}, claim_from);
  }
  Result<std::optional<RegisterValue>> find_register(std::string_view name) override {
    return found({"HX.FIND_REGISTER", std::string(name)}, register_from);
  }
  Result<RegisterPage> scan_registers(const RegisterScan& scan) override {
    return told({"HX.SCAN_REGISTERS", std::to_string(scan.cursor), "MAX", std::to_string(scan.max),
                 "PREFIX", std::string(scan.prefix)},
                register_page_from);
  }
  Result<std::optional<Position>> find_position(std::string_view source) override {
    return found({"HX.FIND_POSITION", std::string(source)}, position_from);
  }
  Result<std::optional<ProducerStatus>> find_producer(std::string_view stream,
                                                      std::string_view producer) override {
    return found({"HX.FIND_PRODUCER", std::string(stream), std::string(producer)}, producer_from);
  }
  Result<StreamStats> describe(std::string_view stream) override {
    return told({"HX.DESCRIBE", std::string(stream)}, stream_from);
  }
  Result<std::vector<std::string>> streams() override {
    HAPAX_TRY(const Json list, call({"HX.STREAMS"}));
    std::vector<std::string> names;
    for (const Json& one : *list.get<Json::Array>()) names.push_back(*one.get<std::string>());
    return names;
  }
  Result<Statistics> statistics() override { return told({"HX.STATISTICS"}, statistics_from); }

 private:
  Result<Answer> commit_one(const Op& op) {
    HAPAX_TRY(const Json json, call(command_of(op)));
    return one_answer_from(json);
  }

  // MULTI, HX.COMMIT, the operations, EXEC: sent as one, answered one by one.
  Result<Answer> commit_many(const Commit& commit) {
    std::string request = request_of({"MULTI"}) + request_of(commit_command(commit));
    for (const Op& op : commit.ops) request += request_of(command_of(op));
    request += request_of({"EXEC"});
    std::unique_ptr<Socket> socket = pool_.take(behind_.port());
    if (!socket->send(request)) return lost();
    std::optional<Error> wrong;
    ReplyReader reader(*socket);
    for (std::size_t i = 0; i < commit.ops.size() + 2 && socket->good(); ++i) {
      const auto queued = reader.read();
      if (!queued && !wrong) wrong = queued.error();
    }
    const Result<Json> done = reader.read();
    pool_.give_back(std::move(socket));
    if (wrong) return *wrong;
    if (!done) return done.error();
    return answer_from(*done);
  }

  template <class Value>
  Result<Value> told(const Words& words, Value (*from)(const Json&)) {
    HAPAX_TRY(const Json json, call(words));
    return from(json);
  }
  template <class Value>
  Result<std::optional<Value>> found(const Words& words, Value (*from)(const Json&)) {
    HAPAX_TRY(const Json json, call(words));
    if (json.get<std::monostate>() != nullptr) return std::optional<Value>();
    return std::optional<Value>(from(json));
  }

  Result<Json> call(const Words& words) {
    std::unique_ptr<Socket> socket = pool_.take(behind_.port());
    if (!socket->send(request_of(words))) return lost();
    Result<Json> reply = ReplyReader(*socket).read();
    pool_.give_back(std::move(socket));
    return reply;
  }

  Behind behind_;
  OpenAuthenticator authenticator_;
  resp::SessionContext context_;
  std::optional<access::Gatherer> gatherer_;
  Pool pool_{greet};
};

}  // namespace

Result<std::unique_ptr<Store>> open_behind_resp(const std::filesystem::path& folder) {
  HAPAX_TRY(std::unique_ptr<Store> store, open_small_embedded(folder));
  return std::unique_ptr<Store>(std::make_unique<RespStore>(std::move(store)));
}

}  // namespace hapax::contract
