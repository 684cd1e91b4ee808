#include "client/client.h"

#include <algorithm>
#include <array>
#include <thread>
#include <utility>

#include "base/format.h"
#include "http/response_reader.h"

namespace hapax::client {

namespace {

using std::chrono::milliseconds;

constexpr std::size_t kBodyBytesMax = std::size_t{1} << 30;
constexpr milliseconds kFirstPause{100};

Error no_answer(const ClientOptions& options, const ApiCall& call, unsigned tries,
                const Error& last) {
  return Error{Errc::kUnavailable,
               base::format("no answer from {} after {} {} ({}){}", options.url.text(), tries,
                            tries == 1 ? "attempt" : "attempts", last.detail,
                            call.method == "GET" ? ""
                                                 : "; it may have happened all the same: look "
                                                   "before sending it anew")};
}

}  // namespace

milliseconds Client::Limits::left() const {
  const auto until_end = std::chrono::floor<milliseconds>(end - std::chrono::steady_clock::now());
  return std::max(std::min(move, until_end), milliseconds{0});
}

Client::Limits Client::limits_of(const ApiCall& call) const {
  if (call.time == milliseconds{0}) {
    return {options_.answer_time + call.waits, std::chrono::steady_clock::time_point::max()};
  }
  return {call.time, std::chrono::steady_clock::now() + call.time};
}

Status Client::connect(const Limits& limits) {
  const milliseconds time = std::min(options_.connect_time, limits.left());
  net::DialTo to{options_.url.host, options_.url.port, std::nullopt, time};
  if (options_.url.tls) to.tls = net::DialTls{options_.authorities};
  HAPAX_TRY(link_, net::dial(to));
  return Ok{};
}

Result<std::string> Client::text_of(const ApiCall& call) const {
  const std::string target = options_.url.prefix + call.path;
  if (!is_word(call.method) || !is_word(target)) {
    return Error{Errc::kInvalidArgument, "a request line cannot carry this as it is: " +
                                             encoded(call.method) + " " + encoded(target)};
  }
  std::string text = call.method + " " + target + " HTTP/1.1\r\n";
  std::string bad;
  const auto add = [&](std::string_view name, std::string_view value) {
    if (!is_word(name) || !is_value(value)) bad = name;
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
  if (!bad.empty()) {
    return Error{Errc::kInvalidArgument,
                 "the header field " + encoded(bad) +
                     " cannot carry its value as it is: visible ASCII, and spaces inside"};
  }
  return text + "\r\n" + call.body;
}

Status Client::exchange(const std::string& text, const Limits& limits, Attempt& attempt) {
  attempt.sent = true;
  // A refusal may come before all was sent, and end the connection: then what was sent last is
  // lost, but not the answer.
  const Status sent = link_->send(text, limits.left());
  http::ResponseReader reader(kBodyBytesMax);
  std::array<char, std::size_t{64} << 10> bytes{};
  for (bool complete = false; !complete;) {
    const Result<std::size_t> received = link_->receive(bytes, limits.left());
    if (!received) return sent ? received.error() : sent.error();
    const std::size_t count = *received;
    if (count == 0) {
      HAPAX_CHECK(reader.end());
      break;
    }
    attempt.answered = true;
    HAPAX_TRY(complete, reader.put({bytes.data(), count}));
  }
  if (!reader.keep_alive() || !sent) link_.reset();
  http::Response response = reader.take();
  attempt.reply = {response.status, std::move(response.fields), std::move(response.body)};
  return Ok{};
}

Client::Attempt Client::attempt(const ApiCall& call, const std::string& text,
                                const Limits& limits) {
  Attempt attempt;
  Status done = link_ ? Status(Ok{}) : connect(limits);
  // To connect took time, and the process may have been stopped meanwhile.
  if (done && call.may_send && !call.may_send()) {
    done = Error{Errc::kUnavailable, "the time in which it may be sent is over"};
  }
  if (done) done = exchange(text, limits, attempt);
  if (!done) {
    link_.reset();
    attempt.lost = std::move(done).error();
  }
  return attempt;
}

Result<Reply> Client::call(const ApiCall& call) {
  HAPAX_TRY(const std::string text, text_of(call));
  const Limits limits = limits_of(call);
  milliseconds pause = kFirstPause;
  bool sent = false;
  for (unsigned tries = 1;;) {
    // What has come since the latest answer answers nothing that was asked.
    if (link_ != nullptr && !link_->quiet()) link_.reset();
    const bool rested = link_ != nullptr;
    Attempt tried = attempt(call, text, limits);
    if (!tried.lost) return std::move(tried.reply);
    sent = sent || tried.sent;
    if (tried.lost->code != Errc::kUnavailable || !sent) return *std::move(tried.lost);
    // A connection that rested may have been closed meanwhile: that costs no attempt.
    if (rested && tried.sent && !tried.answered && limits.left() != milliseconds{0}) continue;
    if (tries >= options_.attempts_max) return no_answer(options_, call, tries, *tried.lost);
    ++tries;
    if (options_.pause) {
      options_.pause(pause);
    } else {
      std::this_thread::sleep_for(pause);
    }
    pause *= 2;
  }
}

}  // namespace hapax::client
