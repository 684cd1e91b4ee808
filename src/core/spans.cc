#include "core/spans.h"

#include <iterator>

#include "base/assert.h"

namespace hapax::core {

void Spans::add(Span span) {
  HAPAX_ASSERT(span.first <= span.last, "a span has a sequence");
  const auto after = spans_.lower_bound(span.first);
  HAPAX_ASSERT(after == spans_.end() || after->first > span.last, "spans are disjoint");
  const bool joins_after = after != spans_.end() && after->first == span.last.next() &&
                           after->second.label == span.label;
  const auto before = after == spans_.begin() ? spans_.end() : std::prev(after);
  bool joins_before = false;
  if (before != spans_.end()) {
    HAPAX_ASSERT(before->second.last < span.first, "spans are disjoint");
    joins_before = before->second.last.next() == span.first && before->second.label == span.label;
  }
  const Sequence last = joins_after ? after->second.last : span.last;
  if (joins_before) {
    before->second.last = last;
    if (joins_after) spans_.erase(after);
    return;
  }
  if (joins_after) {
    auto node = spans_.extract(after);
    node.key() = span.first;
    spans_.insert(std::move(node));
    return;
  }
  spans_.emplace_hint(after, span.first, Rest{last, span.label});
}

void Spans::remove(Sequence first, Sequence last) {
  HAPAX_ASSERT(first <= last, "a span has a sequence");
  auto at = spans_.upper_bound(first);
  HAPAX_ASSERT(at != spans_.begin(), "what is removed is in the set");
  --at;
  HAPAX_ASSERT(at->second.last >= last, "what is removed is in one span");
  const Rest rest = at->second;
  if (at->first == first) {
    at = spans_.erase(at);
  } else {
    at->second.last = Sequence{first.value - 1};
    ++at;
  }
  if (rest.last > last) spans_.emplace_hint(at, last.next(), rest);
}

Spans::Span Spans::pop_front() {
  HAPAX_ASSERT(!spans_.empty(), "there is a first span");
  const auto front = spans_.begin();
  const Span span{front->first, front->second.last, front->second.label};
  spans_.erase(front);
  return span;
}

std::optional<Spans::Span> Spans::find(Sequence sequence) const {
  const auto after = spans_.upper_bound(sequence);
  if (after == spans_.begin()) return std::nullopt;
  const auto at = std::prev(after);
  if (at->second.last < sequence) return std::nullopt;
  return Span{at->first, at->second.last, at->second.label};
}

Sequence Spans::first_missing(Sequence sequence) const {
  while (const auto span = find(sequence)) sequence = span->last.next();
  return sequence;
}

}  // namespace hapax::core
