// Random operations on a few registers, with time passing, batches that are rolled back, collecting
// and restarts, against a model that is a plain map.
#include <map>
#include <optional>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "core/registers.h"
#include "core/state_codec.h"
#include "core/test_store.h"
#include "core/test_tell.h"

namespace hapax::core {
namespace {

struct Entry {
  std::string value;
  std::uint64_t version = 0;
  Time expires_at = Time::max();
};

class Model {
 public:
  Entry* find(const std::string& name, Time now) {
    const auto found = entries_.find(name);
    if (found == entries_.end() || found->second.expires_at <= now) return nullptr;
    return &found->second;
  }
  // H3: told versions of a name only grow.
  void put(const std::string& name, const std::string& value, Time end, Time now,
           const Held& told) {
    if (end <= now) {
      entries_.erase(name);
      EXPECT_EQ(told.version, Version{0});
      return;
    }
    EXPECT_GT(told.version.value, highest_[name]);
    highest_[name] = told.version.value;
    entries_[name] = {value, told.version.value, end};
  }
  void erase(const std::string& name) { entries_.erase(name); }

 private:
  std::map<std::string, Entry> entries_;
  std::map<std::string, std::uint64_t> highest_;
};

class Life {
 public:
  explicit Life(unsigned seed) : random_(seed) { begin(); }

  void go(int steps) {
    for (int i = 0; i < steps; ++i) {
      step();
      if (below(4) == 0) end_batch();
    }
    store_.keep();
    check_replay();
  }

 private:
  std::uint64_t below(std::uint64_t end) { return random_() % end; }
  std::string name() { return std::string(1, static_cast<char>('a' + below(3))); }

  void begin() {
    store_.begin(Duration{static_cast<std::int64_t>(below(20))});
    saved_ = model_;
  }
  void end_batch() {
    if (below(4) == 0) {
      store_.roll_back();
      model_ = saved_;
    } else {
      store_.keep();
      if (below(3) == 0) collect(store_.state, store_.now, below(3));
    }
    begin();
  }

  Held run(const Op& op) {
    return std::get<Held>(std::get<Answer>(store_.commit({.ops = {&op, 1}})).verdicts.front());
  }
  Expiry expiry() {
    const Duration span{static_cast<std::int64_t>(below(60)) - 5};
    if (below(3) == 0) return {Expiry::Kind::kAt, store_.now + span, {}};
    if (below(2) == 0) return {Expiry::Kind::kAfter, {}, std::max(span, Duration{1})};
    return {};
  }
  [[nodiscard]] Time end_of(const Expiry& expiry) const {
    if (expiry.kind == Expiry::Kind::kAt) return expiry.at;
    if (expiry.kind == Expiry::Kind::kAfter) return store_.now + expiry.after;
    return Time::max();
  }

  void step() {
    const std::string key = name();
    Entry* known = model_.find(key, store_.now);
    switch (below(5)) {
      case 0:
        return set(key, known);
      case 1:
        return remove(key, known);
      case 2:
        return expire(key, known);
      case 3:
        return add(key, known);
      default:
        return look(key, known);
    }
  }
  void set(const std::string& key, Entry* known) {
    const auto mode = static_cast<SetMode>(2 + below(3));
    Set op{.name = key, .value = "7", .mode = mode, .expiry = expiry(), .tell_value = true};
    Time end = end_of(op.expiry);
    if (below(4) == 0) {
      op.expiry = {Expiry::Kind::kKeep, {}, {}};
      end = known == nullptr ? Time::max() : known->expires_at;
    }
    const Held told = run(op);
    const bool applies =
        mode == SetMode::kAlways || (mode == SetMode::kPresent) == (known != nullptr);
    ASSERT_EQ(told.applied, applies);
    ASSERT_EQ(told.value.has_value(), known != nullptr);
    if (known != nullptr) {
      ASSERT_EQ(*told.value, known->value);
    }
    if (applies) model_.put(key, "7", end, store_.now, told);
  }
  void remove(const std::string& key, const Entry* known) {
    const Held told = run(Unset{key, true});
    ASSERT_EQ(told.applied, known != nullptr);
    if (known != nullptr) {
      ASSERT_EQ(told.value, known->value);
    }
    model_.erase(key);
  }
  void expire(const std::string& key, Entry* known) {
    const Expire op{key, expiry(), ExpireIf::kAlways};
    const Time end = end_of(op.expiry);
    const bool applies =
        known != nullptr && (end != Time::max() || known->expires_at != Time::max());
    ASSERT_EQ(run(op).applied, applies);
    if (!applies) return;
    known->expires_at = end;
    if (end <= store_.now) model_.erase(key);
  }
  void add(const std::string& key, const Entry* known) {
    const std::int64_t sum = (known == nullptr ? 0 : std::stoll(known->value)) - 3;
    const Held told = run(Add{key, -3});
    ASSERT_EQ(told.number, sum);
    model_.put(key, std::to_string(sum), known == nullptr ? Time::max() : known->expires_at,
               store_.now, told);
  }
  void look(const std::string& key, const Entry* known) {
    const Held told = run(Get{key});
    ASSERT_EQ(told.applied, known != nullptr);
    if (known == nullptr) return;
    ASSERT_EQ(told.value, known->value);
    ASSERT_EQ(told.version.value, known->version);
    ASSERT_EQ(told.expires_at, known->expires_at);
  }

  // A restart, from the journal or from a snapshot, knows the same.
  void check_replay() {
    State replayed(4);
    for (const auto& batch : store_.journal.batches()) rig::replay(batch, replayed);
    ASSERT_EQ(canonical(replayed, store_.now), canonical(store_.state, store_.now));
    std::string bytes;
    encode_state(store_.state, bytes);
    State loaded(4);
    ASSERT_TRUE(decode_state(bytes, loaded).ok());
    ASSERT_EQ(canonical(loaded, store_.now), canonical(store_.state, store_.now));
    ASSERT_EQ(loaded.text_bytes, store_.state.text_bytes);
    ASSERT_EQ(loaded.registers_end, store_.state.registers_end);
  }

  std::mt19937 random_;
  rig::MemoryStore store_;
  Model model_;
  Model saved_;
};

// H3, H4, H5
TEST(RegistersModel, AnswersAsAPlainMapWould) {
  for (unsigned seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(seed);
    Life(seed).go(120);
    if (testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace hapax::core
