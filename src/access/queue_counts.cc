#include "access/queue_counts.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "base/assert.h"
#include "wire/json_text.h"
#include "wire/strict_json.h"

namespace hapax::access {

namespace {

std::int64_t hour_of(Time time) { return to_ms(time) / 3'600'000; }

void add_to(QueueCounts::Asked& sum, const QueueCounts::Asked& more) {
  sum.checks += more.checks;
  sum.duplicates += more.duplicates;
}
void add_to(QueueCounts::Keys& sum, const QueueCounts::Keys& more) {
  sum.count += more.count;
  sum.bytes += more.bytes;
}
void take_from(QueueCounts::Asked& sum, const QueueCounts::Asked& less) {
  HAPAX_ASSERT(sum.checks >= less.checks, "what is taken was added");
  HAPAX_ASSERT(sum.duplicates >= less.duplicates, "what is taken was added");
  sum.checks -= less.checks;
  sum.duplicates -= less.duplicates;
}
void take_from(QueueCounts::Keys& sum, const QueueCounts::Keys& less) {
  HAPAX_ASSERT(sum.count >= less.count, "what is taken was added");
  HAPAX_ASSERT(sum.bytes >= less.bytes, "what is taken was added");
  sum.count -= less.count;
  sum.bytes -= less.bytes;
}

template <class Key, class Value>
void add_all(std::map<Key, Value>& to, const std::map<Key, Value>& from) {
  for (const auto& [key, value] : from) add_to(to[key], value);
}
template <class Key, class Value>
void take_all(std::map<Key, Value>& to, const std::map<Key, Value>& from) {
  for (const auto& [key, value] : from) {
    Value& left = to[key];
    take_from(left, value);
    if (left == Value{}) to.erase(key);
  }
}

// Slices are an eighth to a sixteenth of what is left, so that there are few of them.
QueueCounts::Slice slice_of(Time end, Time when) {
  if (end == Time::max()) return {to_ms(end), 0};
  const std::int64_t left = std::max<std::int64_t>((end - when).count(), 8);
  const auto width =
      static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(left) / 8));
  return {to_ms(end) / width * width, width};
}

// --- as text

std::string list(std::initializer_list<std::int64_t> numbers) {
  wire::JsonArray out;
  for (const std::int64_t number : numbers) out.add(std::to_string(number));
  return out.text();
}

std::int64_t whole(std::uint64_t number) { return static_cast<std::int64_t>(number); }

using Numbers = std::vector<std::int64_t>;

// The lists of that many numbers each under the name; nothing if it is something else.
std::optional<std::vector<Numbers>> lists_in(const wire::JsonValue& json, std::string_view name,
                                             std::size_t size) {
  const wire::JsonValue* const member = json.find(name);
  const auto* const all = member == nullptr ? nullptr : member->get<wire::JsonValue::Array>();
  if (all == nullptr) return std::nullopt;
  std::vector<Numbers> lists;
  for (const wire::JsonValue& one : *all) {
    const auto* const items = one.get<wire::JsonValue::Array>();
    if (items == nullptr || items->size() != size) return std::nullopt;
    Numbers& numbers = lists.emplace_back();
    for (const wire::JsonValue& item : *items) {
      const auto* const number = item.get<std::int64_t>();
      if (number == nullptr || *number < 0) return std::nullopt;
      numbers.push_back(*number);
    }
  }
  return lists;
}

std::uint64_t count_of(std::int64_t number) { return static_cast<std::uint64_t>(number); }

}  // namespace

void QueueCounts::asked(const Asked& more, Time when) {
  add_to(in_all_, more);
  add_to(hours_[hour_of(when)], more);
}

void QueueCounts::remembered(const Keys& more, Time end, Time when) {
  add_to(slices_[slice_of(end, when)], more);
}

void QueueCounts::add(const QueueCounts& other) {
  add_to(in_all_, other.in_all_);
  add_all(hours_, other.hours_);
  add_all(slices_, other.slices_);
}

void QueueCounts::take(const QueueCounts& other) {
  take_from(in_all_, other.in_all_);
  take_all(hours_, other.hours_);
  take_all(slices_, other.slices_);
}

void QueueCounts::forget(Time now) {
  std::erase_if(hours_, [&](const auto& one) { return one.first <= hour_of(now) - 24; });
  std::erase_if(slices_, [&](const auto& one) { return one.first.is_over(now); });
}

QueueCounts::Asked QueueCounts::last_24h(Time now) const {
  Asked sum;
  for (const auto& [hour, asked] : hours_) {
    if (hour > hour_of(now) - 24) add_to(sum, asked);
  }
  return sum;
}

QueueCounts::Keys QueueCounts::keys(Time now) const {
  Keys sum;
  for (const auto& [slice, keys] : slices_) {
    if (!slice.is_over(now)) add_to(sum, keys);
  }
  return sum;
}

Time QueueCounts::latest_end() const {
  Time latest{};
  for (const auto& [slice, keys] : slices_) {
    const bool never = slice.start() == Time::max();
    latest = std::max(latest, never ? Time::max() : slice.start() + Duration{slice.width_ms});
  }
  return latest;
}

std::string QueueCounts::text() const {
  wire::JsonArray hours;
  for (const auto& [hour, asked] : hours_) {
    hours.add(list({hour, whole(asked.checks), whole(asked.duplicates)}));
  }
  wire::JsonArray slices;
  for (const auto& [slice, keys] : slices_) {
    slices.add(list({slice.start_ms, slice.width_ms, whole(keys.count), whole(keys.bytes)}));
  }
  wire::JsonArray in_all;
  in_all.add(list({whole(in_all_.checks), whole(in_all_.duplicates)}));
  return wire::JsonObject()
      .raw("in_all", in_all.text())
      .raw("hours", hours.text())
      .raw("keys", slices.text())
      .text();
}

std::optional<QueueCounts> QueueCounts::parse(std::string_view text) {
  const auto json = wire::read_strict_json(text);
  if (!json) return std::nullopt;
  const auto in_all = lists_in(*json, "in_all", 2);
  const auto hours = lists_in(*json, "hours", 3);
  const auto slices = lists_in(*json, "keys", 4);
  if (!in_all || in_all->size() != 1 || !hours || !slices) return std::nullopt;
  QueueCounts counts;
  counts.in_all_ = {count_of(in_all->front()[0]), count_of(in_all->front()[1])};
  for (const Numbers& one : *hours) {
    add_to(counts.hours_[one[0]], {count_of(one[1]), count_of(one[2])});
  }
  for (const Numbers& one : *slices) {
    add_to(counts.slices_[{one[0], one[1]}], {count_of(one[2]), count_of(one[3])});
  }
  return counts;
}

}  // namespace hapax::access
