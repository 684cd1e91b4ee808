#include "webhook/origins.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace hapax::webhook {
namespace {

constexpr std::size_t kUrlsRemembered = 65'536;

}  // namespace

Result<Origin*> Origins::of(const std::string& url) {
  if (const auto known = by_url_.find(url); known != by_url_.end()) return known->second;
  HAPAX_TRY(std::string name, origin_of(url));
  if (by_url_.size() >= kUrlsRemembered) sweep();
  std::unique_ptr<Origin>& origin = origins_[std::move(name)];
  if (!origin) origin = std::make_unique<Origin>(Origin{.number = made_++});
  by_url_.emplace(url, origin.get());
  return origin.get();
}

void Origins::sweep() {
  by_url_.clear();
  std::erase_if(parked_, [](const Origin* at) { return at->place != Origin::Place::kParked; });
  std::erase_if(origins_, [](const auto& entry) {
    const Origin& origin = *entry.second;
    return origin.under_way == 0 && origin.waiting.empty() &&
           origin.place == Origin::Place::kNowhere;
  });
}

void Origins::wait(Origin& origin, WaitingRequest request) {
  origin.waiting.push_back(std::move(request));
  enqueue(origin);
}

// Puts the origin where next() finds it, if it has something to begin.
void Origins::enqueue(Origin& origin) {
  if (origin.waiting.empty() || origin.under_way >= limits_.per_origin) return;
  const bool parked = origin.place == Origin::Place::kParked && origin.pooled == 0;
  if (parked || origin.place == Origin::Place::kReady) return;
  origin.place = Origin::Place::kReady;
  ready_.push_back(&origin);
}

Origin* Origins::pick() {
  while (!parked_.empty() && may_connect()) {
    Origin* origin = parked_.front();
    parked_.pop_front();
    if (origin->place == Origin::Place::kParked) return origin;
  }
  if (ready_.empty()) return nullptr;
  Origin* origin = ready_.front();
  ready_.pop_front();
  return origin;
}

std::optional<Origins::Begun> Origins::next() {
  while (under_way_ < limits_.under_way) {
    Origin* origin = pick();
    if (origin == nullptr) return std::nullopt;
    origin->place = Origin::Place::kNowhere;
    if (origin->waiting.empty() || origin->under_way >= limits_.per_origin) continue;
    if (origin->pooled == 0 && !may_connect()) {
      origin->place = Origin::Place::kParked;
      parked_.push_back(origin);
      continue;
    }
    const Stage stage = origin->pooled > 0 ? Stage::kPooled : Stage::kResolving;
    if (stage == Stage::kPooled) --origin->pooled;
    if (std::size_t* count = count_of(stage)) ++*count;
    ++origin->under_way;
    ++under_way_;
    Begun begun{origin, std::move(origin->waiting.front()), stage};
    origin->waiting.pop_front();
    enqueue(*origin);
    return begun;
  }
  return std::nullopt;
}

std::size_t* Origins::count_of(Stage stage) {
  if (stage == Stage::kResolving) return &resolving_;
  if (stage == Stage::kConnecting) return &connecting_;
  return nullptr;
}

bool Origins::moved(Stage from, Stage to) {
  if (std::size_t* count = count_of(from)) --*count;
  if (std::size_t* count = count_of(to)) ++*count;
  return !parked_.empty() && may_connect();
}

void Origins::ended(Origin& origin, Stage stage, bool kept) {
  HAPAX_ASSERT(origin.under_way > 0 && under_way_ > 0, "a request ends once");
  if (std::size_t* count = count_of(stage)) --*count;
  --origin.under_way;
  --under_way_;
  origin.pooled = kept ? std::min(origin.pooled + 1, limits_.per_origin) : 0;
  enqueue(origin);
}

std::vector<WaitingRequest> Origins::take_waiting() {
  std::vector<WaitingRequest> out;
  for (auto& [name, origin] : origins_) {
    std::ranges::move(origin->waiting, std::back_inserter(out));
    origin->waiting.clear();
  }
  return out;
}

}  // namespace hapax::webhook
