// A sorted map whose snapshot costs a pointer per some hundred elements: elements lie in leaves,
// and a leaf that a snapshot holds is copied before it is changed. So another thread may read the
// snapshot while the owner goes on.
//
// R3: a leaf that is in a snapshot never changes again. No counter is asked who still reads it:
//     whatever was there when a snapshot was taken is copied at its first change.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "base/assert.h"

namespace hapax::core {

template <class Key, class Value>
class SharedMap {
 public:
  using key_type = Key;
  using mapped_type = Value;
  using value_type = std::pair<Key, Value>;
  using Leaf = std::vector<value_type>;  // sorted, never empty

  // The elements at one instant. May be read by another thread.
  class Image {
   public:
    [[nodiscard]] std::size_t size() const { return size_; }
    // Calls visit(key, value) in ascending order.
    template <class Visit>
    void for_each(Visit visit) const {
      for (const auto& leaf : leaves_) {
        for (const auto& [key, value] : *leaf) visit(key, value);
      }
    }

   private:
    friend class SharedMap;
    std::vector<std::shared_ptr<const Leaf>> leaves_;
    std::size_t size_ = 0;
  };

  class const_iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = SharedMap::value_type;
    using difference_type = std::ptrdiff_t;
    using pointer = const value_type*;
    using reference = const value_type&;

    const_iterator() = default;
    const_iterator(const SharedMap* map, std::size_t leaf, std::size_t place = 0)
        : map_(map), leaf_(leaf), place_(place) {}
    reference operator*() const { return (*map_->leaves_[leaf_].elements)[place_]; }
    pointer operator->() const { return &**this; }
    const_iterator& operator++() {
      if (++place_ == map_->leaves_[leaf_].elements->size()) {
        ++leaf_;
        place_ = 0;
      }
      return *this;
    }
    const_iterator operator++(int) {
      const_iterator before = *this;
      ++*this;
      return before;
    }
    friend bool operator==(const const_iterator&, const const_iterator&) = default;

   private:
    const SharedMap* map_ = nullptr;
    std::size_t leaf_ = 0;
    std::size_t place_ = 0;
  };

  SharedMap() = default;
  // A copy would share leaves that both may change.
  SharedMap(const SharedMap&) = delete;
  SharedMap& operator=(const SharedMap&) = delete;
  SharedMap(SharedMap&& other) noexcept { *this = std::move(other); }
  SharedMap& operator=(SharedMap&& other) noexcept {
    leaves_ = std::exchange(other.leaves_, {});
    firsts_ = std::exchange(other.firsts_, {});
    size_ = std::exchange(other.size_, 0);
    version_ = other.version_;
    return *this;
  }
  ~SharedMap() = default;

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] const_iterator begin() const { return {this, 0}; }
  [[nodiscard]] const_iterator end() const { return {this, leaves_.size()}; }

  // Calls visit(key, value) in ascending order.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const auto& [key, value] : *this) visit(key, value);
  }

  // The first element whose key is not below.
  template <class Like>
  [[nodiscard]] const_iterator lower_bound(const Like& key) const {
    if (leaves_.empty()) return end();
    const std::size_t at = leaf_of(key);
    const Leaf& leaf = *leaves_[at].elements;
    const auto found = lower_bound(leaf, key);
    if (found == leaf.end()) return {this, at + 1};
    return {this, at, static_cast<std::size_t>(found - leaf.begin())};
  }

  // Valid until the next change.
  template <class Like>
  [[nodiscard]] const Value* find(const Like& key) const {
    if (leaves_.empty()) return nullptr;
    const Leaf& leaf = *leaves_[leaf_of(key)].elements;
    const auto found = lower_bound(leaf, key);
    return found == leaf.end() || key < found->first ? nullptr : &found->second;
  }
  template <class Like>
  [[nodiscard]] bool contains(const Like& key) const {
    return find(key) != nullptr;
  }

  // Sets the value; answers whether the key is new.
  bool set(Key key, Value value) {
    if (leaves_.empty()) {
      leaves_.push_back({std::make_shared<Leaf>(), version_});
      firsts_.push_back(key);
    }
    const std::size_t at = leaf_of(key);
    Leaf& leaf = own(at);
    const auto found = lower_bound(leaf, key);
    if (found != leaf.end() && !(key < found->first)) {
      found->second = std::move(value);
      return false;
    }
    leaf.emplace(found, std::move(key), std::move(value));
    firsts_[at] = leaf.front().first;
    ++size_;
    if (leaf.size() > kLeafMax) split(at);
    return true;
  }

  // REQUIRES: the key is there.
  template <class Like>
  void erase(const Like& key) {
    HAPAX_ASSERT(contains(key), "what is erased is in the map");
    const std::size_t at = leaf_of(key);
    Leaf& leaf = own(at);
    leaf.erase(lower_bound(leaf, key));
    --size_;
    const auto place = static_cast<std::ptrdiff_t>(at);
    if (leaf.empty()) {
      leaves_.erase(leaves_.begin() + place);
      firsts_.erase(firsts_.begin() + place);
    } else {
      firsts_[at] = leaf.front().first;
    }
  }

  void clear() { *this = SharedMap(); }

  [[nodiscard]] Image snapshot() {
    ++version_;  // R3
    Image image;
    image.size_ = size_;
    image.leaves_.reserve(leaves_.size());
    for (const Slot& slot : leaves_) image.leaves_.push_back(slot.elements);
    return image;
  }

 private:
  // Small enough to be copied within microseconds.
  static constexpr std::size_t kLeafMax = std::max<std::size_t>(16, 8'192 / sizeof(value_type));

  struct Slot {
    std::shared_ptr<Leaf> elements;
    std::uint64_t version = 0;  // of the map when it was made
  };

  template <class Elements, class Like>
  static auto lower_bound(Elements& leaf, const Like& key) {
    return std::lower_bound(
        leaf.begin(), leaf.end(), key,
        [](const value_type& element, const Like& wanted) { return element.first < wanted; });
  }

  // The leaf that holds the key if any does. REQUIRES: there are leaves.
  template <class Like>
  [[nodiscard]] std::size_t leaf_of(const Like& key) const {
    const auto after = std::upper_bound(firsts_.begin(), firsts_.end(), key);
    return after == firsts_.begin() ? 0 : static_cast<std::size_t>(after - firsts_.begin()) - 1;
  }

  Leaf& own(std::size_t at) {
    Slot& slot = leaves_[at];
    if (slot.version != version_) {
      slot.elements = std::make_shared<Leaf>(*slot.elements);
      slot.version = version_;
    }
    return *slot.elements;
  }

  void split(std::size_t at) {
    Leaf& leaf = *leaves_[at].elements;
    const auto middle = leaf.begin() + static_cast<std::ptrdiff_t>(leaf.size() / 2);
    auto upper = std::make_shared<Leaf>(std::make_move_iterator(middle),
                                        std::make_move_iterator(leaf.end()));
    leaf.erase(middle, leaf.end());
    const auto place = static_cast<std::ptrdiff_t>(at) + 1;
    firsts_.insert(firsts_.begin() + place, upper->front().first);
    leaves_.insert(leaves_.begin() + place, Slot{std::move(upper), version_});
  }

  std::vector<Slot> leaves_;
  std::vector<Key> firsts_;  // of each leaf: what a search needs, together
  std::size_t size_ = 0;
  std::uint64_t version_ = 0;  // snapshots taken
};

}  // namespace hapax::core
