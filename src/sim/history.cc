#include "sim/history.h"

#include <algorithm>

#include "base/format.h"

namespace hapax::sim {

namespace {

std::string text(std::uint64_t number) { return std::to_string(number); }
std::string text(std::string_view bytes) { return std::string(bytes); }

// The front of a payload names it; the rest only fills space.
std::string front(std::string_view payload) {
  return text(payload.substr(0, std::min<std::size_t>(payload.find(':'), 24)));
}

struct DescribeOp {
  std::string operator()(const Append& op) const {
    std::string line = "append " + text(op.stream) + " " + front(op.payload);
    if (op.id) line += " id " + text(*op.id);
    if (op.group) line += " group " + text(*op.group);
    if (op.producer) {
      line += " producer " + text(op.producer->name) + "/" + text(op.producer->epoch.value) + "/" +
              text(op.producer->sequence.value);
    }
    if (op.expect) line += " expecting " + text(op.expect->last.value);
    return line;
  }
  std::string operator()(const Claim& op) const {
    return base::format("claim {} {} lease {}{}", text(op.key), front(op.content), op.lease.count(),
                        op.on_lapse == OnLapse::kUnknown ? ", a lapse is unknown" : "");
  }
  std::string operator()(const Renew& op) const {
    return "renew " + text(op.key) + " fence " + text(op.fence.value);
  }
  std::string operator()(const Settle& op) const {
    return base::format("settle {} fence {} as {} {}", text(op.key), text(op.fence.value),
                        static_cast<int>(op.outcome), front(op.result.body));
  }
  std::string operator()(const Resolve& op) const {
    return base::format("resolve {} as {}", text(op.key), static_cast<int>(op.resolution));
  }
  std::string operator()(const Forget& op) const { return "forget " + text(op.key); }
  std::string operator()(const Receive& op) const {
    return base::format("receive {}/{} max {} lease {}", text(op.stream), text(op.consumer),
                        text(op.max), op.lease.count());
  }
  std::string operator()(const Ack& op) const { return receipt("ack", op); }
  std::string operator()(const Nack& op) const { return receipt("nack", op); }
  std::string operator()(const Extend& op) const { return receipt("extend", op); }
  std::string operator()(const Seek& op) const {
    return "seek " + text(op.stream) + "/" + text(op.consumer) + " to " + text(op.to.value);
  }
  std::string operator()(const Redrive& op) const {
    return "redrive " + text(op.dead_letters) + " " + text(op.sequence.value) +
           (op.to == RedriveTo::kAll ? " to all" : "");
  }
  std::string operator()(const Advance& op) const {
    return "advance " + text(op.source) + " '" + text(op.expected) + "' to '" + text(op.to) +
           "' epoch " + text(op.epoch.value);
  }
  std::string operator()(const Set& op) const {
    return "set " + text(op.name) + " expecting " + text(op.expected.value);
  }
  std::string operator()(const Get& op) const { return "get " + text(op.name); }
  std::string operator()(const Unset& op) const { return "unset " + text(op.name); }
  std::string operator()(const Expire& op) const {
    return base::format("expire {} after {}", text(op.name), op.expiry.after.count());
  }
  std::string operator()(const Add& op) const {
    return base::format("add {} to {}", op.by, text(op.name));
  }
  std::string operator()(const Trim& op) const {
    return "trim " + text(op.stream) + " before " + text(op.before.value);
  }
  std::string operator()(const OpenProducer& op) const {
    return "open " + text(op.stream) + "/" + text(op.producer);
  }
  std::string operator()(const Begin& op) const { return "begin " + text(op.transaction); }
  std::string operator()(const End& op) const {
    return std::string(op.finish == Finish::kCommit ? "commit " : "abort ") + text(op.transaction) +
           " epoch " + text(op.epoch.value);
  }
  template <class Rest>
  std::string operator()(const Rest&) const {
    return "set up";
  }

 private:
  template <class WithReceipt>
  static std::string receipt(std::string_view verb, const WithReceipt& op) {
    return text(verb) + " " + text(op.stream) + "/" + text(op.consumer) + " " +
           text(op.receipt.sequence.value) + " token " + text(op.receipt.token.value);
  }
};

struct DescribeVerdict {
  std::string operator()(const Appended& v) const { return "fresh " + text(v.sequence.value); }
  std::string operator()(const Duplicate& v) const {
    return base::format("duplicate {} until {}", text(v.sequence.value), to_ms(v.expires_at));
  }
  std::string operator()(const Claimed& v) const {
    return base::format("claimed fence {} until {}", text(v.fence.value), to_ms(v.lease_until));
  }
  std::string operator()(const Fenced& v) const { return "fenced by " + text(v.current); }
  std::string operator()(const Began& v) const { return "began epoch " + text(v.epoch.value); }
  std::string operator()(const Opened& v) const {
    return "opened epoch " + text(v.epoch.value) + " after " + text(v.former.value) + "/" +
           text(v.former_next.value);
  }
  std::string operator()(const Registered& v) const {
    return "registered version " + text(v.version.value);
  }
  std::string operator()(const Held& v) const {
    return base::format("{} version {} until {}{}", v.applied ? "holds" : "unchanged",
                        text(v.version.value), to_ms(v.expires_at),
                        v.number ? base::format(" number {}", *v.number) : "");
  }
  std::string operator()(const Received& v) const {
    std::string line = "received";
    for (const Delivery& one : v.deliveries) {
      line += " " + text(one.record.sequence.value) + "/" + text(one.token.value) + "#" +
              text(one.attempt);
    }
    return line;
  }
  std::string operator()(const Refused& v) const { return v.error.text(); }
  std::string operator()(const Stale& v) const { return v.acked ? "stale, acked" : "stale"; }
  template <class Rest>
  std::string operator()(const Rest& rest) const {
    return text(hapax::word_of(Verdict{rest}));
  }
};

void add_verdict(RunTrace& trace, const Verdict& verdict) {
  trace.add(verdict.index());
  trace.add(describe(verdict));
}

}  // namespace

std::string_view word_of(Ending ending) {
  switch (ending) {
    case Ending::kPending:
      return "pending";
    case Ending::kOk:
      return "ok";
    case Ending::kFail:
      return "fail";
    case Ending::kUnknown:
      return "unknown";
  }
  return "";
}

Attempt& History::invoke(std::shared_ptr<const SimRequest> request) {
  Attempt& attempt = attempts_.emplace_back();
  attempt.invoked = ++events_;
  trace_.add(request->number);
  attempt.request = std::move(request);
  pending_.push_back(&attempt);
  return attempt;
}

void History::answer(Attempt& attempt, Result<Answer> answer) {
  attempt.ended = ++events_;
  std::erase(pending_, &attempt);
  ended_.push_back(&attempt);
  trace_.add(attempt.request->number);
  if (answer.ok()) {
    attempt.ending = Ending::kOk;
    attempt.answer = *std::move(answer);
    trace_.add(static_cast<std::uint64_t>(to_ms(attempt.answer.time)));
    for (const Verdict& verdict : attempt.answer.verdicts) add_verdict(trace_, verdict);
    return;
  }
  // Every other error promises that nothing happened.
  const Errc code = answer.error().code;
  attempt.ending = code == Errc::kOutcomeUnknown ? Ending::kUnknown : Ending::kFail;
  attempt.error = std::move(answer).error();
  trace_.add(static_cast<std::uint64_t>(code));
}

std::vector<const Attempt*> History::crash() {
  for (Attempt* attempt : pending_) {
    attempt->ending = Ending::kUnknown;
    attempt->ended = ++events_;
    ended_.push_back(attempt);
  }
  std::vector<const Attempt*> lost(pending_.begin(), pending_.end());
  pending_.clear();
  return lost;
}

std::string describe(const Op& op) { return std::visit(DescribeOp{}, op); }
std::string describe(const Verdict& verdict) { return std::visit(DescribeVerdict{}, verdict); }

std::string describe(const Attempt& attempt) {
  const SimRequest& request = *attempt.request;
  std::string line = "c" + text(request.client) + " #" + text(request.number) + " " +
                     text(word_of(attempt.ending));
  if (request.id) line += " id " + text(*request.id);
  if (request.transaction) line += " in " + text(request.transaction->name);
  if (request.ops.size() > 1) line += request.mode == Mode::kAtomic ? " all" : " each";
  if (attempt.ending == Ending::kOk) {
    base::append_format(line, " at {}", to_ms(attempt.answer.time));
    if (!attempt.answer.committed) line += " not committed";
    if (attempt.answer.repeated) line += " repeated";
  }
  if (attempt.error) line += " " + attempt.error->text();
  for (std::size_t i = 0; i < request.ops.size(); ++i) {
    line += " | " + describe(request.ops[i]);
    if (attempt.ending == Ending::kOk && i < attempt.answer.verdicts.size()) {
      line += " -> " + describe(attempt.answer.verdicts[i]);
    }
  }
  return line;
}

}  // namespace hapax::sim
