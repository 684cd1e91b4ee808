// One RESP connection: bytes become commands, and answers become bytes. Commands are answered in
// their order; operations of all connections of a loop travel to the store together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "access/gatherer.h"
#include "resp/conversation.h"
#include "resp/parser.h"
#include "resp/session_context.h"

namespace hapax::resp {

class Session final : public net::Session,
                      public access::Asker,
                      public std::enable_shared_from_this<Session> {
 public:
  Session(net::Link& link, SessionContext& context, access::Gatherer& gatherer);

  std::size_t take(std::string_view bytes) override;
  void half_closed() override;
  void sent() override { told_all(); }
  void late() override;
  void drain() override;
  void lost() override {
    link_ = nullptr;
    talk_.lose();
  }

  void told(std::uint64_t ticket, const Op& op, Verdict& verdict, Time when) override;
  void failed(std::uint64_t ticket, const Error& error) override;
  void told_all() override;
  [[nodiscard]] std::shared_ptr<access::Asker> keep() override { return shared_from_this(); }

 private:
  void answer_broken(const std::string& problem);
  void flush();
  // However many answers are large, one is held: it is read when those before it were taken.
  void read_left_out();
  void found_left_out(Result<Verdict> verdict, Time when);
  void finish_if_done();
  void pause();
  // The peer has some time for what is its turn: the rest of a command, or the next one.
  void watch_peer();
  // Whether more answers are not taken, or promised, than one connection may have.
  [[nodiscard]] bool holds_too_much(std::size_t unsent) const {
    return talk_.answers().due() + unsent >= context_.unsent_max;
  }
  [[nodiscard]] bool owes_too_much(std::size_t unsent) const {
    return talk_.answers().promised() >= context_.promised_max() || holds_too_much(unsent);
  }

  net::Link* link_;  // null: the connection is gone
  SessionContext& context_;
  Parser parser_;
  Conversation talk_;
  bool paused_ = false;
  bool half_ = false;    // a command has begun to arrive
  bool waited_ = false;  // a deadline is set
};

}  // namespace hapax::resp
