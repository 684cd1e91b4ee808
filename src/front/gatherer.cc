#include "front/gatherer.h"

#include <cstring>
#include <thread>
#include <utility>

namespace hapax::front {

namespace {

// One bundle is one commit: far below the store's limits, so that no asker can fail the others.
constexpr std::size_t kOpsMax = 4'096;
constexpr std::size_t kBytesMax = std::size_t{4} << 20;

}  // namespace

Gatherer::Bundle& Gatherer::bundle() {
  if (bundle_ == nullptr) {
    bundle_ = std::make_shared<Bundle>();
    loop_.at_end_of_turn([this] { submit(When::kAtEndOfTurn); });
  }
  return *bundle_;
}

std::string_view Gatherer::keep(std::string_view bytes) {
  if (bytes.empty()) return {};
  Bundle& open = bundle();
  auto* copy = static_cast<char*>(open.memory.allocate(bytes.size(), 1));
  open.bytes += bytes.size();
  std::memcpy(copy, bytes.data(), bytes.size());
  return {copy, bytes.size()};
}

void Gatherer::add(const Op& op, std::shared_ptr<Asker> asker, std::uint64_t ticket) {
  Bundle& open = bundle();
  open.ops.push_back(op);
  open.askers.emplace_back(std::move(asker), ticket);
  if (open.ops.size() >= kOpsMax || open.bytes >= kBytesMax) submit(When::kWhileAsked);
}

// At the end of a turn the loop has read all there is: it may as well lead the commit and send the
// answers at once.
void Gatherer::submit(When when) {
  const std::shared_ptr<Bundle> full = std::exchange(bundle_, nullptr);
  if (full == nullptr || full->ops.empty()) return;
  const Commit commit{.ops = full->ops, .mode = Mode::kEach};
  const Desk::Steady since = std::chrono::steady_clock::now();
  const bool at_end = when == When::kAtEndOfTurn;
  auto done = [this, full, since, at_end,
               asked_by = std::this_thread::get_id()](Result<Answer> answer) {
    desk_.answered(full->ops, answer, since);
    if (at_end && std::this_thread::get_id() == asked_by) return tell(*full, answer);
    auto shared = std::make_shared<Result<Answer>>(std::move(answer));
    loop_.post([this, full, shared] { tell(*full, *shared); });
  };
  if (at_end) {
    desk_.store().submit_here(commit, std::move(done));
  } else {
    desk_.store().submit(commit, std::move(done));
  }
}

void Gatherer::tell(const Bundle& bundle, const Result<Answer>& answer) {
  for (std::size_t i = 0; i < bundle.askers.size(); ++i) {
    const auto& [asker, ticket] = bundle.askers[i];
    if (answer) {
      asker->told(ticket, answer->verdicts[i], answer->time);
    } else {
      asker->failed(ticket, answer.error());
    }
  }
}

}  // namespace hapax::front
