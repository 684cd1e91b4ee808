#include "access/gatherer.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "access/admission.h"
namespace hapax::access {

namespace {

// One bundle is one commit, and a commit beyond the store's limits fails as a whole: a bundle stays
// far below them, or is one operation. So no asker can fail the others.
constexpr std::size_t kOpsMax = 4'096;
constexpr std::size_t kBytesMax = std::size_t{4} << 20;
constexpr std::size_t kBytesMin = std::size_t{4} << 10;  // to begin with
constexpr std::size_t kSequenceBytesMax = 10;            // of one that is handed out
static_assert(kOpsMax < limits::kCommitOpsMax);
static_assert(4 * kBytesMax < limits::kCommitBytesMax);
constexpr std::size_t kAnswerBytesMax = limits::kAnswerBytesMax / 2;
constexpr std::size_t kRecordFieldsBytes = 256;  // names and numbers of one that is handed out
constexpr std::size_t kReceiveBytesMax =
    limits::kBriefReceiveBytesMax + limits::kReceiveMax * kRecordFieldsBytes;
static_assert(kAnswerBytesMax + kReceiveBytesMax < limits::kAnswerBytesMax);

struct AnswerBytes {
  std::size_t operator()(const Receive& op) const {
    return limits::kBriefReceiveBytesMax +
           std::min<std::size_t>(op.max, limits::kReceiveMax) * kRecordFieldsBytes;
  }
  std::size_t operator()(const Claim&) const { return limits::kBriefResultBytesMax; }
  template <class Other>
  std::size_t operator()(const Other& op) const {
    if constexpr (requires { op.tell_value; }) return op.tell_value ? limits::kRegisterBytesMax : 0;
    return 0;
  }
};

// What it adds besides the text it brings along.
std::size_t own_bytes(const Op& op) {
  const auto* receive = std::get_if<Receive>(&op);
  if (receive == nullptr) return 0;
  return std::min<std::size_t>(receive->max, limits::kReceiveMax) * kSequenceBytesMax;
}

}  // namespace

std::size_t answer_bytes_max(const Op& op) { return std::visit(AnswerBytes{}, op); }

Gatherer::Bundle& Gatherer::bundle() {
  if (bundle_ == nullptr) {
    bundle_ = std::make_shared<Bundle>(last_ops_, std::clamp(last_bytes_, kBytesMin, kBytesMax));
    loop_.at_end_of_turn([this] { submit(When::kAtEndOfTurn); });
  }
  return *bundle_;
}

void Gatherer::make_room(std::size_t bytes) {
  if (bundle_ != nullptr && bundle_->bytes + bytes > kBytesMax) submit(When::kWhileAsked);
}

char* Gatherer::room(std::size_t bytes) {
  Bundle& open = bundle();
  open.bytes += bytes;
  return static_cast<char*>(open.memory.allocate(bytes, 1));
}

std::string_view Gatherer::keep(std::string_view bytes) {
  keep(std::span(&bytes, 1));
  return bytes;
}

void Gatherer::keep(std::span<std::string_view> views) {
  std::size_t bytes = 0;
  for (const std::string_view view : views) bytes += view.size();
  char* next = room(bytes);
  for (std::string_view& view : views) {
    view = {next, view.copy(next, view.size())};
    next += view.size();
  }
}

Status Gatherer::add(const Caller& caller, const TenantNames& names, Op op, Asker& asker,
                     std::uint64_t ticket) {
  HAPAX_CHECK(check(caller, op));
  const auto keep_here = [this](std::string_view bytes) { return keep(bytes); };
  sign(op, caller, keep_here);
  scope(op, names, keep_here);
  Bundle& open = bundle();
  open.ops.push_back(op);
  open.tickets.push_back(ticket);
  if (open.runs.empty() || open.runs.back().asker.get() != &asker) {
    open.runs.push_back({asker.keep(), names});
  }
  ++open.runs.back().ops;
  open.bytes += own_bytes(op);
  open.answer_bytes += answer_bytes_max(op);
  const bool full =
      open.ops.size() >= kOpsMax || open.bytes >= kBytesMax || open.answer_bytes >= kAnswerBytesMax;
  if (full) submit(When::kWhileAsked);
  return Ok{};
}

// At the end of a turn the loop has read all there is: one that may wait may as well lead the
// commit and send the answers at once.
void Gatherer::submit(When when) {
  const std::shared_ptr<Bundle> full = std::exchange(bundle_, nullptr);
  if (full == nullptr || full->ops.empty()) return;
  last_ops_ = full->ops.size();
  last_bytes_ = full->bytes;
  const Commit commit{.ops = full->ops, .mode = Mode::kEach, .detail = Detail::kBrief};
  const Entry::Steady since = std::chrono::steady_clock::now();
  const bool leads = when == When::kAtEndOfTurn && loop_.may_wait();
  auto done = [this, full, since, leads,
               asked_by = std::this_thread::get_id()](Result<Answer> answer) mutable {
    entry_.answered(full->ops, answer, since);
    if (leads && std::this_thread::get_id() == asked_by) return tell(*full, answer);
    auto shared = std::make_shared<Result<Answer>>(std::move(answer));
    loop_.post([this, full, shared] { tell(*full, *shared); });
  };
  if (leads) {
    entry_.store().submit_here(commit, std::move(done));
  } else {
    entry_.store().submit(commit, std::move(done));
  }
}

// A12: each is told in the words, and under the reference, of its own request.
void Gatherer::tell(Bundle& bundle, Result<Answer>& answer) const {
  std::size_t i = 0;
  for (const auto& [asker, names, ops] : bundle.runs) {
    const std::string_view reference = asker->reference();
    for (const std::size_t end = i + ops; i < end; ++i) {
      if (!answer) {
        Error error = entry_.redacted(answer.error(), reference);
        names.clean(error.detail);
        asker->failed(bundle.tickets[i], error);
        continue;
      }
      Verdict& verdict = answer->verdicts[i];
      entry_.redact(verdict, reference);
      names.clean(verdict);
      unscope(bundle.ops[i], names);
      asker->told(bundle.tickets[i], bundle.ops[i], verdict, answer->time);
    }
    asker->told_all();
  }
}

}  // namespace hapax::access
