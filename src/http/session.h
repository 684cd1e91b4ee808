// One HTTP connection: reads requests, hands them to a handler, and sends the answers in the order
// of the requests, whatever order they are given in.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "http/parser.h"
#include "net/link.h"

namespace hapax::http {

struct SessionLimits {
  ParserLimits parser;
  std::chrono::milliseconds header_time{10'000};
  std::chrono::milliseconds body_time{60'000};
  std::chrono::milliseconds idle_time{75'000};
  std::size_t pipelined_max = 64;
  std::size_t unsent_max = std::size_t{4} << 20;  // bytes of answers that the client has not taken
  bool one_request = false;                       // then the connection ends
};

// What a handler keeps with a request, or with a connection. Only the handler knows its type.
struct Attachment {
  Attachment() = default;
  Attachment(const Attachment&) = delete;
  Attachment& operator=(const Attachment&) = delete;
  virtual ~Attachment() = default;
};
using Attached = std::shared_ptr<Attachment>;

class Session;

// A request and the place of its answer. Used on its loop's thread. If the client has gone, what
// is answered is thrown away.
class Exchange {
 public:
  Exchange(std::shared_ptr<Session> session, Request request, bool head_only, bool keep_alive);

  [[nodiscard]] const Request& request() const { return request_; }
  [[nodiscard]] Request& request() { return request_; }
  [[nodiscard]] net::Loop& loop() const;
  [[nodiscard]] std::string_view peer() const;
  [[nodiscard]] bool encrypted() const;
  [[nodiscard]] bool gone() const;  // nobody will see the answer
  // It is time to come to an end: the client sends no more or has gone, or the server stops. A
  // client that closed its socket looks like one that closed only its sending side.
  [[nodiscard]] bool leaving() const;

  void respond(const Response& response);
  // Header fields of whatever will be answered. REQUIRES: text that may stand in one.
  void always(std::string_view name, std::string_view value);
  // What the log calls the request.
  void named(std::string reference) { reference_ = std::move(reference); }
  [[nodiscard]] const std::string& reference() const { return reference_; }
  // Is told the status when the answer is given.
  void when_answered(std::function<void(unsigned status)> act) { answered_ = std::move(act); }
  // The answer may be large: nothing more is taken from the connection before it is given.
  void comes_alone();
  // Stays with the connection until it is gone.
  [[nodiscard]] Attached& connection_attachment();
  // What the gate left, if it was asked.
  [[nodiscard]] Attached& attachment() { return attachment_; }
  // Requests of the connection that came before are not answered yet.
  [[nodiscard]] bool follows_others() const;
  // What is to be answered whatever was asked: the request was not understood, or took too long.
  [[nodiscard]] const std::optional<Problem>& refusal() const { return refusal_; }

  // A body that comes piece by piece.
  void begin(const Response& response);
  void write(std::string_view bytes);
  void end();
  [[nodiscard]] std::size_t unsent() const;

  // Called when leaving() becomes true, and when everything written has left. Both are dropped
  // when the answer is complete.
  void at_leave(std::function<void()> act) { at_leave_ = std::move(act); }
  void at_sent(std::function<void()> act) { at_sent_ = std::move(act); }

 private:
  friend class Session;

  [[nodiscard]] Framing framing() const;
  void finish();

  std::shared_ptr<Session> session_;
  Request request_;
  const bool head_only_;
  const bool keep_alive_;
  [[nodiscard]] std::string dressed(const Response& response, Framing framing);

  std::optional<Problem> refusal_;
  Attached attachment_;
  std::string always_;  // header lines
  std::string reference_;
  std::function<void(unsigned)> answered_;
  std::string ready_;  // waits for the answers before it
  std::function<void()> at_leave_;
  std::function<void()> at_sent_;
  bool begun_ = false;  // its body comes piece by piece
  bool alone_ = false;
  bool complete_ = false;
};

// Is given every request, those with a refusal, too, which may have nothing but that.
using Handler = std::function<void(std::shared_ptr<Exchange>)>;
// Asked when the header of a request is there and a body is still to come. A10: if it does not want
// the body, that is not read: the handler is given the request without it, and the connection ends
// with the answer.
struct Gated {
  bool wants_body = true;
  Attached attachment{};  // goes to the exchange
};
using Gate = std::function<Gated(const Request& header, std::string_view peer)>;

class Session final : public net::Session, public std::enable_shared_from_this<Session> {
 public:
  Session(net::Link& link, const SessionLimits& limits, const Handler& handler,
          const Gate* gate = nullptr);

  std::size_t take(std::string_view bytes) override;
  void half_closed() override;
  void sent() override;
  void late() override;
  void drain() override;
  void lost() override;

 private:
  friend class Exchange;
  enum class Step : std::uint8_t { kGoOn, kWait };

  Step step(std::string_view bytes, std::size_t& used);
  [[nodiscard]] bool ask_gate();
  void begin_request();
  void finish_request();
  std::shared_ptr<Exchange> add_exchange(bool keep_alive);
  void refuse(const Problem& problem);
  void advance();
  void tell_leaving();
  void set_deadline(std::chrono::milliseconds span);
  // Whether the answers of more requests might be more than a connection may have.
  [[nodiscard]] bool owes_too_much() const;
  void resume_if_paused();

  net::Link* link_;  // null: the connection is gone
  const SessionLimits& limits_;
  const Handler& handler_;
  const Gate* const gate_;  // may be null
  Attached gated_;          // of the request whose body comes
  std::string peer_;
  Attached attachment_;
  bool encrypted_;
  net::Loop& loop_;
  std::unique_ptr<Parser> parser_;
  std::deque<std::shared_ptr<Exchange>> exchanges_;
  bool closing_ = false;  // no more requests are taken
  bool draining_ = false;
  bool ended_ = false;  // the client sends no more
  bool paused_ = false;
};

}  // namespace hapax::http
