// One RESP connection. Commands are answered in their order; operations of all connections of a
// loop travel to the store together.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "front/caller.h"
#include "front/desk.h"
#include "front/gatherer.h"
#include "front/reception.h"
#include "resp/parser.h"
#include "resp/replies.h"

namespace hapax::resp {

// What every session of the process shares.
struct Hall {
  front::Desk& desk;
  front::Reception& reception;
  std::string version;
  ParserLimits limits;
  std::size_t pending_max = 10'000;  // commands of one connection that wait for the store
};

class Session final : public net::Session,
                      public front::Asker,
                      public std::enable_shared_from_this<Session> {
 public:
  Session(net::Link& link, Hall& hall, front::Gatherer& gatherer);

  std::size_t take(std::string_view bytes) override;
  void half_closed() override;
  void late() override {}
  void drain() override;
  void lost() override {
    link_ = nullptr;
    seat_.reset();
  }

  void told(std::uint64_t ticket, Verdict& verdict, Time when) override;
  void failed(std::uint64_t ticket, const Error& error) override;
  void told_all() override;
  [[nodiscard]] std::shared_ptr<front::Asker> keep() override { return shared_from_this(); }

  using Arguments = std::span<const std::string_view>;
  enum class Next : std::uint8_t { kGoOn, kWaitFirst };  // kWaitFirst: again when all is answered
  // How the verdicts of a command's operations, decided at that log time, are said.
  using Say = void (*)(Replies&, std::span<const Verdict>, Time);
  struct Queued {
    Say say = nullptr;
    std::size_t ops = 1;
  };

 private:
  friend struct Act;
  friend struct Commands;

  struct Slot {
    Say say = nullptr;
    bool ready = false;
    std::string reply;
  };

  Next run(Arguments arguments);
  Status sign_in(std::string_view credential);
  void sign_out() { become(hall_.reception.anybody()); }
  void become(std::optional<front::Caller> caller);
  // Within the limits of the tenant. What waits for EXEC is charged with it.
  [[nodiscard]] Status let_in();
  // A5: what was admitted once is asked again when it is over or keys have changed.
  void sign_in_again();
  void run_op(const Op& op, Say say);
  // What was written into replies_ is the answer of the newest command …
  void answer_now();
  // … or of this one: it leaves, or waits for its turn.
  void fill(std::uint64_t ticket);
  void flush();
  void finish_if_done();
  [[nodiscard]] bool busy() const { return !slots_.empty(); }

  net::Link* link_;  // null: the connection is gone
  Hall& hall_;
  front::Gatherer& gatherer_;
  net::Loop& loop_;
  Parser parser_;
  Replies replies_;  // answers that are due, one behind the other; behind them, one being written
  std::size_t due_ = 0;  // bytes of those that are due
  std::optional<front::Caller> caller_;
  front::TenantNames names_;                   // of the caller
  std::optional<front::Admission> admission_;  // of who signed in
  std::string credential_;                     // that it was for
  std::shared_ptr<front::Seat> seat_;
  std::deque<Slot> slots_;  // commands in their order that are not answered yet
  std::uint64_t first_ticket_ = 0;
  std::vector<std::string_view> kept_;  // arguments of the operation being read
  bool paused_ = false;
  bool closing_ = false;
  std::string name_;

  // MULTI: commands are kept and checked; EXEC makes one atomic commit of them.
  bool multi_ = false;
  bool multi_broken_ = false;
  wire::SharedRequest queued_;
  std::vector<Queued> queued_says_;
  bool tell_whole_ = false;  // HX.COMMIT was said
};

}  // namespace hapax::resp
