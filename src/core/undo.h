// The inverse of every change that is not durable yet. Each mutation of the state pushes its
// inverse beside it; an atomic commit that is refused and a batch the disk had no room for are
// rolled back through this log. Inverses run newest first, so each one finds the state exactly as
// it was right after its own mutation.
#pragma once

#include <algorithm>
#include <array>
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

  Undo() = default;
  ~Undo() { forget(); }
  Undo(const Undo&) = delete;
  Undo& operator=(const Undo&) = delete;

  // `inverse` is called as inverse(State&), at most once. Small ones are stored in place: the hot
  // path allocates nothing.
  template <class Inverse>
  void push(Inverse inverse) {
    if constexpr (sizeof(Inverse) <= kInline && alignof(Inverse) <= alignof(std::max_align_t)) {
      Entry& entry = next();
      ::new (entry.store) Inverse(std::move(inverse));
      entry.run = [](State& state, std::byte* store) { (*in<Inverse>(store))(state); };
      if constexpr (!std::is_trivially_destructible_v<Inverse>) {
        entry.destroy = [](std::byte* store) { std::destroy_at(in<Inverse>(store)); };
      }
      ++size_;
    } else {
      push([box = std::make_unique<Inverse>(std::move(inverse))](State& state) { (*box)(state); });
    }
  }

  [[nodiscard]] Mark mark() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }

  void roll_back(State& state, Mark mark) {
    while (size_ > mark) {
      Entry& entry = at(--size_);
      entry.run(state, entry.store);
      destroy(entry);
    }
  }

  // The changes are durable: nothing can be undone any more.
  void forget() {
    for (std::size_t i = 0; i < size_; ++i) destroy(at(i));
    size_ = 0;
    pages_.resize(std::min(pages_.size(), kPagesKept));
  }

  void swap(Undo& other) noexcept {
    pages_.swap(other.pages_);
    std::swap(size_, other.size_);
  }

 private:
  static constexpr std::size_t kInline = 80;
  static constexpr std::size_t kPageEntries = 256;
  static constexpr std::size_t kPagesKept = 64;  // for the next batch; some 16,000 changes

  struct Entry {
    void (*run)(State&, std::byte*) = nullptr;
    void (*destroy)(std::byte*) = nullptr;  // null = nothing to do
    alignas(std::max_align_t) std::byte store[kInline];
  };
  using Page = std::array<Entry, kPageEntries>;  // entries never move

  template <class Inverse>
  static Inverse* in(std::byte* store) {
    return std::launder(reinterpret_cast<Inverse*>(store));
  }

  Entry& at(std::size_t i) { return (*pages_[i / kPageEntries])[i % kPageEntries]; }

  Entry& next() {
    if (size_ == pages_.size() * kPageEntries) {
      pages_.push_back(std::make_unique_for_overwrite<Page>());
    }
    return at(size_);
  }

  static void destroy(Entry& entry) {
    if (entry.destroy != nullptr) std::exchange(entry.destroy, nullptr)(entry.store);
  }

  std::vector<std::unique_ptr<Page>> pages_;
  std::size_t size_ = 0;
};

// Replay has nothing to undo: `undo` is null there.
template <class Inverse>
void record(Undo* undo, Inverse inverse) {
  if (undo != nullptr) undo->push(std::move(inverse));
}

}  // namespace hapax::core
