#include "http_store.h"

#include <cstring>
#include <mutex>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "answer_json.h"
#include "front/desk.h"
#include "http/api.h"
#include "http/problem.h"
#include "http/router.h"
#include "http/session.h"
#include "net/server.h"
#include "op_json.h"
#include "store_contract.h"

namespace hapax::contract {

namespace {

// --- the server's side

class Behind {
 public:
  explicit Behind(std::unique_ptr<Store> store)
      : store_(std::move(store)), desk_(std::make_unique<front::Desk>(*store_, 4)) {
    http::add_store_routes(router_, *desk_);
    net::Endpoint endpoint{"127.0.0.1:0",
                           [this](net::Link& link) -> std::shared_ptr<net::Session> {
                             return std::make_shared<http::Session>(link, limits_, handler_);
                           },
                           std::nullopt};
    server_ = std::move(net::Server::open({endpoint}, 1, {})).value();
    server_->start();
  }
  ~Behind() { server_->stop(std::chrono::seconds{10}); }
  Behind(const Behind&) = delete;
  Behind& operator=(const Behind&) = delete;

  [[nodiscard]] std::uint16_t port() const {
    const std::string address = server_->addresses().front();
    return static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
  }

 private:
  void handle(const std::shared_ptr<http::Exchange>& exchange) {
    http::Router::Found found = router_.find(exchange->request().method, exchange->request().path);
    if (found.route == nullptr) {
      return exchange->respond(http::problem_response(http::Problem{404, "there is nothing"}));
    }
    auto call = std::make_shared<http::Call>();
    call->exchange = exchange;
    call->caller = {"", "tests", front::Rights::all()};
    call->names = std::move(found.names);
    found.route->act(call);
  }

  std::unique_ptr<Store> store_;
  std::unique_ptr<front::Desk> desk_;
  http::Router router_;
  http::SessionLimits limits_;
  const http::Handler handler_ = [this](const std::shared_ptr<http::Exchange>& exchange) {
    handle(exchange);
  };
  std::unique_ptr<net::Server> server_;
};

// --- the client's side

class Connection {
 public:
  explicit Connection(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int on = 1;
    ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    good_ = ::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  ~Connection() { ::close(socket_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  [[nodiscard]] bool good() const { return good_; }

  struct Reply {
    bool problem = false;
    std::string body;
  };
  // Nothing if the connection is lost.
  std::optional<Reply> call(std::string_view method, std::string_view target,
                            std::string_view body) {
    std::string request(method);
    request.append(" ").append(target).append(" HTTP/1.1\r\nHost: h\r\n");
    request.append("Content-Type: application/json\r\nContent-Length: ");
    request.append(std::to_string(body.size())).append("\r\n\r\n").append(body);
    if (!good_ || !send(request)) return std::nullopt;
    const auto head = read_head();
    if (!head) return std::nullopt;
    Reply reply;
    good_ = head->find("Connection: close") == std::string::npos;
    reply.problem = head->find("application/problem+json") != std::string::npos;
    const std::size_t at = head->find("Content-Length: ");
    if (at == std::string::npos) return std::nullopt;
    if (!fill(std::stoul(head->substr(at + 16)))) return std::nullopt;
    const std::size_t size = std::stoul(head->substr(at + 16));
    reply.body = in_.substr(0, size);
    in_.erase(0, size);
    return reply;
  }

 private:
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }
  bool more() {
    char piece[65'536];
    const ssize_t count = ::recv(socket_, piece, sizeof piece, 0);
    if (count <= 0) return false;
    in_.append(piece, static_cast<std::size_t>(count));
    return true;
  }
  bool fill(std::size_t size) {
    while (in_.size() < size) {
      if (!more()) return false;
    }
    return true;
  }
  std::optional<std::string> read_head() {
    std::size_t end = 0;
    while ((end = in_.find("\r\n\r\n")) == std::string::npos) {
      if (!more()) return std::nullopt;
    }
    std::string head = in_.substr(0, end + 4);
    in_.erase(0, end + 4);
    return head;
  }

  const int socket_;
  bool good_ = false;
  std::string in_;
};

std::string escaped(std::string_view name) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    out.push_back('%');
    out.push_back(kDigits[byte / 16]);
    out.push_back(kDigits[byte % 16]);
  }
  return out;
}

class HttpStore final : public Store {
 public:
  explicit HttpStore(std::unique_ptr<Store> store) : behind_(std::move(store)) {}

  Result<Answer> commit(const Commit& commit) override {
    HAPAX_TRY(const Json json, call("POST", "/commit", json_of(commit)));
    return answer_from(json);
  }
  // A door has no second way to ask: the caller waits.
  void submit(const Commit& commit, Done done) override { done(this->commit(commit)); }

  Result<Records> read(const ReadRange& range) override {
    HAPAX_TRY(const Json json, get("/streams/" + escaped(range.stream) +
                                   "/records?from=" + std::to_string(range.from.value) +
                                   "&max=" + std::to_string(range.max)));
    return records_from(json);
  }
  Result<std::optional<IdStatus>> find_id(std::string_view stream, std::string_view id,
                                          std::string_view group) override {
    const std::string target = "/streams/" + escaped(stream) + "/ids/" + escaped(id);
    HAPAX_CHECK(describe(stream));  // "No such stream" is an error, "no such id" is none.
    return found(group.empty() ? target : target + "?group=" + escaped(group), id_from);
  }
  Result<std::optional<ClaimStatus>> find_claim(std::string_view scope,
                                                std::string_view key) override {
    return found("/claims/" + escaped(scope) + "/" + escaped(key), claim_from);
  }
  Result<std::optional<RegisterValue>> find_register(std::string_view name) override {
    return found("/registers/" + escaped(name), register_from);
  }
  Result<RegisterPage> scan_registers(const RegisterScan&) override {
    return Error{Errc::kUnavailable, "registers are not scanned over HTTP"};
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
  Result<Json> get(const std::string& target) { return call("GET", target, ""); }

  template <class Value>
  Result<std::optional<Value>> found(const std::string& target, Value (*from)(const Json&)) {
    auto json = get(target);
    if (json) return std::optional<Value>(from(*json));
    if (json.error().code == Errc::kNotFound) return std::optional<Value>();
    return std::move(json).error();
  }

  Result<Json> call(std::string_view method, const std::string& target, const std::string& body) {
    std::unique_ptr<Connection> connection = take();
    const auto reply = connection->call(method, "/api/v1" + target, body);
    if (!reply) return Error{Errc::kShuttingDown, "the connection is lost"};
    if (connection->good()) give_back(std::move(connection));
    HAPAX_TRY(Json json, wire::read_strict_json(reply->body));
    if (reply->problem) return error_from(json);
    return json;
  }

  std::unique_ptr<Connection> take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return std::make_unique<Connection>(behind_.port());
    std::unique_ptr<Connection> last = std::move(free_.back());
    free_.pop_back();
    return last;
  }
  void give_back(std::unique_ptr<Connection> connection) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(connection));
  }

  Behind behind_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Connection>> free_;
};

constexpr std::pair<std::string_view, std::string_view> kNotThroughHttp[] = {
    {"AContentIdIsTheSha256OfThePayload", "an id in JSON is UTF-8"},
    {"AnIdIsAnyBytesFromOneTo255", "an id in JSON is UTF-8"},
    {"KeysAndScopesAreAnyBytesAndDoNotMeet", "a key in JSON is UTF-8"},
    {"ARangeEndsWhenItsBytesAreFullButHasAtLeastOne", "the server chooses bytes_max"},
    {"OfACommit", "the limit of an HTTP body is met before that of a commit"},
    {"AnAnswerMaySubmitHoweverFullTheQueueIs", "a door has no submit"},
    {"NamesThatBeginWithADollarAreTheStoresOwn", "the door refuses them before the store can"},
    {"OfRegisters", "get, unset, expire and add are told by /commit only"},
};

}  // namespace

Result<std::unique_ptr<Store>> open_behind_http(const std::filesystem::path& folder) {
  HAPAX_TRY(std::unique_ptr<Store> store, open_small_embedded(folder));
  return std::unique_ptr<Store>(std::make_unique<HttpStore>(std::move(store)));
}

std::string not_through_http(std::string_view test) {
  for (const auto& [name, reason] : kNotThroughHttp) {
    if (test.substr(0, test.find('/')) == name) return std::string(reason);
  }
  return {};
}

}  // namespace hapax::contract
