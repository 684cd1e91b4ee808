#include "net/server.h"

#include <condition_variable>
#include <optional>
#include <utility>

#include <boost/asio/ssl/context.hpp>

#include "base/mutex.h"
#include "net/address.h"
#include "net/asio_loop.h"
#include "net/carriers.h"

namespace hapax::net {

namespace {

using boost::system::error_code;
using SharedTls = std::shared_ptr<asio::ssl::context>;

constexpr std::chrono::milliseconds kAcceptPause{100};
constexpr std::chrono::milliseconds kDrainGrain{10};

Result<SharedTls> load_tls(const TlsFiles& files) {
  auto tls = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_server);
  const auto failed = [](const std::string& path, const error_code& error) {
    return Error{Errc::kInvalidArgument, "cannot use " + path + " for TLS: " + error.message() +
                                             "; a PEM file is expected"};
  };
  error_code error;
  tls->set_options(asio::ssl::context::default_workarounds | asio::ssl::context::no_sslv2 |
                   asio::ssl::context::no_sslv3 | asio::ssl::context::no_tlsv1 |
                   asio::ssl::context::no_tlsv1_1);
  // Of TLS 1.2 only what keeps a recorded conversation secret although the key is lost later, and
  // seals each record as a whole. TLS 1.3 has nothing else.
  if (SSL_CTX_set_cipher_list(tls->native_handle(), "ECDHE+AESGCM:ECDHE+CHACHA20") != 1) {
    return Error{Errc::kUnavailable, "OpenSSL knows none of the cipher suites of TLS 1.2"};
  }
  tls->use_certificate_chain_file(files.certificate, error);
  if (error) return failed(files.certificate, error);
  tls->use_private_key_file(files.key, asio::ssl::context::pem, error);
  if (error) return failed(files.key, error);
  if (SSL_CTX_check_private_key(tls->native_handle()) != 1) {
    return Error{
        Errc::kInvalidArgument,
        "the key " + files.key + " does not belong to the certificate " + files.certificate};
  }
  return tls;
}

}  // namespace

Status check_tls(const TlsFiles& files) {
  HAPAX_CHECK(load_tls(files));
  return Ok{};
}

namespace {

// One door. Its acceptor lives on the loop that is given, its connections on `loops`.
class Listener {
 public:
  Listener(Endpoint endpoint, AsioLoop& door, std::vector<AsioLoop*> loops)
      : endpoint_(std::move(endpoint)),
        loops_(std::move(loops)),
        acceptor_(door.context()),
        pause_(door.context()) {}

  Status open() {
    if (endpoint_.tls) HAPAX_CHECK(reload());
    HAPAX_TRY(const Address address, parse_address(endpoint_.address));
    const tcp::endpoint where(asio::ip::make_address(address.host), address.port);
    error_code error;
    acceptor_.open(where.protocol(), error);
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(where, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (error) {
      return Error{Errc::kUnavailable,
                   "cannot listen on " + address.text() + ": " + error.message() +
                       "; choose another address, or stop the process that has it"};
    }
    const tcp::endpoint bound = acceptor_.local_endpoint(error);
    address_ = Address{bound.address().to_string(), bound.port()}.text();
    return Ok{};
  }

  Status reload() {
    if (!endpoint_.tls) return Ok{};
    HAPAX_TRY(SharedTls fresh, load_tls(*endpoint_.tls));
    const base::MutexLock lock(mutex_);
    tls_ = std::move(fresh);
    return Ok{};
  }

  void accept() {
    AsioLoop& loop = *loops_[next_++ % loops_.size()];
    acceptor_.async_accept(loop.context(),
                           [this, &loop](const error_code& error, tcp::socket socket) {
                             if (!acceptor_.is_open()) return;
                             if (error) return accept_later();
                             welcome(loop, std::move(socket));
                             accept();
                           });
  }

  void close() {
    error_code ignored;
    acceptor_.close(ignored);
    pause_.cancel();
  }

  [[nodiscard]] const std::string& address() const { return address_; }

 private:
  // Out of descriptors: without a pause this would spin until one is free.
  void accept_later() {
    loops_.front()->counters().paused.fetch_add(1, std::memory_order_relaxed);
    pause_.expires_after(kAcceptPause);
    pause_.async_wait([this](const error_code& error) {
      if (!error && acceptor_.is_open()) accept();
    });
  }

  void welcome(AsioLoop& loop, tcp::socket socket) {
    TrafficCounters& counters = loop.counters();
    counters.accepted.fetch_add(1, std::memory_order_relaxed);
    const ServerLimits& limits = loop.limits();
    const std::uint64_t open = counters.open.load();
    const bool beyond = open >= limits.connections_max;
    if (beyond) counters.refused.fetch_add(1, std::memory_order_relaxed);
    const bool brief =
        endpoint_.make_brief_session && open < limits.connections_max + limits.brief_max;
    if (beyond && !brief) return;
    auto connection =
        make(loop, std::move(socket), beyond ? SessionKind::kBrief : SessionKind::kUsual);
    // Here, not on its loop: the next one that is accepted is counted behind it.
    counters.open.fetch_add(1);
    loop.post([&loop, connection = std::move(connection)] { loop.add(connection); });
  }

  std::shared_ptr<Connection> make(AsioLoop& loop, tcp::socket socket, SessionKind kind) {
    const MakeSession& make_session =
        kind == SessionKind::kBrief ? endpoint_.make_brief_session : endpoint_.make_session;
    if (!endpoint_.tls) return make_plain_connection(loop, std::move(socket), make_session);
    const base::MutexLock lock(mutex_);
    return make_tls_connection(loop, std::move(socket), make_session, tls_, kind);
  }

  const Endpoint endpoint_;
  const std::vector<AsioLoop*> loops_;
  tcp::acceptor acceptor_;
  asio::steady_timer pause_;
  std::string address_;
  std::size_t next_ = 0;
  base::Mutex mutex_;
  SharedTls tls_ HAPAX_GUARDED_BY(mutex_);
};

class AsioServer final : public Server {
 public:
  AsioServer(std::vector<Endpoint> endpoints, std::size_t loops, const ServerLimits& limits) {
    std::vector<AsioLoop*> prompt;
    std::vector<AsioLoop*> waiting;
    const auto make = [&](std::vector<AsioLoop*>& group) {
      for (std::size_t i = group.size(); i < loops; ++i) {
        loops_.push_back(
            std::make_unique<AsioLoop>(loops_.size(), &group == &waiting, limits, counters_));
        group.push_back(loops_.back().get());
      }
    };
    // N2: the first loop accepts everybody. If there is one that never waits, it is that one.
    for (const Endpoint& endpoint : endpoints) {
      if (!endpoint.may_wait) make(prompt);
    }
    for (Endpoint& endpoint : endpoints) {
      if (endpoint.may_wait) make(waiting);
      auto& group = endpoint.may_wait ? waiting : prompt;
      listeners_.push_back(std::make_unique<Listener>(std::move(endpoint), *loops_.front(), group));
    }
  }

  ~AsioServer() override { stop(std::chrono::milliseconds{0}); }

  Status open() {
    for (auto& listener : listeners_) HAPAX_CHECK(listener->open());
    return Ok{};
  }

  void start() override {
    for (auto& listener : listeners_) listener->accept();
    for (auto& loop : loops_) loop->start();
  }

  void stop(std::chrono::milliseconds deadline) override {
    if (std::exchange(stopped_, true)) return;
    loops_.front()->post([this] {
      for (auto& listener : listeners_) listener->close();
    });
    for (auto& loop : loops_) loop->post([&loop] { loop->drain(); });
    const auto until = std::chrono::steady_clock::now() + deadline;
    while (counters_.open != 0 && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(kDrainGrain);
    }
    for (auto& loop : loops_) loop->join();
  }

  Status reload_certificates() override {
    for (auto& listener : listeners_) HAPAX_CHECK(listener->reload());
    return Ok{};
  }

  [[nodiscard]] std::vector<std::string> addresses() const override {
    std::vector<std::string> all;
    for (const auto& listener : listeners_) all.push_back(listener->address());
    return all;
  }

  [[nodiscard]] std::vector<Loop*> loops() override {
    std::vector<Loop*> all;
    for (auto& loop : loops_) all.push_back(loop.get());
    return all;
  }

  [[nodiscard]] ServerStatistics statistics() const override {
    return {counters_.accepted, counters_.refused,  counters_.paused,
            counters_.open,     counters_.bytes_in, counters_.bytes_out};
  }

 private:
  TrafficCounters counters_;
  std::vector<std::unique_ptr<AsioLoop>> loops_;
  std::vector<std::unique_ptr<Listener>> listeners_;  // before the loops go
  bool stopped_ = false;
};

}  // namespace

Result<std::unique_ptr<Server>> Server::open(std::vector<Endpoint> endpoints, std::size_t loops,
                                             const ServerLimits& limits) {
  auto server = std::make_unique<AsioServer>(std::move(endpoints), loops, limits);
  HAPAX_CHECK(server->open());
  return std::unique_ptr<Server>(std::move(server));
}

}  // namespace hapax::net
