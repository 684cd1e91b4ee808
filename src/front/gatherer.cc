#include "front/gatherer.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace hapax::front {

namespace {

// One bundle is one commit: far below the store's limits, so that no asker can fail the others.
constexpr std::size_t kOpsMax = 4'096;
constexpr std::size_t kBytesMax = std::size_t{4} << 20;
constexpr std::size_t kBytesMin = std::size_t{4} << 10;  // to begin with

}  // namespace

Gatherer::Bundle& Gatherer::bundle() {
  if (bundle_ == nullptr) {
    bundle_ = std::make_shared<Bundle>(last_ops_, std::max(last_bytes_, kBytesMin));
    loop_.at_end_of_turn([this] { submit(When::kAtEndOfTurn); });
  }
  return *bundle_;
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

void Gatherer::add(const Op& op, Asker& asker, std::uint64_t ticket) {
  Bundle& open = bundle();
  open.ops.push_back(op);
  open.tickets.push_back(ticket);
  if (open.runs.empty() || open.runs.back().asker.get() != &asker) {
    open.runs.push_back({asker.keep()});
  }
  ++open.runs.back().ops;
  if (open.ops.size() >= kOpsMax || open.bytes >= kBytesMax) submit(When::kWhileAsked);
}

// At the end of a turn the loop has read all there is: it may as well lead the commit and send the
// answers at once.
void Gatherer::submit(When when) {
  const std::shared_ptr<Bundle> full = std::exchange(bundle_, nullptr);
  if (full == nullptr || full->ops.empty()) return;
  last_ops_ = full->ops.size();
  last_bytes_ = full->bytes;
  const Commit commit{.ops = full->ops, .mode = Mode::kEach};
  const Desk::Steady since = std::chrono::steady_clock::now();
  const bool at_end = when == When::kAtEndOfTurn;
  auto done = [this, full, since, at_end,
               asked_by = std::this_thread::get_id()](Result<Answer> answer) mutable {
    desk_.answered(full->ops, answer, since);
    if (at_end && std::this_thread::get_id() == asked_by) return tell(*full, answer);
    auto shared = std::make_shared<Result<Answer>>(std::move(answer));
    loop_.post([full, shared] { tell(*full, *shared); });
  };
  if (at_end) {
    desk_.store().submit_here(commit, std::move(done));
  } else {
    desk_.store().submit(commit, std::move(done));
  }
}

void Gatherer::tell(const Bundle& bundle, Result<Answer>& answer) {
  std::size_t i = 0;
  for (const auto& [asker, ops] : bundle.runs) {
    for (const std::size_t end = i + ops; i < end; ++i) {
      if (answer) {
        asker->told(bundle.tickets[i], answer->verdicts[i], answer->time);
      } else {
        asker->failed(bundle.tickets[i], answer.error());
      }
    }
    asker->told_all();
  }
}

}  // namespace hapax::front
