// Records sent in pieces, all or nothing each.
#include "relay/stream_sink.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "sim/clock.h"

namespace hapax::relay {
namespace {

using Kind = PieceAnswer::Kind;

// Refuses some ids; says so of the first one in a piece, and takes nothing of it.
class Picky final : public PieceSink {
 public:
  std::vector<std::string> sent;
  std::size_t most = 100;
  std::string bad;
  std::size_t beyond = 0;  // so far behind the refused record is the one that is named
  int calls = 0;

 protected:
  PieceAnswer send(std::span<const Outgoing* const> piece, const Permit&) override {
    ++calls;
    if (piece.size() > most) return {Kind::kTooLarge, 0, "too large"};
    for (std::size_t i = 0; i < piece.size(); ++i) {
      if (piece[i]->id == bad) return {Kind::kRefused, i + beyond, "bad"};
    }
    for (const Outgoing* record : piece) sent.push_back(record->id);
    return {};
  }
};

class RelayPieces : public testing::Test {
 protected:
  SinkDelivery deliver(int count) {
    records.clear();
    for (int i = 0; i < count; ++i) records.push_back({.id = std::to_string(i), .key = "k"});
    std::vector<const Outgoing*> pointers;
    for (const Outgoing& record : records) pointers.push_back(&record);
    return sink.deliver(pointers, Permit(clock, clock.steady_ms() + 1'000));
  }
  sim::SimClock clock;
  std::vector<Outgoing> records;
  Picky sink;
};

// Y1: what is before a refused record arrives, and nothing behind it.
TEST_F(RelayPieces, EndAtARefusedRecord) {
  sink.bad = "7";
  const SinkDelivery told = deliver(20);
  EXPECT_EQ(told.accepted, 7U);
  EXPECT_EQ(told.ending, SinkDelivery::Ending::kRefused);
  EXPECT_EQ(sink.sent.size(), 7U);
}

// A server may answer what it likes: a place that there is not says nothing.
TEST_F(RelayPieces, EndAtARefusedRecordThatIsNamedWrongly) {
  sink.bad = "7";
  sink.beyond = 1'000;
  const SinkDelivery told = deliver(20);
  EXPECT_EQ(told.accepted, 7U);
  EXPECT_EQ(told.ending, SinkDelivery::Ending::kRefused);
}

TEST_F(RelayPieces, AreHalvedUntilTheyFit) {
  sink.most = 3;
  EXPECT_EQ(deliver(20).ending, SinkDelivery::Ending::kAll);
  EXPECT_EQ(sink.sent.size(), 20U);
  sink.most = 0;
  const SinkDelivery told = deliver(20);
  EXPECT_EQ(told.ending, SinkDelivery::Ending::kRefused) << "a record that is too large on its own";
  EXPECT_EQ(told.accepted, 0U);
}

}  // namespace
}  // namespace hapax::relay
