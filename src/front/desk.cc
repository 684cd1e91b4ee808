#include "front/desk.h"

#include <algorithm>
#include <utility>

#include "base/mutex.h"
#include "base/only_frees.h"
#include "front/audit.h"

namespace hapax::front {

namespace {

Status check_own_names(const wire::Request& request) {
  const bool id = !request.id || from_outside(*request.id);
  const bool transaction = !request.transaction || from_outside(request.transaction->name);
  if (id && transaction) return Ok{};
  return Error{Errc::kInvalidArgument,
               std::string(id ? "the transaction's name" : "the commit's id") +
                   " must not begin with the byte 0x01"};
}

Status admit(const Caller& caller, wire::Request& request, const TenantNames& names) {
  const auto keep = [&](std::string_view bytes) { return request.keep(bytes); };
  HAPAX_CHECK(check_own_names(request));
  for (Op& op : request.ops) {
    HAPAX_CHECK(check(caller, op));
    sign(op, caller, keep);
    scope(op, names, keep);
  }
  if (caller.account != nullptr && request.id) {
    HAPAX_TRY(request.id_window, caller.account->id_window(request.id_window));
  }
  if (caller.account != nullptr && request.ops.size() > 1) {
    caller.account->charge_more(request.ops.size() - 1);
  }
  if (request.id) request.id = names.inside(*request.id, keep);
  if (request.transaction) {
    request.transaction->name = names.inside(request.transaction->name, keep);
  }
  return Ok{};
}

Result<Answer> outside(Result<Answer> answer, const TenantNames& names) {
  if (names.plain()) return answer;
  if (answer) {
    for (Verdict& verdict : answer->verdicts) names.clean(verdict);
    return answer;
  }
  Error error = std::move(answer).error();
  names.clean(error.detail);
  return error;
}

// Why a line of the audit that was to be written with its act was refused, and the act with it.
std::optional<Error> refused_audit(std::size_t own, const std::vector<Verdict>& verdicts) {
  for (std::size_t i = own; i < verdicts.size(); ++i) {
    if (const auto* refused = std::get_if<Refused>(&verdicts[i])) return refused->error;
  }
  return std::nullopt;
}

// Of a stream that was to be made: one that exists with other settings is there, too.
Status is_there(const Result<Answer>& made) {
  if (!made) return made.error();
  const auto* refused = std::get_if<Refused>(&made->verdicts.front());
  if (refused == nullptr || refused->error.code == Errc::kAlreadyExists) return Ok{};
  return refused->error;
}

// Of a commit that was refused its audit.
bool nothing_happened(std::size_t own, const wire::Request& request, const Answer& answer) {
  if (!answer.committed) return true;
  if (request.id) return false;  // Its answer is remembered.
  const auto end = answer.verdicts.begin() + static_cast<std::ptrdiff_t>(own);
  return std::none_of(answer.verdicts.begin(), end, holds);
}

}  // namespace

Status check(const Caller& caller, const Op& op) {
  HAPAX_CHECK(check_right(caller, right_of(op)));
  HAPAX_CHECK(check_names(op));
  HAPAX_CHECK(check_reserved(caller, op));
  return caller.account == nullptr ? Status(Ok{}) : caller.account->check(op);
}

void Desk::commit(const From& from, const Caller& caller, const wire::SharedRequest& request,
                  Then then) {
  const TenantNames names(caller);
  const std::shared_ptr<Minutes> minutes = minutes_of(caller, *request);
  if (Status admitted = admit(caller, *request, names); !admitted) {
    from.loop.post([error = std::move(admitted).error(), then = std::move(then)] { then(error); });
    return;
  }
  if (minutes == nullptr) return submit(from, names, request, nullptr, std::move(then));
  minutes->stream = names.inside(kAuditStream);
  submit_audited(from, names, request, minutes, std::move(then));
}

void Desk::submit_audited(const From& from, const TenantNames& names,
                          const wire::SharedRequest& request,
                          const std::shared_ptr<Minutes>& minutes, Then then) {
  with_stream(minutes->stream,
              [this, from, names, request, minutes, then = std::move(then)](const Status& there) {
                if (there) {
                  write_within(*minutes, *request);
                } else if (!may_go_without(*minutes, *request, there.error().code)) {
                  Result<Answer> refused = there.error();
                  answered(request->ops, refused, std::chrono::steady_clock::now());
                  refused = outside(discreet(std::move(refused), from.reference), names);
                  from.loop.post([request, refused = std::move(refused), then] { then(refused); });
                  return;
                }
                submit(from, names, request, minutes, then);
              });
}

void Desk::submit(const From& from, const TenantNames& names, const wire::SharedRequest& request,
                  const std::shared_ptr<Minutes>& minutes, Then then) {
  const Commit commit = request->commit();
  const Steady since = std::chrono::steady_clock::now();
  store_.submit(commit, [this, from, names, request, minutes, since,
                         then = std::move(then)](Result<Answer> answer) {
    answered(request->ops, answer, since);
    if (minutes != nullptr && prevented(*minutes, *request, answer)) {
      leave_out(*minutes, *request);
      return submit(from, names, request, minutes, then);
    }
    if (minutes != nullptr && worth_another_try(*minutes, *request, answer)) {
      leave_out(*minutes, *request);
      return submit_audited(from, names, request, minutes, then);
    }
    auto shared = std::make_shared<Result<Answer>>(
        outside(discreet(std::move(answer), from.reference), names));
    // The request goes on the loop, too: it may be large, and the store's thread has better to do.
    const auto tell = [&loop = from.loop, request, shared, then] {
      loop.post([request, shared, then] { then(std::move(*shared)); });
    };
    if (minutes == nullptr || !*shared) return tell();
    std::vector<Verdict>& verdicts = (*shared)->verdicts;
    auto refused = refused_audit(minutes->lines.size(), verdicts);
    if (refused && !(*shared)->committed) {
      *shared = *std::move(refused);
      return tell();
    }
    verdicts.resize(std::min(minutes->lines.size(), verdicts.size()));
    // What is repeated was written with the first answer.
    if (minutes->within != 0 || (*shared)->repeated) return tell();
    write_after(minutes, **shared, from.reference, tell);
  });
}

// --- audit

std::shared_ptr<Desk::Minutes> Desk::minutes_of(const Caller& caller,
                                                const wire::Request& request) {
  std::shared_ptr<Minutes> minutes;
  for (std::size_t i = 0; i < request.ops.size(); ++i) {
    if (!is_audited(caller, request.ops[i])) continue;
    if (minutes == nullptr) minutes = std::make_shared<Minutes>();
    minutes->lines.resize(request.ops.size());
    minutes->lines[i] = audit_line(caller, request.ops[i]);
  }
  return minutes;
}

// A13: an act takes its audit with it. In a transaction no act of administration can wait: it is
// refused.
void Desk::write_within(Minutes& minutes, wire::Request& request) {
  if (request.transaction) return;
  for (std::size_t i = 0; i < minutes.lines.size(); ++i) {
    if (minutes.lines[i].empty()) continue;
    request.ops.push_back(Append{.stream = minutes.stream, .payload = minutes.lines[i]});
    if (request.mode == Mode::kEach) request.noted.push_back(i);
    ++minutes.within;
  }
  // They name the actor, and a retry may be another one's.
  request.notes = minutes.within;
}

void Desk::leave_out(Minutes& minutes, wire::Request& request) {
  request.ops.resize(minutes.lines.size());
  request.notes = minutes.within = 0;
  request.noted.clear();
}

// A13: that the store is full must not keep anybody from freeing something. Everything else holds
// with its audit or not at all.
bool Desk::may_go_without(const Minutes& minutes, const wire::Request& request, Errc why) {
  if (why != Errc::kNoSpace && why != Errc::kMemoryBudget) return false;
  for (std::size_t i = 0; i < minutes.lines.size(); ++i) {
    if (!minutes.lines[i].empty() && !base::only_frees(request.ops[i])) return false;
  }
  return true;
}

// Whether it was the audit that could not be written because the disk is full. What frees something
// goes first then, and its audit follows if it can. A7: a tenant that has no room for the audit
// left is refused the act itself; what frees room has a reserve.
bool Desk::prevented(const Minutes& minutes, const wire::Request& request,
                     const Result<Answer>& answer) {
  if (minutes.within == 0 || (answer && answer->committed)) return false;
  const std::optional<Error> why =
      answer ? refused_audit(minutes.lines.size(), answer->verdicts) : answer.error();
  return why && why->code == Errc::kNoSpace && may_go_without(minutes, request, why->code);
}

// Whether the stream that was known is gone, as after a failover, and the commit may be said again
// because nothing of it happened.
bool Desk::worth_another_try(Minutes& minutes, const wire::Request& request,
                             const Result<Answer>& answer) {
  if (minutes.within == 0 || !answer || answer->repeated) return false;
  const std::size_t own = minutes.lines.size();
  const std::optional<Error> refused = refused_audit(own, answer->verdicts);
  if (!refused || refused->code != Errc::kNotFound) return false;
  return forget_stream(minutes) && nothing_happened(own, request, *answer);
}

bool Desk::forget_stream(Minutes& minutes) {
  const base::MutexLock lock(mutex_);
  audits_.erase(minutes.stream);
  return !std::exchange(minutes.made_again, true);
}

// What holds although its audit could not go with it. A13: what is not written then, either, is
// told in the log.
void Desk::write_after(const std::shared_ptr<Minutes>& minutes, const Answer& answer,
                       const std::string& reference, Next next) {
  const auto ops = std::make_shared<std::vector<Op>>();
  for (std::size_t i = 0; i < minutes->lines.size() && i < answer.verdicts.size(); ++i) {
    if (minutes->lines[i].empty() || !holds(answer.verdicts[i])) continue;
    ops->push_back(Append{.stream = minutes->stream, .payload = minutes->lines[i]});
  }
  if (ops->empty()) return next();
  append_lines(minutes, ops, reference, std::move(next));
}

void Desk::append_lines(const std::shared_ptr<Minutes>& minutes,
                        const std::shared_ptr<std::vector<Op>>& lines, const std::string& reference,
                        Next next) {
  store_.submit(
      {.ops = *lines, .mode = Mode::kEach},
      [this, minutes, lines, reference, next = std::move(next)](const Result<Answer>& told) {
        const auto refused = told ? refused_audit(0, told->verdicts) : std::nullopt;
        const bool gone = refused && refused->code == Errc::kNotFound;
        if (gone && forget_stream(*minutes)) {
          return with_stream(minutes->stream, [=, this](const Status&) {
            append_lines(minutes, lines, reference, next);
          });
        }
        tell_unwritten(*lines, told, reference);
        next();
      });
}

void Desk::tell_unwritten(std::span<const Op> lines, const Result<Answer>& answer,
                          const std::string& reference) const {
  if (discretion_ == nullptr) return;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::optional<Error> why;
    if (!answer) {
      why = answer.error();
    } else if (const auto* refused = std::get_if<Refused>(&answer->verdicts[i])) {
      why = refused->error;
    }
    if (!why) continue;
    const std::string line(std::get<Append>(lines[i]).payload);
    discretion_->lacks({why->code, "the audit lacks the line " + line + ": " + why->detail},
                       reference);
  }
}

void Desk::with_stream(const std::string& stream, std::function<void(const Status& there)> next) {
  const bool known = [&] {
    const base::MutexLock lock(mutex_);
    return audits_.contains(stream);
  }();
  if (known) return next(Ok{});  // Not under the lock: it may wait for room in the store.
  const auto name = std::make_shared<std::string>(stream);
  const auto op = std::make_shared<Op>(CreateStream{*name, {}});
  store_.submit({.ops = {op.get(), 1}, .mode = Mode::kEach},
                [this, name, op, next = std::move(next)](const Result<Answer>& answer) {
                  const Status there = is_there(answer);
                  if (there) {
                    const base::MutexLock lock(mutex_);
                    audits_.insert(*name);
                  }
                  next(there);
                });
}

void Desk::audit(const std::string& tenant, std::string line) {
  const auto minutes = std::make_shared<Minutes>();
  minutes->stream = TenantNames(Caller{tenant, "", {}}).inside(kAuditStream);
  minutes->lines.push_back(std::move(line));
  with_stream(minutes->stream, [this, minutes](const Status&) {
    const Answer answer{.committed = true, .verdicts = {Done{}}};
    write_after(minutes, answer, {}, [] {});
  });
}

void Desk::answered(std::span<const Op> ops, const Result<Answer>& answer, Steady since) {
  if (answer && !answer->repeated) ledger_.count(ops, *answer);
  if (meter_ == nullptr) return;
  if (!answer) return meter_->failed();
  meter_->answered(ops, *answer, std::chrono::steady_clock::now() - since);
}

}  // namespace hapax::front
