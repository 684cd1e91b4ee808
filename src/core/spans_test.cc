#include "core/spans.h"

#include <map>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/sequences.h"

namespace hapax::core {
namespace {

std::vector<Spans::Span> listed(const Spans& spans) {
  std::vector<Spans::Span> all;
  spans.for_each([&all](const Spans::Span& span) { all.push_back(span); });
  return all;
}

TEST(Spans, NeighboursOfOneLabelBecomeOneSpan) {
  Spans spans;
  spans.add(Sequence{1});
  spans.add(Sequence{3});
  EXPECT_EQ(spans.size(), 2U);
  spans.add(Sequence{2});
  EXPECT_EQ(listed(spans), (std::vector<Spans::Span>{{Sequence{1}, Sequence{3}, 0}}));
}

TEST(Spans, NeighboursOfDifferentLabelsStayApart) {
  Spans spans;
  spans.add({Sequence{1}, Sequence{4}, 7});
  spans.add({Sequence{5}, Sequence{5}, 8});
  spans.add({Sequence{6}, Sequence{9}, 7});
  EXPECT_EQ(spans.size(), 3U);
  EXPECT_EQ(spans.find(Sequence{5})->label, 8U);
  EXPECT_EQ(spans.first_missing(Sequence{2}), Sequence{10});
}

TEST(Spans, TakingOutTheMiddleLeavesBothEnds) {
  Spans spans;
  spans.add({Sequence{10}, Sequence{20}, 3});
  spans.remove(Sequence{12}, Sequence{14});
  EXPECT_EQ(listed(spans), (std::vector<Spans::Span>{{Sequence{10}, Sequence{11}, 3},
                                                     {Sequence{15}, Sequence{20}, 3}}));
  EXPECT_FALSE(spans.contains(Sequence{12}));
  EXPECT_TRUE(spans.contains(Sequence{15}));
}

// Against a plain map from sequence to label, which has no form to keep.
RC_GTEST_PROP(Spans, HoldWhatAPlainMapHoldsInTheFewestSpans, ()) {
  using Step = std::tuple<std::uint64_t, std::uint64_t>;
  const auto steps = *rc::gen::scale(
      4.0, rc::gen::container<std::vector<Step>>(rc::gen::tuple(
               rc::gen::inRange<std::uint64_t>(1, 40), rc::gen::inRange<std::uint64_t>(0, 2))));
  Spans spans;
  std::map<std::uint64_t, std::uint64_t> plain;
  for (const auto& [sequence, label] : steps) {
    const Spans before = spans;
    if (plain.erase(sequence) == 1) {
      const std::uint64_t old = spans.find(Sequence{sequence})->label;
      spans.remove(Sequence{sequence});
      Spans again = spans;
      again.add({Sequence{sequence}, Sequence{sequence}, old});
      RC_ASSERT(again == before);
    } else {
      plain[sequence] = label;
      spans.add({Sequence{sequence}, Sequence{sequence}, label});
      Spans again = spans;
      again.remove(Sequence{sequence});
      RC_ASSERT(again == before);
    }
  }
  std::size_t fewest = 0;
  for (const auto& [sequence, label] : plain) {
    const auto before = plain.find(sequence - 1);
    if (before == plain.end() || before->second != label) ++fewest;
    RC_ASSERT(spans.find(Sequence{sequence})->label == label);
  }
  RC_ASSERT(spans.size() == fewest);
  for (std::uint64_t at = 0; at <= 41; ++at) {
    RC_ASSERT(spans.contains(Sequence{at}) == plain.contains(at));
  }
}

// --- sequences as bytes ------------------------------------------------------------------------

RC_GTEST_PROP(Sequences, ComeBackAsTheyWereEncoded, ()) {
  const auto numbers = *rc::gen::arbitrary<std::set<std::uint64_t>>();
  std::vector<Sequence> sequences;
  for (const std::uint64_t number : numbers) {
    if (number != 0) sequences.emplace_back(number);
  }
  std::string bytes;
  encode_sequences(sequences, bytes);
  RC_ASSERT(*decode_sequences(bytes) == sequences);
}

TEST(Sequences, NeighboursTakeAByteEach) {
  std::vector<Sequence> sequences;
  for (std::uint64_t at = 100; at < 200; ++at) sequences.emplace_back(at);
  std::string bytes;
  encode_sequences(sequences, bytes);
  EXPECT_EQ(bytes.size(), 100U);
}

TEST(Sequences, BytesThatDoNotAscendOrBreakOffAreRefused) {
  using std::string_view_literals::operator""sv;
  EXPECT_FALSE(decode_sequences("\x05\x00"sv).has_value());  // The same one twice.
  EXPECT_FALSE(decode_sequences("\x05\x80"sv).has_value());  // A number that does not end.
  const std::string_view past_the_end = "\x05\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"sv;
  EXPECT_FALSE(decode_sequences(past_the_end).has_value());
}

}  // namespace
}  // namespace hapax::core
