#include "http/session.h"

#include <utility>

#include "http/body_encoding.h"
#include "http/date.h"

namespace hapax::http {

// --- Exchange

Exchange::Exchange(std::shared_ptr<Session> session, Request request, bool head_only,
                   bool keep_alive)
    : session_(std::move(session)),
      request_(std::move(request)),
      head_only_(head_only),
      keep_alive_(keep_alive) {}

net::Loop& Exchange::loop() const { return session_->loop_; }
std::string_view Exchange::peer() const { return session_->peer_; }
bool Exchange::encrypted() const { return session_->encrypted_; }
Attached& Exchange::connection_attachment() { return session_->attachment_; }
bool Exchange::gone() const { return session_->link_ == nullptr; }

bool Exchange::follows_others() const {
  const auto& all = session_->exchanges_;
  return !all.empty() && all.front().get() != this;
}

std::size_t Exchange::unsent() const {
  return ready_.size() + (gone() ? 0 : session_->link_->unsent());
}

void Exchange::comes_alone() { alone_ = true; }

void Exchange::always(std::string_view name, std::string_view value) {
  always_.append(name).append(": ").append(value).append("\r\n");
}

std::string Exchange::dressed(const Response& response, Framing framing) {
  std::string text = text_of(response, framing, keep_alive_, head_only_);
  text.insert(text.find("\r\n") + 2, "Date: " + date_now() + "\r\n" + always_);
  if (answered_) std::exchange(answered_, nullptr)(response.status);
  return text;
}

bool Exchange::leaving() const { return gone() || session_->ended_ || session_->draining_; }

// HTTP/1.0 knows no chunks: there the end of the connection is the end of the body.
Framing Exchange::framing() const {
  return request_.version == 10 ? Framing::kUntilClose : Framing::kChunked;
}

void Exchange::finish() {
  complete_ = true;
  at_leave_ = nullptr;
  at_sent_ = nullptr;
  session_->advance();
}

void Exchange::respond(const Response& response) {
  ready_ += dressed(response, Framing::kWhole);
  finish();
}

void Exchange::begin(const Response& response) {
  begun_ = true;
  if (framing() == Framing::kUntilClose) session_->closing_ = true;
  ready_ += dressed(response, framing());
  session_->advance();
}

void Exchange::write(std::string_view bytes) {
  if (bytes.empty() || head_only_) return;
  ready_ += framing() == Framing::kChunked ? chunk_of(bytes) : std::string(bytes);
  session_->advance();
}

void Exchange::end() {
  if (!head_only_ && framing() == Framing::kChunked) ready_ += chunk_of({});
  finish();
}

// --- Session

Session::Session(net::Link& link, const SessionLimits& limits, const Handler& handler,
                 const Gate* gate)
    : link_(&link),
      limits_(limits),
      handler_(handler),
      gate_(gate),
      peer_(link.peer()),
      encrypted_(link.encrypted()),
      loop_(link.loop()) {
  begin_request();
  set_deadline(limits_.header_time);
}

void Session::begin_request() { parser_ = std::make_unique<Parser>(limits_.parser); }

void Session::set_deadline(std::chrono::milliseconds span) {
  link_->set_deadline(std::chrono::steady_clock::now() + span);
}

std::size_t Session::take(std::string_view bytes) {
  std::size_t total = 0;
  for (;;) {
    std::size_t used = 0;
    const Step next = step(bytes.substr(total), used);
    total += used;
    if (closing_ || link_ == nullptr) return bytes.size();
    if (next == Step::kWait) return total;
  }
}

Session::Step Session::step(std::string_view bytes, std::size_t& used) {
  if (exchanges_.size() >= limits_.pipelined_max ||
      (!bytes.empty() && !parser_->started() && owes_too_much())) {
    paused_ = true;
    link_->pause();
    return Step::kWait;
  }
  const bool was_started = parser_->started();
  switch (parser_->put(bytes, used)) {
    case Progress::kMore:
      if (!was_started && parser_->started()) set_deadline(limits_.header_time);
      return Step::kWait;
    case Progress::kHeader:
      set_deadline(limits_.body_time);
      if (!ask_gate()) return Step::kWait;
      if (parser_->expects_continue() && exchanges_.empty()) {
        link_->send("HTTP/1.1 100 Continue\r\n\r\n");
      }
      return Step::kGoOn;
    case Progress::kRequest:
      finish_request();
      return Step::kGoOn;
    case Progress::kBroken:
      refuse(parser_->problem());
      return Step::kWait;
  }
  return Step::kWait;
}

// A10: nothing is read from somebody who may not come in.
bool Session::ask_gate() {
  gated_.reset();
  if (gate_ == nullptr || !parser_->body_follows()) return true;
  Gated gated = (*gate_)(parser_->request(), peer_);
  gated_ = std::move(gated.attachment);
  if (gated.wants_body) return true;
  handler_(add_exchange(false));
  return false;
}

std::shared_ptr<Exchange> Session::add_exchange(bool keep_alive) {
  Request request = std::move(parser_->request());
  const bool head_only = request.method == "HEAD";
  auto exchange =
      std::make_shared<Exchange>(shared_from_this(), std::move(request), head_only, keep_alive);
  exchange->attachment_ = std::exchange(gated_, nullptr);
  exchanges_.push_back(exchange);
  if (!keep_alive) closing_ = true;
  begin_request();
  link_->clear_deadline();  // It is our turn now.
  return exchange;
}

void Session::finish_request() {
  const std::shared_ptr<Exchange> exchange =
      add_exchange(parser_->request().keep_alive && !draining_ && !limits_.one_request);
  if (Status decoded = decode_body(exchange->request(), limits_.parser.body_bytes_max); !decoded) {
    Error error = std::move(decoded).error();
    exchange->refusal_ = Problem{static_cast<unsigned>(http_status_of(error.code)),
                                 std::move(error.detail), error.code};
  }
  handler_(exchange);
}

// The answers that were asked for before still come first.
void Session::refuse(const Problem& problem) {
  Problem kept = problem;  // It may be the parser's, which goes.
  const std::shared_ptr<Exchange> exchange = add_exchange(false);
  exchange->refusal_ = std::move(kept);
  handler_(exchange);
}

// Sends what is ready, in the order of the requests.
void Session::advance() {
  if (link_ == nullptr) return;
  while (!exchanges_.empty()) {
    Exchange& front = *exchanges_.front();
    if (!front.ready_.empty()) {
      link_->send(std::exchange(front.ready_, {}));
      // Who takes a body piece by piece has to take each piece.
      if (front.begun_ && !parser_->started()) set_deadline(limits_.body_time);
    }
    if (!front.complete_) return;
    exchanges_.pop_front();
  }
  if (closing_) return link_->finish();
  // Also while paused: who does not take the answer, or sends nothing behind it, has no longer.
  if (!parser_->started()) set_deadline(limits_.idle_time);
  resume_if_paused();
}

bool Session::owes_too_much() const {
  const bool alone = !exchanges_.empty() && exchanges_.back()->alone_;
  return alone || link_->unsent() >= limits_.unsent_max;
}

// What is not taken yet is waited for: sent() tells.
void Session::resume_if_paused() {
  if (!paused_ || owes_too_much()) return;
  paused_ = false;
  link_->resume();
}

void Session::half_closed() {
  closing_ = true;
  ended_ = true;
  if (exchanges_.empty()) return link_->finish();
  tell_leaving();
}

void Session::sent() {
  if (link_ == nullptr) return;
  if (exchanges_.empty()) return resume_if_paused();
  if (!exchanges_.front()->begun_) return;
  if (!parser_->started()) link_->clear_deadline();
  const auto act = exchanges_.front()->at_sent_;  // It may replace itself.
  if (act) act();
}

void Session::tell_leaving() {
  const auto all = exchanges_;  // Answers take them off the list.
  for (const auto& exchange : all) {
    const auto act = std::exchange(exchange->at_leave_, nullptr);
    if (act) act();
  }
}

void Session::late() {
  if (parser_->started()) {
    refuse({408, "the request took too long to arrive"});
  } else {
    link_->finish();  // Idle: there is nobody to tell.
  }
}

void Session::drain() {
  draining_ = true;
  closing_ = true;
  if (exchanges_.empty() && !parser_->started()) return link_->finish();
  tell_leaving();
}

void Session::lost() {
  link_ = nullptr;
  attachment_.reset();
  tell_leaving();
  for (const auto& exchange : exchanges_) exchange->at_sent_ = nullptr;
  exchanges_.clear();
}

}  // namespace hapax::http
