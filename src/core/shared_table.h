// A map from uniform 128-bit hashes to values whose snapshot costs a pointer per some hundred
// slots: values lie in slots, slots in pages, and a page that a snapshot holds is copied before it
// is changed. So another thread may read the snapshot while the owner goes on.
//
// A lookup costs two cache misses, and both can be asked for ahead of time. Slots that became free
// are used again, the latest first, so that what comes and goes stays on few pages.
//
// R3: a page that is in a snapshot never changes again. No counter is asked who still reads it:
//     whatever was there when a snapshot was taken is copied at its first change.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/hash128.h"
#include "core/hash_index.h"

namespace hapax::core {

template <class Value>  // Value{} marks a free slot
class SharedTable {
 public:
  struct Slot {
    base::Hash128 hash;
    Value value{};
  };
  using Page = std::vector<Slot>;

  // The elements at one instant. May be read by another thread.
  class Image {
   public:
    [[nodiscard]] std::size_t size() const { return size_; }
    // Calls visit(hash, value) in no particular order.
    template <class Visit>
    void for_each(Visit visit) const {
      for (const auto& page : pages_) visit_page(*page, visit);
    }

   private:
    friend class SharedTable;
    std::vector<std::shared_ptr<const Page>> pages_;
    std::size_t size_ = 0;
  };

  explicit SharedTable(unsigned shards_log2) : index_(shards_log2) {}

  [[nodiscard]] std::size_t size() const { return index_.size(); }
  [[nodiscard]] bool empty() const { return size() == 0; }
  [[nodiscard]] std::size_t slots() const { return bases_.size() * kPageSlots; }  // free ones too
  // Of the free slots: pages stay for what comes next.
  [[nodiscard]] std::size_t free_bytes() const { return free_.size() * sizeof(Slot); }

  // Asks for the memory that find() will read: first all the one, then all the other.
  void prefetch(base::Hash128 hash) const { index_.prefetch(hash); }
  void prefetch_slot(base::Hash128 hash) const { index_.prefetch_entry(hash, hashes()); }

  // Valid until the next change.
  [[nodiscard]] const Value* find(base::Hash128 hash) const {
    const std::uint32_t number = index_.find(hash, hashes());
    return number == HashIndex::kNone ? nullptr : &hashes().slot(number).value;
  }
  [[nodiscard]] bool contains(base::Hash128 hash) const { return find(hash) != nullptr; }

  // Sets the value; answers whether the hash is new.
  bool set(base::Hash128 hash, Value value) {
    const std::uint32_t known = index_.find(hash, hashes());
    const std::uint32_t number = known == HashIndex::kNone ? take_number() : known;
    own(number) = Slot{hash, std::move(value)};
    if (known == HashIndex::kNone) index_.insert(hash, number, hashes());
    return known == HashIndex::kNone;
  }

  // Takes the value out. REQUIRES: it is there.
  Value take(base::Hash128 hash) {
    const std::uint32_t number = index_.find(hash, hashes());
    HAPAX_ASSERT(number != HashIndex::kNone, "what is taken out is in the table");
    index_.erase(hash, number, hashes());
    free_.push_back(number);
    return std::exchange(own(number), Slot{}).value;
  }

  template <class Visit>
  void for_each(Visit visit) const {
    for (const Sheet& sheet : pages_) visit_page(*sheet.slots, visit);
  }

  // Calls visit(hash, value) for what lies in `count` slots from `slot` on; answers where to go on,
  // 0 = that was all. What stays in the table stays in its slot, so no such walk misses it.
  template <class Visit>
  std::uint64_t visit_slots(std::uint64_t slot, std::uint64_t count, Visit visit) const {
    const std::uint64_t end = slot < slots() ? std::min<std::uint64_t>(slots(), slot + count) : 0;
    for (; slot < end; ++slot) {
      const Slot& here = hashes().slot(static_cast<std::uint32_t>(slot));
      if (here.value != Value{}) visit(here.hash, here.value);
    }
    return end < slots() ? end : 0;
  }

  [[nodiscard]] Image snapshot() {
    ++version_;  // R3
    Image image;
    image.size_ = size();
    image.pages_.reserve(pages_.size());
    for (const Sheet& sheet : pages_) image.pages_.push_back(sheet.slots);
    return image;
  }

 private:
  static constexpr std::uint32_t kPageSlots = 256;  // small enough to be copied in microseconds

  struct Sheet {
    std::shared_ptr<Page> slots;
    std::uint64_t version = 0;  // of the table when it was made
  };

  // Reads hashes by number; see HashSource.
  struct Hashes {
    Slot* const* pages;
    [[nodiscard]] Slot& slot(std::uint32_t number) const {
      return pages[number / kPageSlots][number % kPageSlots];
    }
    base::Hash128 operator()(std::uint32_t number) const { return slot(number).hash; }
    void prefetch(std::uint32_t number) const { fetch_ahead(&slot(number)); }
  };
  [[nodiscard]] Hashes hashes() const { return {bases_.data()}; }

  template <class Visit>
  static void visit_page(const Page& page, Visit& visit) {
    for (const Slot& slot : page) {
      if (slot.value != Value{}) visit(slot.hash, slot.value);
    }
  }

  std::uint32_t take_number() {
    if (free_.empty()) add_page();
    const std::uint32_t number = free_.back();
    free_.pop_back();
    return number;
  }

  void add_page() {
    const auto first = static_cast<std::uint32_t>(pages_.size() * kPageSlots);
    pages_.push_back({std::make_shared<Page>(kPageSlots), version_});
    bases_.push_back(pages_.back().slots->data());
    for (std::uint32_t i = kPageSlots; i > 0; --i) free_.push_back(first + i - 1);
  }

  Slot& own(std::uint32_t number) {
    const std::uint32_t at = number / kPageSlots;
    Sheet& sheet = pages_[at];
    if (sheet.version != version_) {
      sheet = {std::make_shared<Page>(*sheet.slots), version_};
      bases_[at] = sheet.slots->data();
    }
    return (*sheet.slots)[number % kPageSlots];
  }

  HashIndex index_;
  std::vector<Sheet> pages_;
  std::vector<Slot*> bases_;         // of the pages: what a lookup needs, together
  std::vector<std::uint32_t> free_;  // numbers of free slots; the last is used next
  std::uint64_t version_ = 0;        // snapshots taken
};

}  // namespace hapax::core
