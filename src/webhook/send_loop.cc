#include "webhook/send_loop.h"

#include <algorithm>
#include <string>

#include "base/assert.h"

namespace hapax::webhook {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::size_t kFreeTransfersMax = 1'024;  // about 10 KiB each

template <class Value>
void set(CURLM* multi, CURLMoption option, Value value) {
  HAPAX_ASSERT(curl_multi_setopt(multi, option, value) == CURLM_OK, "libcurl has the option");
}

int for_libcurl(std::uint8_t events) {
  int out = 0;
  if ((events & SocketWatch::kRead) != 0) out |= CURL_CSELECT_IN;
  if ((events & SocketWatch::kWrite) != 0) out |= CURL_CSELECT_OUT;
  if ((events & SocketWatch::kFailed) != 0) out |= CURL_CSELECT_ERR;
  return out;
}

CURLM* new_multi() {
  // Once in a process and before any handle; libcurl counts and locks by itself since 7.84.
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  HAPAX_ASSERT(ready == CURLE_OK, "libcurl starts");
  CURLM* multi = curl_multi_init();
  HAPAX_ASSERT(multi != nullptr, "libcurl makes handles");
  return multi;
}

}  // namespace

SendLoop::SendLoop(SocketWatch& watch, const Guard& guard, SendLimits limits, long connections_kept)
    : watch_(watch), guard_(guard), origins_(limits) {
  for (Lane& lane : lanes_) {
    lane.loop = this;
    lane.multi = new_multi();
    set(lane.multi, CURLMOPT_MAXCONNECTS, std::max(1L, connections_kept / long{kLanes}));
    set(lane.multi, CURLMOPT_SOCKETFUNCTION, &SendLoop::watch_socket);
    set(lane.multi, CURLMOPT_SOCKETDATA, static_cast<void*>(&lane));
    set(lane.multi, CURLMOPT_TIMERFUNCTION, &SendLoop::set_timer);
    set(lane.multi, CURLMOPT_TIMERDATA, static_cast<void*>(&lane));
  }
}

// Connections live in the multi handles and tell us of their end.
SendLoop::~SendLoop() {
  HAPAX_ASSERT(under_way_.empty(), "requests have ended before the loop does");
  free_.clear();
  for (const Lane& lane : lanes_) curl_multi_cleanup(lane.multi);
}

SendLoop::Lane& SendLoop::lane_of(const Origin& origin) { return lanes_[origin.number % kLanes]; }

int SendLoop::watch_socket(CURL* /*easy*/, curl_socket_t socket, int what, void* lane,
                           void* /*of_socket*/) {
  std::uint8_t events = 0;
  if (what == CURL_POLL_IN || what == CURL_POLL_INOUT) events |= SocketWatch::kRead;
  if (what == CURL_POLL_OUT || what == CURL_POLL_INOUT) events |= SocketWatch::kWrite;
  SendLoop& loop = *static_cast<Lane*>(lane)->loop;
  const auto number = static_cast<std::size_t>(socket);
  if (loop.lanes_of_sockets_.size() <= number) loop.lanes_of_sockets_.resize(2 * number + 1);
  loop.lanes_of_sockets_[number] =
      static_cast<std::uint8_t>(static_cast<Lane*>(lane) - loop.lanes_.data());
  loop.watch_.want(socket, events);
  return 0;
}

int SendLoop::set_timer(CURLM* /*multi*/, long milliseconds, void* lane) {
  auto& due = static_cast<Lane*>(lane)->due;
  due.reset();
  if (milliseconds >= 0) due = steady_clock::now() + std::chrono::milliseconds(milliseconds);
  return 0;
}

void SendLoop::take(WaitingRequest waiting) {
  auto origin = origins_.of(waiting.request.url);
  const Status rest = origin ? check_besides_url(waiting.request) : Status(Ok{});
  if (!origin || !rest) {
    const std::string& why = origin ? rest.error().detail : origin.error().detail;
    return end_waiting(std::move(waiting), SendCause::kInvalid, std::string(why));
  }
  origins_.wait(**origin, std::move(waiting));
  more_ = true;
}

void SendLoop::drive() {
  if (more_) {
    while (auto turn = origins_.next()) begin(*std::move(turn));
    more_ = false;
  }
  const auto now = steady_clock::now();
  for (Lane& lane : lanes_) {
    if (!lane.due || *lane.due > now) continue;
    lane.due.reset();
    int running = 0;
    curl_multi_socket_action(lane.multi, CURL_SOCKET_TIMEOUT, 0, &running);
    collect(lane);
  }
}

void SendLoop::ready(const std::vector<SocketWatch::Ready>& sockets) {
  for (const auto& [socket, events] : sockets) {
    const Lane& lane = lanes_[lanes_of_sockets_[static_cast<std::size_t>(socket)]];
    int running = 0;
    curl_multi_socket_action(lane.multi, socket, for_libcurl(events), &running);
    collect(lane);
  }
}

void SendLoop::begin(Origins::Begun turn) {
  const auto now = steady_clock::now();
  if (now - turn.waiting.started >= turn.waiting.request.total_timeout) {
    origins_.ended(*turn.origin, turn.stage, turn.stage == Stage::kPooled);
    return end_waiting(std::move(turn.waiting), SendCause::kTimeout,
                       "its time was over before a connection was free");
  }
  auto transfer = free_transfer();
  transfer->request = std::move(turn.waiting.request);
  transfer->done = std::move(turn.waiting.done);
  transfer->origin = turn.origin;
  transfer->place = under_way_.size();
  transfer->begin(turn.stage, now - turn.waiting.started);
  const CURLMcode added = curl_multi_add_handle(lane_of(*turn.origin).multi, transfer->easy());
  HAPAX_ASSERT(added == CURLM_OK, "libcurl takes a handle that is free");
  under_way_.push_back(std::move(transfer));
}

std::unique_ptr<Transfer> SendLoop::free_transfer() {
  if (free_.empty()) {
    TransferOwner& self = *this;
    return std::make_unique<Transfer>(self, guard_);
  }
  auto out = std::move(free_.back());
  free_.pop_back();
  return out;
}

void SendLoop::collect(const Lane& lane) {
  int left = 0;
  while (CURLMsg* message = curl_multi_info_read(lane.multi, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    char* of_easy = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &of_easy);
    auto& transfer = *reinterpret_cast<Transfer*>(of_easy);
    const CURLcode code = message->data.result;  // the message dies with the next line
    curl_multi_remove_handle(lane.multi, transfer.easy());
    transfer.conclude(code);
    end(transfer);
  }
}

void SendLoop::end(Transfer& transfer) {
  const bool kept = transfer.reply.ending == SendEnding::kAnswered && !transfer.reply.truncated;
  origins_.ended(*transfer.origin, transfer.stage(), kept);
  more_ = true;
  ended_.emplace_back(std::move(transfer.done), std::move(transfer.reply));
  auto freed = std::move(under_way_[transfer.place]);
  if (freed->place + 1 != under_way_.size()) {
    under_way_[freed->place] = std::move(under_way_.back());
    under_way_[freed->place]->place = freed->place;
  }
  under_way_.pop_back();
  freed->forget();
  if (free_.size() < kFreeTransfersMax) free_.push_back(std::move(freed));
}

void SendLoop::end_waiting(WaitingRequest waiting, SendCause cause, std::string_view why) {
  SendReply reply;
  reply.cause = cause;
  reply.reason = why;
  reply.times.waited =
      std::chrono::duration_cast<std::chrono::microseconds>(steady_clock::now() - waiting.started);
  ended_.emplace_back(std::move(waiting.done), std::move(reply));
}

std::size_t SendLoop::tell() {
  auto told = std::exchange(ended_, {});
  for (auto& [done, reply] : told) done(std::move(reply));
  return told.size();
}

milliseconds SendLoop::pause(TimePoint now) const {
  if (more_ || !ended_.empty()) return milliseconds(0);
  std::optional<TimePoint> first;
  for (const Lane& lane : lanes_) {
    if (lane.due && (!first || *lane.due < *first)) first = lane.due;
  }
  if (!first) return milliseconds(-1);
  return std::max(milliseconds(0), std::chrono::ceil<milliseconds>(*first - now));
}

void SendLoop::begin_no_more() {
  for (WaitingRequest& waiting : origins_.take_waiting()) {
    end_waiting(std::move(waiting), SendCause::kStopped, "the sender stops");
  }
}

void SendLoop::give_up() {
  while (!under_way_.empty()) {
    Transfer& transfer = *under_way_.back();
    curl_multi_remove_handle(lane_of(*transfer.origin).multi, transfer.easy());
    transfer.give_up(SendCause::kStopped, "the sender stopped before the answer came");
    end(transfer);
  }
}

}  // namespace hapax::webhook
