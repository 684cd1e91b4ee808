// What the sender's thread owns: libcurl's multi handle, the transfers, and whose turn it is.
// No lock and no thread; turn by turn, driven by Sender.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <curl/curl.h>

#include "webhook/exchange.h"
#include "webhook/guard.h"
#include "webhook/origins.h"
#include "webhook/socket_watch.h"
#include "webhook/transfer.h"

namespace hapax::webhook {

class SendLoop final : private TransferOwner {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // `watch` is the caller's, who waits on it; it outlives the loop.
  SendLoop(SocketWatch& watch, const Guard& guard, SendLimits limits, long connections_kept);
  ~SendLoop();
  SendLoop(const SendLoop&) = delete;
  SendLoop& operator=(const SendLoop&) = delete;

  void take(WaitingRequest waiting);
  // Begins what may begin, and lets libcurl do what is due.
  void drive();
  void ready(const std::vector<SocketWatch::Ready>& sockets);
  // Tells those that have ended, in the order in which they did. Answers how many there were.
  std::size_t tell();
  // Until drive() has something to do without a socket being ready; negative: nothing.
  [[nodiscard]] std::chrono::milliseconds pause(TimePoint now) const;

  // What waits has ended, not sent. Nothing begins after it unless something is taken.
  void begin_no_more();
  // Ends what is under way, each as it truly is.
  void give_up();
  [[nodiscard]] bool idle() const { return under_way_.empty() && ended_.empty(); }

 private:
  // One of libcurl's multi handles. libcurl 7.88 walks through all connections of a handle whenever
  // a transfer leaves it, so the origins are spread over many.
  struct Lane {
    SendLoop* loop = nullptr;
    CURLM* multi = nullptr;
    std::optional<TimePoint> due;  // when libcurl wants to be called
  };
  static constexpr std::size_t kLanes = 64;

  void moved(Stage from, Stage to) override { more_ = origins_.moved(from, to) || more_; }
  void opened(int socket) override { watch_.opened(socket); }
  void closing(int socket) override { watch_.closing(socket); }

  void begin(Origins::Begun turn);
  void end(Transfer& transfer);
  void end_waiting(WaitingRequest waiting, SendCause cause, std::string_view why);
  void collect(const Lane& lane);
  [[nodiscard]] std::unique_ptr<Transfer> free_transfer();

  [[nodiscard]] Lane& lane_of(const Origin& origin);
  static int watch_socket(CURL* easy, curl_socket_t socket, int what, void* lane, void* of_socket);
  static int set_timer(CURLM* multi, long milliseconds, void* lane);

  SocketWatch& watch_;
  const Guard& guard_;
  Origins origins_;
  std::array<Lane, kLanes> lanes_;
  std::vector<std::uint8_t> lanes_of_sockets_;  // by the socket's number
  bool more_ = false;                           // something may begin
  std::vector<std::unique_ptr<Transfer>> under_way_;
  std::vector<std::unique_ptr<Transfer>> free_;
  std::vector<std::pair<OnReply, SendReply>> ended_;
};

}  // namespace hapax::webhook
