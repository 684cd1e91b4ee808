#include "transform/frames.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace hapax::transform {
namespace {

std::string body_of(const std::string& frame) {
  FrameBuffer buffer;
  buffer.add(frame);
  return std::string(buffer.next().value().value());
}

std::string body_of(const WorkerAnswer& answer) {
  std::string frame;
  encode_answer(answer, frame);
  return body_of(frame);
}

std::vector<WorkerAnswer> answers() {
  return {ReadyAnswer{},
          DefinedAnswer{},
          DefinedAnswer{{{ProgramPart::kKey, 3, 4, "what"}, {ProgramPart::kMain, 0, 0, ""}}},
          RanAnswer{Transformed{}},
          RanAnswer{Transformed{{{"1", "type", std::nullopt}, {"{}", std::nullopt, ""}}}},
          RanAnswer{TransformFailed{TransformFault::kBadInput, "why"}}};
}

TEST(Frames, RequestsComeBack) {
  std::string frame;
  encode_request(DefineRequest{{7}, {".a", "\"t\"", ".k", TransformNumbers::kDouble}}, frame);
  const std::string define_body = body_of(frame);
  const auto define = std::get<DefineRequest>(decode_request(define_body).value());
  EXPECT_EQ(define.program, ProgramId{7});
  EXPECT_EQ(define.text.main, ".a");
  EXPECT_EQ(define.text.event_type, "\"t\"");
  EXPECT_EQ(define.text.key, ".k");
  EXPECT_EQ(define.text.numbers, TransformNumbers::kDouble);

  frame.clear();
  encode_request(RunRequest{{8}, -5, "[1]"}, frame);
  const std::string run_body = body_of(frame);
  const auto run = std::get<RunRequest>(decode_request(run_body).value());
  EXPECT_EQ(run.program, ProgramId{8});
  EXPECT_EQ(run.time_ms, -5);
  EXPECT_EQ(run.input, "[1]");

  frame.clear();
  encode_request(ForgetRequest{{9}}, frame);
  EXPECT_EQ(std::get<ForgetRequest>(decode_request(body_of(frame)).value()).program, ProgramId{9});
}

TEST(Frames, AnswersComeBack) {
  for (const WorkerAnswer& answer : answers()) {
    const std::string body = body_of(answer);
    const auto again = decode_answer(body);
    ASSERT_TRUE(again);
    EXPECT_EQ(body_of(*again), body);
  }
  const auto ran = std::get<RanAnswer>(decode_answer(body_of(answers()[4])).value());
  EXPECT_EQ(std::get<Transformed>(ran.outcome),
            std::get<Transformed>(std::get<RanAnswer>(answers()[4]).outcome));
}

TEST(Frames, ACutOrLongerBodyIsRefused) {
  for (const WorkerAnswer& answer : answers()) {
    const std::string body = body_of(answer);
    EXPECT_FALSE(decode_answer(body + "x"));
    for (std::size_t size = 0; size < body.size(); ++size) {
      EXPECT_FALSE(decode_answer(body.substr(0, size))) << size << " of " << body.size();
    }
  }
}

TEST(Frames, ArriveByteByByte) {
  std::string bytes;
  for (const WorkerAnswer& answer : answers()) encode_answer(answer, bytes);
  FrameBuffer buffer;
  std::size_t found = 0;
  for (const char byte : bytes) {
    buffer.add({&byte, 1});
    while (buffer.next().value()) ++found;
  }
  EXPECT_EQ(found, answers().size());
}

TEST(Frames, AnImpossibleLengthIsRefused) {
  FrameBuffer empty;
  empty.add(std::string_view("\0\0\0\0", 4));
  EXPECT_FALSE(empty.next());
  FrameBuffer huge;
  huge.add("\xff\xff\xff\xff");
  EXPECT_FALSE(huge.next());
}

}  // namespace
}  // namespace hapax::transform
