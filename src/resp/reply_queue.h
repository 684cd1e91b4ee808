// The answers of one connection, in the order of its commands, whatever order they are known in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <hapax/verdicts.h>

#include "access/left_out.h"
#include "resp/replies.h"

namespace hapax::resp {

// How the verdicts of a command's operations, decided at that log time, are said.
using Say = void (*)(Replies&, std::span<const Verdict>, Time);

// An answer is written into replies(), then given to its command: it is due if every command before
// it is answered, and waits for its turn otherwise.
class ReplyQueue {
 public:
  // Where the next answer is written, behind those that are due.
  [[nodiscard]] Replies& replies() { return replies_; }

  // A command that is answered later, with at most so many bytes (0: few). Answers its ticket.
  std::uint64_t expect(std::size_t promised, Say say = nullptr);
  // What the next that is expected will be called.
  [[nodiscard]] std::uint64_t next() const { return first_ + slots_.size(); }

  // What was written is the answer of a command that came behind all others …
  void answer();
  // … or of this one.
  void answer(std::uint64_t ticket);
  // Says it as the command wanted. REQUIRES: it was expected with a `say`.
  void tell(std::uint64_t ticket, const Verdict& verdict, Time when);

  // What the command is answered is still to be read.
  void leave_out(std::uint64_t ticket, access::LeftOut it);
  // However many answers are large, one is held: it is read when it is the first. Null: the first
  // is no such answer, or is being read.
  [[nodiscard]] bool first_is_left_out() const {
    return !slots_.empty() && slots_.front().left_out != nullptr;
  }
  [[nodiscard]] std::unique_ptr<access::LeftOut> take_left_out();
  [[nodiscard]] std::uint64_t first() const { return first_; }

  // Commands that are not answered.
  [[nodiscard]] std::size_t waiting() const { return slots_.size(); }
  [[nodiscard]] bool empty() const { return slots_.empty(); }
  // Bytes that their answers may have.
  [[nodiscard]] std::size_t promised() const { return promised_; }

  // Bytes that wait to be sent.
  [[nodiscard]] std::size_t due() const { return due_; }
  // Takes back what is due behind the first `begin` bytes. REQUIRES: empty().
  [[nodiscard]] std::string take_back(std::size_t begin);
  // All that is due. REQUIRES: nothing else is being written.
  [[nodiscard]] std::string_view text() const { return replies_.text(); }
  void sent();

 private:
  struct Slot {
    Say say = nullptr;
    bool ready = false;
    std::string reply;
    std::size_t promised = 0;
    std::unique_ptr<access::LeftOut> left_out{};  // until it is being read
  };

  [[nodiscard]] Slot& slot(std::uint64_t ticket) { return slots_[ticket - first_]; }
  std::uint64_t push(Slot slot);
  void pop();

  Replies replies_;  // answers that are due, one behind the other; behind them, one being written
  std::size_t due_ = 0;     // bytes of those that are due
  std::deque<Slot> slots_;  // commands in their order that are not answered; the first is not ready
  std::size_t promised_ = 0;  // of all of them
  std::uint64_t first_ = 0;   // ticket of the first; those behind it have the next ones
};

}  // namespace hapax::resp
