// What a command knows of its connection: who asks, how it is answered, what waits for EXEC, and
// the store. It knows nothing of bytes that come and go.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hapax/ops.h>
#include <hapax/store.h>

#include "access/gatherer.h"
#include "resp/commit_reply.h"
#include "resp/multi.h"
#include "resp/reply_queue.h"
#include "resp/session_context.h"
#include "resp/signed_in.h"

namespace hapax::resp {

// Words of a command: its name and its arguments, or some of these.
using CommandWords = std::span<const std::string_view>;
enum class Next : std::uint8_t { kGoOn, kWaitFirst };  // kWaitFirst: again when all is answered

class Conversation {
 public:
  // `asker` is the session: it is kept alive while the store is asked, told the verdicts of single
  // operations, and told_all() behind every answer that comes later.
  Conversation(SessionContext& context, access::Gatherer& gatherer, net::Link& link,
               access::Asker& asker);

  // --- answering: each is the whole answer of a command

  Next ok();
  // Inside MULTI it spoils EXEC.
  Next error(std::string_view code, std::string_view text);
  Next refuse(const Error& problem);
  // What was written into replies().
  Next answered();
  [[nodiscard]] Replies& replies() { return answers_.replies(); }

  // Some command is not answered yet.
  [[nodiscard]] bool busy() const { return !answers_.empty(); }
  [[nodiscard]] ReplyQueue& answers() { return answers_; }
  [[nodiscard]] const ReplyQueue& answers() const { return answers_; }
  // Of a command that was expected to be answered.
  void fail(std::uint64_t ticket, const Error& error);

  // --- who asks

  [[nodiscard]] SignedIn& who() { return who_; }
  [[nodiscard]] const SignedIn& who() const { return who_; }
  [[nodiscard]] const access::Caller& caller() const { return who_.caller(); }
  [[nodiscard]] std::string_view version() const { return context_.version; }
  // The name it gave itself; empty: none.
  [[nodiscard]] const std::string& client_name() const { return client_name_; }
  void name_client(std::string_view name) { client_name_ = name; }

  // --- operations. Their views must be kept first.

  // So many bytes have become a command: what is kept next is its own.
  void begin(std::size_t bytes);
  // Copies bytes to where they live until the command is answered.
  [[nodiscard]] std::string_view keep(std::string_view bytes);
  // All arguments; where the copies are listed holds until the next call.
  [[nodiscard]] CommandWords keep_all(CommandWords arguments);
  // Where lists of headers live as long.
  [[nodiscard]] std::deque<std::vector<Header>>& headers();
  Next carry_out(Op op, Say say);
  // One operation per name, all or nothing, with one answer. `make(name)` makes them.
  template <class Make>
  Next carry_out_each(CommandWords names, Say say, Make make);
  // `let_in` of the operations were charged already.
  Next commit(const wire::SharedRequest& request, std::vector<CommitPart> commands,
              CommitShape shape, std::size_t let_in = 1);

  // Reads on a thread that may wait. `read(store)` answers a Result, which `tell(replies, value)`
  // says. Nothing is read before everything that came before is answered.
  template <class Read, class Tell>
  Next ask(std::string_view command, Read read, Tell tell);

  // --- MULTI: while it is there, commands wait for EXEC

  [[nodiscard]] std::optional<Multi>& multi() { return multi_; }
  // A command that is no operation waits.
  Next queue(CommandWords words);
  // A5. What waits is carried out for the caller who said it, or not at all.
  void sign_in_again();

  // --- the end

  // No more commands are heard; those that were are answered.
  void end();
  [[nodiscard]] bool ending() const { return stage_ != Stage::kOpen; }
  // Nobody is there to be told anything.
  void lose();
  [[nodiscard]] bool lost() const { return stage_ == Stage::kLost; }

 private:
  enum class Stage : std::uint8_t { kOpen, kEnding, kLost };

  // The operations of the command, from `first` on, wait for EXEC.
  Next queue_ops(std::size_t first, Say say);
  Next queue(CommitPart command);

  SessionContext& context_;
  access::Gatherer& gatherer_;
  net::Loop& loop_;
  access::Asker& asker_;
  ReplyQueue answers_;
  SignedIn who_;
  std::string client_name_;
  std::optional<Multi> multi_;
  std::vector<std::string_view> kept_;  // arguments of the operation being read
  std::size_t command_bytes_ = 0;
  Stage stage_ = Stage::kOpen;
};

template <class Make>
Next Conversation::carry_out_each(CommandWords names, Say say, Make make) {
  if (names.size() == 1) return carry_out(make(keep(names.front())), say);
  if (names.size() > limits::kCommitOpsMax) return refuse(too_many_ops(names.size()));
  // Operations before it may not have left for the store yet.
  if (!multi_ && busy()) return Next::kWaitFirst;
  const auto request = multi_ ? multi_->shared() : std::make_shared<wire::Request>();
  const std::size_t first = request->ops.size();
  for (const std::string_view name : names) request->ops.push_back(make(request->keep(name)));
  if (multi_) return queue_ops(first, say);
  return commit(request, {{say, names.size()}}, CommitShape::kOne);
}

template <class Read, class Tell>
Next Conversation::ask(std::string_view command, Read read, Tell tell) {
  if (multi_) return error("ERR", std::string(command) + " is not possible inside MULTI");
  if (busy()) return Next::kWaitFirst;
  const std::uint64_t ticket = answers_.expect(ReadRange{}.bytes_max);
  context_.entry.ask(
      loop_, caller(), std::move(read),
      [this, alive = asker_.keep(), ticket, tell = std::move(tell)](const auto& value) {
        if (lost()) return;
        if (value) {
          tell(replies(), *value);
          answers_.answer(ticket);
        } else {
          fail(ticket, value.error());
        }
        alive->told_all();
      });
  return Next::kGoOn;
}

}  // namespace hapax::resp
