#include "http_store.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "answer_json.h"
#include "base/format.h"
#include "behind.h"
#include "http/session.h"
#include "op_json.h"
#include "rest/api.h"
#include "rest/problem.h"
#include "rest/router.h"
#include "store_contract.h"

namespace hapax::contract {

namespace {

// --- the server's side

class HttpRooms {
 public:
  explicit HttpRooms(access::Entry& entry) {
    rest::add_store_routes(router_, entry, "outbox_events", wire::Callers::kAnybody);
    limits_.parser.body_bytes_max = std::size_t{64} << 20;  // More than the largest commit.
  }

  std::shared_ptr<net::Session> session(net::Link& link) {
    return std::make_shared<http::Session>(link, limits_, handler_);
  }

 private:
  void handle(const std::shared_ptr<http::Exchange>& exchange) {
    if (const auto& refusal = exchange->refusal())
      return exchange->respond(rest::problem_response(*refusal));
    rest::Router::Found found = router_.find(exchange->request().method, exchange->request().path);
    if (found.route == nullptr) {
      return exchange->respond(rest::problem_response(http::Problem{404, "there is nothing"}));
    }
    auto call = std::make_shared<rest::Call>();
    call->exchange = exchange;
    call->admission.caller = {{"", std::string(access::kAnybody), access::Rights::all()}};
    call->names = std::move(found.names);
    found.route->act(call);
  }

  rest::Router router_;
  http::SessionLimits limits_;
  const http::Handler handler_ = [this](const std::shared_ptr<http::Exchange>& exchange) {
    handle(exchange);
  };
};

// --- the client's side

struct Reply {
  std::string head;
  std::string body;

  [[nodiscard]] std::optional<std::string> field(std::string_view name) const {
    const std::size_t at = head.find("\r\n" + std::string(name) + ": ");
    if (at == std::string::npos) return std::nullopt;
    const std::size_t from = at + name.size() + 4;
    return head.substr(from, head.find("\r\n", from) - from);
  }
  [[nodiscard]] bool problem() const { return field("Content-Type") == "application/problem+json"; }
};

std::optional<Reply> exchange(Socket& socket, const OpCall& call,
                              std::optional<std::string_view> id) {
  std::string request = call.method + " /api/v1" + call.target + " HTTP/1.1\r\nHost: h\r\n";
  if (id) request.append("Idempotency-Key: ").append(*id).append("\r\n");
  request.append("Content-Type: application/json\r\nContent-Length: ");
  request.append(std::to_string(call.body.size())).append("\r\n\r\n").append(call.body);
  if (!socket.send(request)) return std::nullopt;
  auto head = socket.take_until("\r\n\r\n");
  if (!head) return std::nullopt;
  Reply reply{*std::move(head), ""};
  const auto size = reply.field("Content-Length");
  auto body = size ? socket.take(std::stoul(*size)) : std::nullopt;
  if (!body) return std::nullopt;
  reply.body = *std::move(body);
  if (reply.field("Connection") == "close") socket.close();
  return reply;
}

// What may stand in the header field without quotes.
bool plain(std::string_view id) {
  return !id.empty() && id.size() <= limits::kMessageIdBytesMax &&
         std::all_of(id.begin(), id.end(),
                     [](char c) { return c > ' ' && c < '\x7f' && c != ',' && c != '"'; });
}

bool has_own_route(const Commit& commit) {
  return commit.ops.size() == 1 && commit.mode == Mode::kAtomic && !commit.transaction &&
         commit.id_window == limits::kWindowDefault && (!commit.id || plain(*commit.id));
}

Time decided_at(const Reply& reply) {
  return time_from_ms(std::stoll(reply.field("Hapax-Time-Ms").value_or("0")));
}

// One operation, told by its own route.
Answer answer_of_one(const Reply& reply, const Json& json) {
  const bool refused = reply.field("Hapax-Verdict") == "refused";
  if (refused) return {.time = decided_at(reply), .verdicts = {Refused{error_from(json)}}};
  Answer answer = one_answer_from(json);
  if (json.find("verdicts") != nullptr) return answer;
  answer.repeated = reply.field("Idempotent-Replayed") == "true";
  answer.time = decided_at(reply);
  return answer;
}

class HttpStore final : public Store {
 public:
  explicit HttpStore(std::unique_ptr<Store> store)
      : behind_(std::move(store)), rooms_(behind_.entry()) {
    behind_.start([this](net::Link& link) { return rooms_.session(link); });
  }
  ~HttpStore() override {
    pool_.close();  // The server waits for clients to close their side.
    behind_.stop();
  }

  // By the route of the operation if there is one, else by /commit.
  Result<Answer> commit(const Commit& commit) override {
    if (has_own_route(commit)) {
      if (const auto own = call_of(commit.ops.front())) return commit_one(*own, commit.id);
    }
    HAPAX_TRY(const Json json, json_of_call({"POST", "/commit", json_of(commit)}));
    return answer_from(json);
  }
  // A door has no second way to ask: the caller waits.
  void submit(const Commit& commit, Done done) override { done(this->commit(commit)); }

  Result<Records> read(const ReadRange& range) override {
    HAPAX_TRY(const Json json, get(base::format("/streams/{}/records?from={}&max={}&bytes_max={}",
                                                escaped(range.stream), range.from.value, range.max,
                                                range.bytes_max)));
    return records_from(json);
  }
  Result<std::optional<IdStatus>> find_id(std::string_view stream, std::string_view id,
                                          std::optional<std::string_view> group) override {
    const std::string target = "/streams/" + escaped(stream) + "/ids/" + escaped(id);
    HAPAX_CHECK(describe(stream));  // "No such stream" is an error, "no such id" is none.
    return found(group ? target + "?group=" + escaped(*group) : target, id_from);
  }
  Result<std::optional<ClaimStatus>> find_claim(std::string_view scope,
                                                std::string_view key) override {
    return found("/claims/" + escaped(scope) + "/" + escaped(key), claim_from);
  }
  Result<std::optional<RegisterValue>> find_register(std::string_view name) override {
    return found("/registers/" + escaped(name), register_from);
  }
  Result<RegisterPage> scan_registers(const RegisterScan& scan) override {
    HAPAX_TRY(const Json json, get(base::format("/registers?cursor={}&max={}&prefix={}",
                                                scan.cursor, scan.max, escaped(scan.prefix))));
    return register_page_from(json);
  }
  Result<std::optional<Position>> find_position(std::string_view source) override {
    return found("/positions/" + escaped(source), position_from);
  }
  Result<std::optional<ProducerStatus>> find_producer(std::string_view stream,
                                                      std::string_view producer) override {
    HAPAX_CHECK(describe(stream));
    return found("/streams/" + escaped(stream) + "/producers/" + escaped(producer), producer_from);
  }
  Result<StreamStats> describe(std::string_view stream) override {
    HAPAX_TRY(const Json json, get("/streams/" + escaped(stream)));
    return stream_from(json);
  }
  Result<std::vector<std::string>> streams() override {
    HAPAX_TRY(const Json json, get("/streams"));
    return streams_from(json);
  }
  Result<Statistics> statistics() override {
    HAPAX_TRY(const Json json, get("/statistics"));
    return statistics_from(json);
  }

 private:
  Result<Answer> commit_one(const OpCall& own, std::optional<std::string_view> id) {
    HAPAX_TRY(const Reply reply, call(own, id));
    HAPAX_TRY(const Json json, wire::read_strict_json(reply.body));
    const bool decided = reply.field("Hapax-Verdict") || json.find("verdicts") != nullptr;
    if (!decided) return error_from(json);
    return answer_of_one(reply, json);
  }

  Result<Json> get(const std::string& target) { return json_of_call({"GET", target, ""}); }

  template <class Value>
  Result<std::optional<Value>> found(const std::string& target, Value (*from)(const Json&)) {
    auto json = get(target);
    if (json) return std::optional<Value>(from(*json));
    if (json.error().code == Errc::kNotFound) return std::optional<Value>();
    return std::move(json).error();
  }

  Result<Json> json_of_call(const OpCall& one) {
    HAPAX_TRY(const Reply reply, call(one, std::nullopt));
    HAPAX_TRY(Json json, wire::read_strict_json(reply.body));
    if (reply.problem()) return error_from(json);
    return json;
  }
  Result<Reply> call(const OpCall& one, std::optional<std::string_view> id) {
    std::unique_ptr<Socket> socket = pool_.take(behind_.port());
    auto reply = exchange(*socket, one, id);
    pool_.give_back(std::move(socket));
    if (!reply) return Error{Errc::kShuttingDown, "the connection is lost"};
    return *std::move(reply);
  }

  Behind behind_;
  HttpRooms rooms_;
  Pool pool_;
};

}  // namespace

Result<std::unique_ptr<Store>> open_behind_http(const std::filesystem::path& folder) {
  HAPAX_TRY(std::unique_ptr<Store> store, open_small_embedded(folder));
  return std::unique_ptr<Store>(std::make_unique<HttpStore>(std::move(store)));
}

std::string not_through_a_door(std::string_view test) {
  const std::string_view name = test.substr(0, test.find('/'));
  if (name == "AnAnswerMaySubmitHoweverFullTheQueueIs" || name == "SubmittingNeverWaitsForRoom") {
    return "it is about submit(), which no door has: a client waits for its answer";
  }
  if (name.starts_with("Watch")) return "it is about watch(), for clients of a door that wait";
  return {};
}

}  // namespace hapax::contract
