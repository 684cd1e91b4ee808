// A set of sequences with a label each, kept as the fewest spans: neighbours of one label are one
// span. The form is canonical, whatever order things came in; so taking out what was added gives
// back exactly the spans there were, which is all that undo needs to know.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include <hapax/ids.h>

namespace hapax::core {

class Spans {
 public:
  struct Span {
    Sequence first;
    Sequence last;
    std::uint64_t label = 0;
    friend bool operator==(const Span&, const Span&) = default;
  };

  // REQUIRES: none of first … last is in the set.
  void add(Span span);
  void add(Sequence sequence) { add({sequence, sequence, 0}); }
  // REQUIRES: all of first … last is in the set, with one label.
  void remove(Sequence first, Sequence last);
  void remove(Sequence sequence) { remove(sequence, sequence); }
  // REQUIRES: the set is not empty.
  Span pop_front();

  // The span that holds `sequence`, if any does.
  [[nodiscard]] std::optional<Span> find(Sequence sequence) const;
  [[nodiscard]] bool contains(Sequence sequence) const { return find(sequence).has_value(); }
  // The first sequence from `sequence` on that is not in the set.
  [[nodiscard]] Sequence first_missing(Sequence sequence) const;

  [[nodiscard]] bool empty() const { return spans_.empty(); }
  [[nodiscard]] std::size_t size() const { return spans_.size(); }  // of spans

  // Calls visit(Span) in ascending order.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const auto& [first, rest] : spans_) visit(Span{first, rest.last, rest.label});
  }

  friend bool operator==(const Spans&, const Spans&) = default;

 private:
  struct Rest {
    Sequence last;
    std::uint64_t label = 0;
    friend bool operator==(const Rest&, const Rest&) = default;
  };

  std::map<Sequence, Rest> spans_;  // by the first sequence of each
};

}  // namespace hapax::core
