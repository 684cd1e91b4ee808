#include "access/entry.h"

#include <algorithm>
#include <utility>

#include "access/admission.h"
#include "access/audit.h"
#include "access/gatherer.h"
#include "base/assert.h"
#include "base/mutex.h"
#include "base/only_frees.h"

namespace hapax::access {

namespace {

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

Entry::Entry(Store& store, std::size_t readers, metrics::Meter* meter, const Redaction* redaction)
    : store_(store), meter_(meter), redaction_(redaction), readers_(readers) {}

Entry::~Entry() = default;

void Entry::open(std::span<net::Loop* const> loops) {
  gatherers_.resize(loops.size());
  for (net::Loop* const loop : loops) {
    HAPAX_ASSERT(loop->number() < gatherers_.size(), "the loops of a server are numbered from 0");
    gatherers_[loop->number()] = std::make_unique<Gatherer>(*this, *loop);
  }
}

void Entry::send_gathered(const From& from) {
  if (from.follows) gatherer(from.loop).send();
}

void Entry::commit(const From& from, const Caller& caller, const wire::SharedRequest& request,
                   Then then, std::size_t let_in) {
  const TenantNames names(caller);
  const std::shared_ptr<AuditLines> audit = audit_of(caller, *request);
  if (Status admitted = admit(caller, *request, let_in); !admitted) {
    from.loop.post([error = std::move(admitted).error(), then = std::move(then)] { then(error); });
    return;
  }
  const auto keep = [&](std::string_view bytes) { return request->keep(bytes); };
  scope_commit(*request, request->ops, names, keep);
  send_gathered(from);
  if (audit == nullptr) return submit(from, names, request, nullptr, std::move(then));
  audit->stream = names.inside(kAuditStream);
  submit_audited(from, names, request, audit, std::move(then));
}

void Entry::submit_audited(const From& from, const TenantNames& names,
                           const wire::SharedRequest& request,
                           const std::shared_ptr<AuditLines>& audit, Then then) {
  with_stream(audit->stream,
              [this, from, names, request, audit, then = std::move(then)](const Status& there) {
                if (there) {
                  write_within(*audit, *request);
                } else if (!may_go_without(*audit, *request, there.error().code)) {
                  Result<Answer> refused = there.error();
                  answered(request->ops, refused, std::chrono::steady_clock::now());
                  refused = outside(redacted(std::move(refused), from.reference), names);
                  from.loop.post([request, refused = std::move(refused), then] { then(refused); });
                  return;
                }
                submit(from, names, request, audit, then);
              });
}

void Entry::submit(const From& from, const TenantNames& names, const wire::SharedRequest& request,
                   const std::shared_ptr<AuditLines>& audit, Then then) {
  const Commit commit = request->commit();
  const Steady since = std::chrono::steady_clock::now();
  store_.submit(commit, [this, from, names, request, audit, since,
                         then = std::move(then)](Result<Answer> answer) {
    answered(request->ops, answer, since);
    if (audit != nullptr && prevented(*audit, *request, answer)) {
      leave_out(*audit, *request);
      return submit(from, names, request, audit, then);
    }
    if (audit != nullptr && worth_another_try(*audit, *request, answer)) {
      leave_out(*audit, *request);
      return submit_audited(from, names, request, audit, then);
    }
    auto shared = std::make_shared<Result<Answer>>(
        outside(redacted(std::move(answer), from.reference), names));
    // The request goes on the loop, too: it may be large, and the store's thread has better to do.
    const auto tell = [&loop = from.loop, request, shared, then] {
      loop.post([request, shared, then] { then(std::move(*shared)); });
    };
    if (audit == nullptr || !*shared) return tell();
    std::vector<Verdict>& verdicts = (*shared)->verdicts;
    auto refused = refused_audit(audit->lines.size(), verdicts);
    if (refused && !(*shared)->committed) {
      *shared = *std::move(refused);
      return tell();
    }
    verdicts.resize(std::min(audit->lines.size(), verdicts.size()));
    // What is repeated was written with the first answer.
    if (audit->within != 0 || (*shared)->repeated) return tell();
    write_after(audit, **shared, from.reference, tell);
  });
}

// --- audit

std::shared_ptr<Entry::AuditLines> Entry::audit_of(const Caller& caller,
                                                   const wire::Request& request) {
  std::shared_ptr<AuditLines> audit;
  for (std::size_t i = 0; i < request.ops.size(); ++i) {
    if (!is_audited(caller, request.ops[i])) continue;
    if (audit == nullptr) audit = std::make_shared<AuditLines>();
    audit->lines.resize(request.ops.size());
    audit->lines[i] = audit_line(caller, request.ops[i]);
  }
  return audit;
}

// A13: an act takes its audit with it. In a transaction no act of administration can wait: it is
// refused.
void Entry::write_within(AuditLines& audit, wire::Request& request) {
  if (request.transaction) return;
  for (std::size_t i = 0; i < audit.lines.size(); ++i) {
    if (audit.lines[i].empty()) continue;
    request.ops.push_back(Append{.stream = audit.stream, .payload = audit.lines[i]});
    if (request.mode == Mode::kEach) request.noted.push_back(i);
    ++audit.within;
  }
  // They name the actor, and a retry may be another one's.
  request.notes = audit.within;
}

void Entry::leave_out(AuditLines& audit, wire::Request& request) {
  request.ops.resize(audit.lines.size());
  request.notes = audit.within = 0;
  request.noted.clear();
}

// A13: that the store is full must not keep anybody from freeing something. Everything else holds
// with its audit or not at all.
bool Entry::may_go_without(const AuditLines& audit, const wire::Request& request, Errc why) {
  if (why != Errc::kNoSpace && why != Errc::kMemoryBudget) return false;
  for (std::size_t i = 0; i < audit.lines.size(); ++i) {
    if (!audit.lines[i].empty() && !base::only_frees(request.ops[i])) return false;
  }
  return true;
}

// Whether it was the audit that could not be written because the disk is full. What frees something
// goes first then, and its audit follows if it can. A7: a tenant that has no room for the audit
// left is refused the act itself; what frees room has a reserve.
bool Entry::prevented(const AuditLines& audit, const wire::Request& request,
                      const Result<Answer>& answer) {
  if (audit.within == 0 || (answer && answer->committed)) return false;
  const std::optional<Error> why =
      answer ? refused_audit(audit.lines.size(), answer->verdicts) : answer.error();
  return why && why->code == Errc::kNoSpace && may_go_without(audit, request, why->code);
}

// Whether the stream that was known is gone, as after a failover, and the commit may be said again
// because nothing of it happened.
bool Entry::worth_another_try(AuditLines& audit, const wire::Request& request,
                              const Result<Answer>& answer) {
  if (audit.within == 0 || !answer || answer->repeated) return false;
  const std::size_t own = audit.lines.size();
  const std::optional<Error> refused = refused_audit(own, answer->verdicts);
  if (!refused || refused->code != Errc::kNotFound) return false;
  return forget_stream(audit) && nothing_happened(own, request, *answer);
}

bool Entry::forget_stream(AuditLines& audit) {
  const base::MutexLock lock(mutex_);
  audits_.erase(audit.stream);
  return !std::exchange(audit.made_again, true);
}

// What holds although its audit could not go with it. A13: what is not written then, either, is
// told in the log.
void Entry::write_after(const std::shared_ptr<AuditLines>& audit, const Answer& answer,
                        const std::string& reference, Next next) {
  const auto ops = std::make_shared<std::vector<Op>>();
  for (std::size_t i = 0; i < audit->lines.size() && i < answer.verdicts.size(); ++i) {
    if (audit->lines[i].empty() || !holds(answer.verdicts[i])) continue;
    ops->push_back(Append{.stream = audit->stream, .payload = audit->lines[i]});
  }
  if (ops->empty()) return next();
  append_lines(audit, ops, reference, std::move(next));
}

void Entry::append_lines(const std::shared_ptr<AuditLines>& audit,
                         const std::shared_ptr<std::vector<Op>>& lines,
                         const std::string& reference, Next next) {
  store_.submit(
      {.ops = *lines, .mode = Mode::kEach},
      [this, audit, lines, reference, next = std::move(next)](const Result<Answer>& told) {
        const auto refused = told ? refused_audit(0, told->verdicts) : std::nullopt;
        const bool gone = refused && refused->code == Errc::kNotFound;
        if (gone && forget_stream(*audit)) {
          return with_stream(audit->stream, [=, this](const Status&) {
            append_lines(audit, lines, reference, next);
          });
        }
        tell_unwritten(*lines, told, reference);
        next();
      });
}

void Entry::tell_unwritten(std::span<const Op> lines, const Result<Answer>& answer,
                           const std::string& reference) const {
  if (redaction_ == nullptr) return;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::optional<Error> why;
    if (!answer) {
      why = answer.error();
    } else if (const auto* refused = std::get_if<Refused>(&answer->verdicts[i])) {
      why = refused->error;
    }
    if (!why) continue;
    const std::string line(std::get<Append>(lines[i]).payload);
    redaction_->lacks({why->code, "the audit lacks the line " + line + ": " + why->detail},
                      reference);
  }
}

void Entry::with_stream(const std::string& stream, std::function<void(const Status& there)> next) {
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

void Entry::audit(const std::string& tenant, std::string line) {
  const auto audit = std::make_shared<AuditLines>();
  audit->stream = TenantNames(tenant).inside(kAuditStream);
  audit->lines.push_back(std::move(line));
  with_stream(audit->stream, [this, audit](const Status&) {
    const Answer answer{.committed = true, .verdicts = {Done{}}};
    write_after(audit, answer, {}, [] {});
  });
}

void Entry::answered(std::span<const Op> ops, const Result<Answer>& answer, Steady since) {
  if (answer && !answer->repeated) ledger_.count(ops, *answer);
  if (meter_ == nullptr) return;
  if (!answer) return meter_->failed();
  meter_->answered(ops, *answer, std::chrono::steady_clock::now() - since);
}

}  // namespace hapax::access
