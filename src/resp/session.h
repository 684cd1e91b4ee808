// One RESP connection. Commands are answered in their order; operations of all connections of a
// loop travel to the store together.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "access/authenticator.h"
#include "access/caller.h"
#include "access/entry.h"
#include "access/gatherer.h"
#include "access/left_out.h"
#include "resp/parser.h"
#include "resp/replies.h"

namespace hapax::resp {

// What every session of the process shares.
struct SessionContext {
  access::Entry& entry;
  access::Authenticator& authenticator;
  std::string version;
  ParserLimits limits;
  std::size_t pending_max = 10'000;  // commands of one connection that wait for the store
  std::size_t unsent_max = std::size_t{4} << 20;  // bytes of answers that one has not taken
  // From the first byte of a command to its last, and to sign in where that is needed.
  std::chrono::milliseconds command_time{60'000};
  std::chrono::milliseconds idle_time{0};  // without a command; 0: for ever

  // Bytes of answers that one may have been promised. Most turn out to be far smaller.
  [[nodiscard]] std::size_t promised_max() const { return 4 * unsent_max; }
};

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
    permit_.reset();
  }

  void told(std::uint64_t ticket, const Op& op, Verdict& verdict, Time when) override;
  void failed(std::uint64_t ticket, const Error& error) override;
  void told_all() override;
  [[nodiscard]] std::shared_ptr<access::Asker> keep() override { return shared_from_this(); }

  using Arguments = std::span<const std::string_view>;
  enum class Next : std::uint8_t { kGoOn, kWaitFirst };  // kWaitFirst: again when all is answered
  // How the verdicts of a command's operations, decided at that log time, are said.
  using Say = void (*)(Replies&, std::span<const Verdict>, Time);
  // A command that waits for EXEC: operations, or one that is none, with its words.
  struct Queued {
    Say say = nullptr;
    std::size_t ops = 1;  // of which one was let in with the command
    std::vector<std::string> words{};
    std::string reply{};  // of the words
  };

 private:
  friend struct Act;
  friend struct Commands;

  struct Slot {
    Say say = nullptr;
    bool ready = false;
    std::string reply;
    std::size_t promised = 0;                     // bytes that the reply may have; 0: few
    std::unique_ptr<access::LeftOut> left_out{};  // until it is being read
  };

  Next run(Arguments arguments);
  Status sign_in(std::string_view credential);
  void sign_out() { become(context_.authenticator.anybody()); }
  void become(std::optional<access::Caller> caller);
  // A5: what was admitted once is asked again when it is over or keys have changed.
  void sign_in_again();
  void end_multi();
  [[nodiscard]] Status run_op(const Op& op, Say say);
  // What was written into replies_ is the answer of the newest command …
  void answer_now();
  // … or of this one: it leaves, or waits for its turn.
  void fill(std::uint64_t ticket);
  void flush();
  // However many answers are large, one is held: it is read when those before it were taken.
  void read_left_out();
  void found_left_out(Result<Verdict> verdict, Time when);
  void fail(std::uint64_t ticket, const Error& error);
  void finish_if_done();
  void pause();
  // The peer has some time for what is its turn: the rest of a command, or the next one.
  void watch_peer();
  [[nodiscard]] bool busy() const { return !slots_.empty(); }
  void push(Slot slot);
  void pop();
  // Whether more answers are not taken, or promised, than one connection may have.
  [[nodiscard]] bool holds_too_much(std::size_t unsent) const {
    return replies_.size() + unsent >= context_.unsent_max;
  }
  [[nodiscard]] bool owes_too_much(std::size_t unsent) const {
    return promised_ >= context_.promised_max() || holds_too_much(unsent);
  }

  net::Link* link_;  // null: the connection is gone
  SessionContext& context_;
  access::Gatherer& gatherer_;
  net::Loop& loop_;
  Parser parser_;
  Replies replies_;  // answers that are due, one behind the other; behind them, one being written
  std::size_t due_ = 0;  // bytes of those that are due
  std::optional<access::Caller> caller_;
  access::TenantNames names_;                   // of the caller
  std::optional<access::Admission> admission_;  // of who signed in
  std::string credential_;                      // that it was for
  std::shared_ptr<access::ConnectionPermit> permit_;
  std::deque<Slot> slots_;    // commands in their order that are not answered yet
  std::size_t promised_ = 0;  // of all of them
  std::uint64_t first_ticket_ = 0;
  std::vector<std::string_view> kept_;  // arguments of the operation being read
  bool paused_ = false;
  bool half_ = false;    // a command has begun to arrive
  bool waited_ = false;  // a deadline is set
  bool closing_ = false;
  std::string name_;

  // MULTI: commands are kept and checked; EXEC makes one atomic commit of them.
  bool multi_ = false;
  bool multi_broken_ = false;
  wire::SharedRequest queued_;
  std::vector<Queued> queued_says_;
  std::size_t queued_bytes_ = 0;
  bool tell_whole_ = false;  // HX.COMMIT was said
};

}  // namespace hapax::resp
