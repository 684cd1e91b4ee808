// What the bodies of commands do to their session.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include <hapax/ops.h>

#include "resp/session.h"
#include "resp/verdict_reply.h"

namespace hapax::resp {

struct Act {
  using Next = Session::Next;
  using Arguments = Session::Arguments;

  static Next ok(Session& session);
  static Next error(Session& session, std::string_view code, std::string_view text);
  static Next refuse(Session& session, const Error& problem);
  // What `replies` was given is the whole answer.
  static Replies& replies(Session& session) { return session.replies_; }
  static Next answered(Session& session);

  [[nodiscard]] static bool in_multi(const Session& session) { return session.multi_; }
  [[nodiscard]] static const access::Caller& caller(const Session& session) {
    return *session.caller_;
  }
  [[nodiscard]] static std::string_view version(const Session& session) {
    return session.context_.version;
  }

  // Copies bytes to where they live until the command is answered.
  [[nodiscard]] static std::string_view keep(Session& session, std::string_view bytes);
  static void keep(Session& session, std::span<std::string_view> views);
  // The views of `op` must be kept already.
  static Next carry_out(Session& session, Op op, Session::Say say);
  // One operation per name, all or nothing, with one answer. `make(name)` makes them.
  template <class Make>
  static Next carry_out_each(Session& session, Arguments names, Session::Say say, Make make) {
    if (names.size() == 1) return carry_out(session, make(keep(session, names.front())), say);
    if (names.size() > limits::kCommitOpsMax) return too_many(session, names.size());
    // Operations before it may not have left for the store yet.
    if (!session.multi_ && session.busy()) return Next::kWaitFirst;
    auto request = session.multi_ ? session.queued_ : std::make_shared<wire::Request>();
    const std::size_t first = request->ops.size();
    for (const std::string_view name : names) request->ops.push_back(make(request->keep(name)));
    if (session.multi_) return queue(session, first, say);
    return commit(session, request, {{say, names.size()}}, Shape::kOne);
  }
  // kWhole: committed, repeated, time_ms and all verdicts, whatever became of it.
  enum class Shape : std::uint8_t { kOne, kArray, kWhole };
  static Next commit(Session& session, const wire::SharedRequest& request,
                     std::vector<Session::Queued> queued, Shape shape);

  // Reads on a thread that may wait. `read(store)` answers a Result, which `tell(replies, value)`
  // says. Nothing is read before everything that came before is answered.
  template <class Read, class Tell>
  static Next ask(Session& session, std::string_view command, Read read, Tell tell) {
    if (session.multi_) {
      return error(session, "ERR", std::string(command) + " is not possible inside MULTI");
    }
    if (session.busy()) return Next::kWaitFirst;
    session.push({nullptr, false, {}, ReadRange{}.bytes_max});
    const std::uint64_t ticket = session.first_ticket_;
    session.context_.entry.ask(
        session.loop_, *session.caller_, std::move(read),
        [self = session.shared_from_this(), ticket, tell = std::move(tell)](const auto& value) {
          if (self->link_ == nullptr) return;
          if (value) {
            tell(self->replies_, *value);
          } else {
            Error clean = value.error();
            self->names_.clean(clean.detail);
            reply_error(self->replies_, clean);
          }
          self->fill(ticket);
          self->told_all();
        });
    return Next::kGoOn;
  }

  // A command that is no operation waits for EXEC.
  static Next queue(Session& session, Arguments words);
  // What waited is forgotten.
  static void drop_queued(Session& session);

 private:
  // The operations of the command, from `first` on, wait for EXEC.
  static Next queue(Session& session, std::size_t first, Session::Say say);
  static Next queue(Session& session, Session::Queued command);
  static Next too_many(Session& session, std::size_t ops);
};

}  // namespace hapax::resp
