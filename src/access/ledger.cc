#include "access/ledger.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/mutex.h"
#include "base/queue_of.h"
#include "base/tenant_frame.h"

namespace hapax::access {

namespace {

constexpr std::size_t kLookedAtOnce = 64;  // names, while nobody can count
constexpr std::size_t kPagesMax = 100;     // written at once
constexpr std::size_t kLooksMax = 3;
constexpr Duration kKeptFor{std::chrono::days{30}};  // since it was last asked; or …
constexpr Duration kKeptForMax{limits::kWindowMax};  // … as long as the longest of its keys
constexpr std::uint64_t kClaimBytes = 88;            // as the store counts a settled one
constexpr std::uint64_t kRegisterBytes = 250;        // beside its name and value

std::string register_of(std::string_view queue) {
  return base::StoreName{base::kOwnTenant, std::string("queue/").append(queue)}.text();
}

// What an operation that asks for a job was told.
struct Check {
  bool duplicate = false;
  QueueCounts::Keys made{};
  Time end{};
};

std::optional<Check> check_in(const Append&, const Verdict& verdict, Time) {
  const bool duplicate = std::holds_alternative<Duplicate>(verdict);
  if (!duplicate && !std::holds_alternative<Appended>(verdict)) return std::nullopt;
  return Check{.duplicate = duplicate};
}

std::optional<Check> check_in(const Claim& op, const Verdict& verdict, Time when) {
  Check check{.duplicate = std::holds_alternative<DuplicateClaim>(verdict)};
  if (check.duplicate) return check;
  const auto* claimed = std::get_if<Claimed>(&verdict);
  if (claimed == nullptr) return std::nullopt;
  if (claimed->attempt == 1) {
    check.made = {1, kClaimBytes};
    check.end = std::max(op.tombstone.end(when), op.retention.end(when));
  }
  return check;
}

// SETNX, and SET with NX.
std::optional<Check> check_in(const Set& op, const Verdict& verdict, Time when) {
  const auto* held = std::get_if<Held>(&verdict);
  if (held == nullptr) return std::nullopt;
  Check check{.duplicate = !held->applied};
  if (held->applied) {
    check.made = {1, op.name.size() + op.value.size() + kRegisterBytes};
    // Of log time, as everything here; expires_at is one of the wall clock.
    check.end = held->expires_at == Time::max() ? Time::max() : when + held->expires_in;
  }
  return check;
}

template <class Other>
std::optional<Check> check_in(const Other&, const Verdict&, Time) {
  return std::nullopt;
}

bool is_audit(const Op& op, base::StoreName queue) {
  return std::holds_alternative<Append>(op) && queue.name.starts_with('$');
}

}  // namespace

void Ledger::count(std::span<const Op> ops, const Answer& answer) {
  const base::MutexLock lock(mutex_);
  std::optional<base::StoreName> run;  // the queue of the latest checks, …
  QueueCounts* counts = nullptr;
  QueueCounts::Asked asked;  // … and what was asked of it
  const auto end_run = [&] {
    if (counts != nullptr) counts->asked(asked, answer.time);
    asked = {};
  };
  for (std::size_t i = 0; i < ops.size() && i < answer.verdicts.size(); ++i) {
    const auto queue = base::queue_of(ops[i]);
    if (!queue || is_audit(ops[i], *queue)) continue;
    const auto check = std::visit(
        [&](const auto& op) { return check_in(op, answer.verdicts[i], answer.time); }, ops[i]);
    if (!check) continue;
    if (queue != run) {
      end_run();
      run = queue;
      counts = find(*queue);
    }
    ++asked.checks;
    if (check->duplicate) ++asked.duplicates;
    if (counts == nullptr || check->made.count == 0) continue;
    counts->remembered(check->made, check->end, answer.time);
  }
  end_run();
}

QueueCounts* Ledger::find(base::StoreName queue) {
  std::string name = queue.text();
  const auto found = books_.find(name);
  if (found != books_.end()) return &found->second.fresh;
  if (register_of(name).size() > limits::kRegisterNameBytesMax) return nullptr;
  // The names of a tenant leave as many free as they are: whoever invents many of them keeps the
  // others from none.
  std::size_t& own = names_by_tenant_[std::string(queue.tenant)];
  if (own >= kNamesMax - books_.size()) return nullptr;
  ++own;
  return &books_[std::move(name)].fresh;
}

Result<QueueCounts> Ledger::of(Store& store, base::StoreName queue) const {
  const std::string name = queue.text();
  const std::string kept_as = register_of(name);
  QueueCounts sum;
  for (std::size_t look = 0; look < kLooksMax; ++look) {
    const std::uint64_t before = [&] {
      base::MutexLock lock(mutex_);
      lock.wait(kept_, [&]() HAPAX_REQUIRES(mutex_) { return !keeping_; });
      return edition_;
    }();
    HAPAX_TRY(const auto kept, store.find_register(kept_as));
    sum = kept ? QueueCounts::parse(kept->value).value_or(QueueCounts()) : QueueCounts();
    const base::MutexLock lock(mutex_);
    if (const auto found = books_.find(name); found != books_.end()) sum.add(found->second.fresh);
    // Else some of it was written between the two looks.
    if (edition_ == before && !keeping_) break;
  }
  return sum;
}

// Who counts commits waits for a look at some of the names, never for one at all of them.
template <class Look>
std::string Ledger::look_at_some(const std::string& from, const Look& look) const {
  const base::MutexLock lock(mutex_);
  auto at = books_.lower_bound(from);
  for (std::size_t i = 0; i < kLookedAtOnce && at != books_.end(); ++i, ++at) {
    if (!look(at->first, at->second)) break;
  }
  return at == books_.end() ? std::string() : at->first;
}

std::size_t Ledger::names() const {
  const base::MutexLock lock(mutex_);
  return books_.size();
}

std::vector<Ledger::Page> Ledger::pages() {
  std::size_t left = names();
  std::vector<Page> pages;
  const auto take = [&](const std::string& queue, const Book& book) {
    if (left == 0 || pages.size() == kPagesMax) return false;
    --left;
    if (!book.fresh.empty()) pages.push_back({queue, book.fresh, {}, register_of(queue), ""});
    return true;
  };
  // Everybody's turn comes, however many are busy; and nobody's comes twice, since names are only
  // added.
  while (left != 0 && pages.size() < kPagesMax) next_ = look_at_some(next_, take);
  return pages;
}

bool Ledger::keep(Store& store) {
  std::vector<Page> pages = this->pages();
  if (pages.empty()) return false;
  std::vector<Op> ops;
  for (const Page& page : pages) ops.push_back(Get{.name = page.name});
  const Result<Answer> found = store.commit({.ops = ops, .mode = Mode::kEach});
  if (!found || found->verdicts.size() != pages.size()) return false;
  for (std::size_t i = 0; i < pages.size(); ++i) {
    const auto* held = std::get_if<Held>(&found->verdicts[i]);
    if (held == nullptr) return false;
    ops[i] = write(pages[i], *held, found->time);
  }
  set_keeping(true);
  const Result<Answer> answer = store.commit({.ops = ops, .mode = Mode::kEach});
  const bool some = answer && settle(pages, *answer);
  set_keeping(false);
  return some;
}

bool Ledger::settle(const std::vector<Page>& pages, const Answer& answer) {
  bool some = false;
  for (std::size_t i = 0; i < pages.size() && i < answer.verdicts.size(); ++i) {
    // Another process may have been quicker: then it is for the next time.
    if (!std::holds_alternative<Registered>(answer.verdicts[i])) continue;
    settle(pages[i]);
    some = true;
  }
  return some;
}

// What is written meanwhile is in the store and still counted as fresh: of() would count it twice.
void Ledger::set_keeping(bool keeping) {
  {
    const base::MutexLock lock(mutex_);
    keeping_ = keeping;
  }
  if (!keeping) kept_.notify_all();
}

Op Ledger::write(Page& page, const Held& held, Time now) {
  page.sum = QueueCounts::parse(held.value.value_or("")).value_or(QueueCounts());
  page.sum.add(page.fresh);
  page.sum.forget(now);
  page.text = page.sum.text();
  const Time end = std::clamp(page.sum.latest_end(), now + kKeptFor, now + kKeptForMax);
  return Set{.name = page.name,
             .value = page.text,
             .mode = SetMode::kVersion,
             .expected = held.version,
             .expiry = {Expiry::Kind::kAfter, {}, end - now}};
}

void Ledger::settle(const Page& page) {
  const base::MutexLock lock(mutex_);
  Book& book = books_[page.queue];
  book.fresh.take(page.fresh);
  book.kept = page.sum;
  ++edition_;
}

void Ledger::each_key_bytes(Time now, const Visit& visit) const {
  std::string from;
  do {
    std::vector<std::pair<std::string, std::uint64_t>> some;
    from = look_at_some(from, [&](const std::string& queue, const Book& book) {
      some.emplace_back(queue, book.fresh.keys(now).bytes + book.kept.keys(now).bytes);
      return true;
    });
    for (const auto& [queue, bytes] : some) visit(queue, bytes);
  } while (!from.empty());
}

}  // namespace hapax::access
