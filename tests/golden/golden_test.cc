// Opens a copy of every data folder in tests/golden and finds everything in it that its version
// wrote. To add the folder of a new format version, run this test with HAPAX_GOLDEN_MAKE=FOLDER:
// it writes the content there instead; delete RESERVE and LOCK, they are made anew.
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include <hapax/hapax.h>

#include "host/temporary_folder_test.h"

namespace hapax {
namespace {

namespace fs = std::filesystem;

Verdict commit_one(Store& store, const Op& op, std::string_view id = {}) {
  const auto answer = store.commit({.ops = {&op, 1}, .id = id, .id_window = Window::forever()});
  EXPECT_TRUE(answer.ok()) << answer.error().text();
  return answer ? answer->verdicts.front() : Verdict{NotApplied{}};
}

const std::string kBody("result\0with a zero", 18);
const Time kLate = time_from_ms(std::int64_t{1} << 45);

// One of everything that a data folder can hold.
void fill(Store& store) {
  StreamSettings settings;
  settings.window = Window::forever();
  commit_one(store, CreateStream{.stream = "orders", .settings = settings});
  commit_one(store, Set{.name = "going", .value = "41", .mode = SetMode::kAlways});
  commit_one(store, Expire{.name = "going", .expiry = {Expiry::Kind::kAt, kLate, {}}});
  for (int i = 1; i <= 100; ++i) {
    const std::string id = "order-" + std::to_string(i);
    const std::string group = "customer-" + std::to_string(i % 7);
    commit_one(store,
               Append{.stream = "orders", .payload = "payload of " + id, .id = id, .group = group});
  }
  commit_one(store, Append{.stream = "orders",
                           .payload = "by producer",
                           .producer = ProducerMark{"p", Epoch{3}, ProducerSequence{0}}});
  const auto received = std::get<Received>(commit_one(
      store, Receive{.stream = "orders", .consumer = "c", .max = 3, .owner = "w"}, "receive-1"));
  commit_one(store, Ack{.stream = "orders",
                        .consumer = "c",
                        .receipt = {Sequence{1}, received.deliveries.at(0).token}});
  commit_one(store, Nack{.stream = "orders",
                         .consumer = "c",
                         .receipt = {Sequence{2}, received.deliveries.at(1).token},
                         .reason = "not now"});
  commit_one(store, OpenProducer{.stream = "orders", .producer = "p"});
  const auto claimed = std::get<Claimed>(commit_one(store, Claim{.scope = "s",
                                                                 .key = "done",
                                                                 .content = "x",
                                                                 .owner = "w",
                                                                 .retention = Window::forever(),
                                                                 .tombstone = Window::forever()}));
  commit_one(
      store,
      Settle{.scope = "s", .key = "done", .fence = claimed.fence, .result = {201, "h: v", kBody}});
  const auto doubtful = std::get<Claimed>(
      commit_one(store, Claim{.scope = "s", .key = "doubt", .content = "x", .owner = "w"}));
  commit_one(store, Settle{.scope = "s",
                           .key = "doubt",
                           .fence = doubtful.fence,
                           .outcome = Outcome::kUnknown,
                           .reason = "timed out"});
  commit_one(store, Set{.name = "register", .value = "value"});
  commit_one(store, Add{.name = "going"});
  commit_one(store, Set{.name = "gone", .value = "v", .mode = SetMode::kAlways});
  commit_one(store, Unset{.name = "gone"});
  commit_one(store, Advance{.source = "source", .expected = "", .to = "42", .epoch = Epoch{2}});
  commit_one(store, Trim{.stream = "orders", .before = Sequence{11}});
}

void expect_records(Store& store) {
  const auto read = store.read({.stream = "orders", .max = 1000});
  ASSERT_TRUE(read.ok()) << read.error().text();
  ASSERT_EQ(read->records.size(), 91u);
  EXPECT_EQ(read->records.front().sequence, Sequence{11});
  EXPECT_EQ(read->records.front().id, "order-11");
  EXPECT_EQ(read->records.front().payload, "payload of order-11");
  EXPECT_EQ(read->records.back().payload, "by producer");
  // The id of a record that was trimmed away.
  const Verdict again = commit_one(store, Append{.stream = "orders",
                                                 .payload = "payload of order-1",
                                                 .id = "order-1",
                                                 .group = "customer-1"});
  ASSERT_TRUE(std::holds_alternative<Duplicate>(again)) << word_of(again);
  EXPECT_EQ(std::get<Duplicate>(again).sequence, Sequence{1});
  const Verdict other =
      commit_one(store, Append{.stream = "orders", .payload = "another", .id = "order-2"});
  EXPECT_TRUE(std::holds_alternative<Conflict>(other));
  const Verdict old =
      commit_one(store, Append{.stream = "orders",
                               .payload = "by producer",
                               .producer = ProducerMark{"p", Epoch{2}, ProducerSequence{0}}});
  EXPECT_EQ(std::get<Fenced>(old).current, 4u);
  const Verdict opened = commit_one(store, OpenProducer{.stream = "orders", .producer = "p"});
  EXPECT_EQ(std::get<Opened>(opened),
            (Opened{Epoch{5}, Epoch{3}, ProducerSequence{1}, Sequence{101}}));
}

void expect_claims(Store& store) {
  const Verdict done =
      commit_one(store, Claim{.scope = "s", .key = "done", .content = "x", .owner = "other"});
  ASSERT_TRUE(std::holds_alternative<DuplicateClaim>(done)) << word_of(done);
  EXPECT_EQ(std::get<DuplicateClaim>(done).result, (StoredResult{201, "h: v", kBody}));
  const Verdict doubt =
      commit_one(store, Claim{.scope = "s", .key = "doubt", .content = "x", .owner = "other"});
  ASSERT_TRUE(std::holds_alternative<UnknownOutcome>(doubt)) << word_of(doubt);
  EXPECT_EQ(std::get<UnknownOutcome>(doubt).reason, "timed out");
}

void expect_rest(Store& store) {
  const auto stats = store.describe("orders");
  ASSERT_TRUE(stats.ok());
  ASSERT_EQ(stats->consumers.size(), 1u);
  EXPECT_EQ(stats->consumers.front().consumer, "c");
  const auto set = store.find_register("register");
  ASSERT_TRUE(set.ok() && set->has_value());
  EXPECT_EQ((*set)->value, "value");
  const auto going = store.find_register("going");
  ASSERT_TRUE(going.ok() && going->has_value());
  EXPECT_EQ((*going)->value, "42");
  EXPECT_EQ((*going)->expires_at, kLate);
  EXPECT_FALSE(store.find_register("gone").value().has_value());
  const auto position = store.find_position("source");
  ASSERT_TRUE(position.ok() && position->has_value());
  EXPECT_EQ((*position)->value, "42");
  const Op receive = Receive{.stream = "orders", .consumer = "c", .max = 3, .owner = "w"};
  const auto repeated =
      store.commit({.ops = {&receive, 1}, .id = "receive-1", .id_window = Window::forever()});
  ASSERT_TRUE(repeated.ok()) << repeated.error().text();
  EXPECT_TRUE(repeated->repeated);
}

TEST(Golden, EveryReleasedFormatOpensWithAllThatWasInIt) {
  EmbeddedOptions options;
  options.log = [](const std::string&) {};
  options.snapshot_every_bytes = 8192;  // So that the folder has snapshots, too.
  options.segment_bytes = 8192;
  if (const char* make = std::getenv("HAPAX_GOLDEN_MAKE")) {
    auto store = open_embedded(make, options);
    ASSERT_TRUE(store.ok()) << store.error().text();
    fill(**store);
    return;
  }
  int folders = 0;
  for (const auto& version : fs::directory_iterator(HAPAX_GOLDEN_FOLDER)) {
    if (!version.is_directory()) continue;
    SCOPED_TRACE(version.path().filename().string());
    const host::TemporaryFolder scratch;
    fs::copy(version.path(), scratch.path(), fs::copy_options::recursive);
    auto store = open_embedded(scratch.path(), options);
    ASSERT_TRUE(store.ok()) << store.error().text();
    expect_records(**store);
    expect_claims(**store);
    expect_rest(**store);
    ++folders;
  }
  EXPECT_GE(folders, 1) << "no golden folder was found";
}

}  // namespace
}  // namespace hapax
