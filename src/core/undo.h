// The inverse of every change that is not durable yet. Each mutation of the state pushes its
// inverse beside it; an atomic commit that is refused and a batch the disk had no room for are
// rolled back through this log. Inverses run newest first, so each one finds the state exactly as
// it was right after its own mutation.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace hapax::core {

class State;

class Undo {
 public:
  using Mark = std::size_t;

  // `inverse` is called as inverse(State&). Small trivial ones are stored in place: the hot path
  // allocates nothing.
  template <class Inverse>
  void push(Inverse inverse) {
    if constexpr (std::is_trivially_copyable_v<Inverse> && sizeof(Inverse) <= kInline) {
      Entry& entry = entries_.emplace_back();
      ::new (entry.store) Inverse(std::move(inverse));
      entry.run = [](State& state, std::byte* store) {
        (*std::launder(reinterpret_cast<Inverse*>(store)))(state);
      };
    } else {
      push_boxed(std::make_shared<Inverse>(std::move(inverse)));
    }
  }

  [[nodiscard]] Mark mark() const { return entries_.size(); }
  [[nodiscard]] bool empty() const { return entries_.empty(); }

  void roll_back(State& state, Mark mark) {
    while (entries_.size() > mark) {
      Entry entry = std::move(entries_.back());
      entries_.pop_back();
      entry.run(state, entry.store);
    }
  }

  // The changes are durable: nothing can be undone any more.
  void forget() { entries_.clear(); }

  void swap(Undo& other) noexcept { entries_.swap(other.entries_); }

 private:
  static constexpr std::size_t kInline = 40;

  struct Entry {
    void (*run)(State&, std::byte*) = nullptr;
    alignas(8) std::byte store[kInline];
    std::shared_ptr<void> box;
  };

  template <class Inverse>
  void push_boxed(std::shared_ptr<Inverse> boxed) {
    Inverse* raw = boxed.get();
    push([raw](State& state) { (*raw)(state); });
    entries_.back().box = std::move(boxed);
  }

  std::vector<Entry> entries_;
};

// Replay has nothing to undo: `undo` is null there.
template <class Inverse>
void record(Undo* undo, Inverse inverse) {
  if (undo != nullptr) undo->push(std::move(inverse));
}

}  // namespace hapax::core
