#include "client/client.h"

#include <array>
#include <thread>
#include <utility>

#include "http/response_reader.h"

namespace hapax::client {

namespace {

using std::chrono::milliseconds;

constexpr std::size_t kBodyBytesMax = std::size_t{1} << 30;
constexpr milliseconds kFirstPause{100};

}  // namespace

Status Client::connect() {
  net::DialTo to{options_.url.host, options_.url.port, std::nullopt, options_.connect_time};
  if (options_.url.tls) to.tls = net::DialTls{options_.authorities};
  HAPAX_TRY(link_, net::dial(to));
  return Ok{};
}

std::string Client::text_of(const Call& call) const {
  std::string text = call.method + " " + options_.url.prefix + call.path + " HTTP/1.1\r\n";
  const auto add = [&](std::string_view name, std::string_view value) {
    text.append(name).append(": ").append(value).append("\r\n");
  };
  add("Host", options_.url.authority());
  add("User-Agent", "hapax");
  add("Accept", "application/json");
  if (!options_.token.empty()) add("Authorization", "Bearer " + options_.token);
  if (!call.key.empty()) add("Idempotency-Key", call.key);
  if (!call.body.empty()) add("Content-Type", call.type);
  for (const auto& [name, value] : call.fields.list()) add(name, value);
  if (!call.body.empty() || call.method != "GET") {
    add("Content-Length", std::to_string(call.body.size()));
  }
  return text + "\r\n" + call.body;
}

Result<Reply> Client::attempt(const Call& call) {
  const milliseconds most = call.time == milliseconds{0} ? options_.answer_time : call.time;
  const milliseconds time = most + call.waits;
  // A refusal may come before all was sent, and end the connection: then what was sent last is
  // lost, but not the answer.
  const Status sent = link_->send(text_of(call), time);
  http::ResponseReader reader(kBodyBytesMax);
  std::array<char, std::size_t{64} << 10> bytes{};
  for (bool complete = false; !complete;) {
    const Result<std::size_t> received = link_->receive(bytes, time);
    if (!received) return sent ? received.error() : sent.error();
    const std::size_t count = *received;
    if (count == 0) {
      HAPAX_CHECK(reader.end());
      break;
    }
    HAPAX_TRY(complete, reader.put({bytes.data(), count}));
  }
  if (!reader.keep_alive() || !sent) link_.reset();
  http::Response response = reader.take();
  return Reply{response.status, std::move(response.fields), std::move(response.body)};
}

Result<Reply> Client::call(const Call& call) {
  milliseconds pause = kFirstPause;
  for (unsigned tries = 1;; ++tries) {
    // A connection that rested may have been closed meanwhile: that costs no attempt.
    const bool rested = link_ != nullptr;
    Status there = rested ? Status(Ok{}) : connect();
    if (!there && tries == 1) return std::move(there).error();
    Result<Reply> reply = there ? attempt(call) : Result<Reply>(there.error());
    if (reply) return reply;
    link_.reset();
    if (reply.error().code != Errc::kUnavailable) return reply;
    if (tries >= options_.attempts_max) {
      return Error{Errc::kUnavailable,
                   "no answer from " + options_.url.text() + " after " + std::to_string(tries) +
                       " attempts (" + reply.error().detail + ")" +
                       (call.method == "GET" ? ""
                                             : "; it may have happened all the same: look "
                                               "before sending it anew")};
    }
    if (rested && tries == 1) continue;
    if (options_.pause) {
      options_.pause(pause);
    } else {
      std::this_thread::sleep_for(pause);
    }
    pause *= 2;
  }
}

}  // namespace hapax::client
