// libjq itself, in the test's own process: what a text may say, and what comes of it.
#include "jq/program.h"

#include <cstdlib>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hapax::jq {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using transform::ProgramFault;
using transform::ProgramPart;
using transform::TransformFailed;
using transform::TransformFault;
using transform::TransformNumbers;
using transform::TransformOutcome;
using transform::TransformText;

constexpr std::int64_t kTimeMs = 1'700'000'000'123;

void no_memory(void* /*unused*/) { std::abort(); }

std::vector<ProgramFault> faults_of(TransformText text) {
  auto compiled = CompiledTransform::compile(text, no_memory);
  auto* faults = std::get_if<std::vector<ProgramFault>>(&compiled);
  return faults == nullptr ? std::vector<ProgramFault>{} : std::move(*faults);
}

std::string fault_of(std::string main) {
  const auto faults = faults_of({.main = std::move(main)});
  return faults.empty() ? "none" : faults.front().message;
}

TransformOutcome run(const TransformText& text, std::string_view input) {
  auto compiled = CompiledTransform::compile(text, no_memory);
  if (auto* faults = std::get_if<std::vector<ProgramFault>>(&compiled)) {
    return TransformFailed{TransformFault::kError, faults->front().message};
  }
  return std::get<CompiledTransform>(compiled).run(input, kTimeMs, {1'000'000, 1'000});
}

// The outputs with a comma between them, or the message.
std::string outputs(const TransformText& text, std::string_view input) {
  const auto outcome = run(text, input);
  if (const auto* failed = std::get_if<TransformFailed>(&outcome)) return failed->message;
  std::string all;
  for (const auto& output : std::get<transform::Transformed>(outcome).outputs) {
    all += (all.empty() ? "" : " ") + output.data;
  }
  return all;
}

TEST(Program, RefusesWhatDependsOnTheMachine) {
  for (const char* name :
       {"env", "input", "inputs", "_input", "input_filename", "input_line_number", "localtime",
        "strflocaltime(\"%c\")", "debug", "stderr", "halt", "halt_error", "halt_error(1)",
        "get_search_list", "get_prog_origin", "get_jq_origin", "modulemeta"}) {
    EXPECT_THAT(fault_of(name), HasSubstr("is refused")) << name;
    // However it is written.
    EXPECT_THAT(fault_of(std::string("\"\\(") + name + ")\""), HasSubstr("is refused")) << name;
    EXPECT_THAT(fault_of(std::string("def f: ") + name + "; [.[] | f]"), HasSubstr("is refused"));
    EXPECT_THAT(fault_of(std::string("\"#\" | # \"\n") + name), HasSubstr("is refused")) << name;
  }
}

TEST(Program, RefusesTheEnvironmentAsAVariable) {
  for (const char* text : {"$ENV", "$ENV.HOME", "{$ENV}", "$ # a comment\n ENV", "def f: $ENV; f",
                           "\"\\($ENV)\"", "reduce .[] as $x ($ENV; .)"}) {
    EXPECT_THAT(fault_of(text), HasSubstr("$ENV is refused")) << text;
  }
}

TEST(Program, RefusesModules) {
  EXPECT_THAT(fault_of("import \"a\" as a; ."), HasSubstr("import is refused"));
  EXPECT_THAT(fault_of("# c\ninclude \"a\"; ."), HasSubstr("include is refused"));
  EXPECT_THAT(fault_of("module {}; ."), HasSubstr("module is refused"));
  EXPECT_THAT(fault_of("import \"a\" as $a; ."), HasSubstr("import is refused"));
}

// Words in strings, comments, keys, fields and own definitions are not calls.
TEST(Program, WordsAloneAreNotRefused) {
  EXPECT_EQ(
      outputs({.main = "{env: .input, debug: \"now env $ENV\"} # input env"}, R"({"input":1})"),
      R"({"env":1,"debug":"now env $ENV"})");
  EXPECT_EQ(outputs({.main = "{import: 1, include: .include, module: 2}"}, R"({"include":3})"),
            R"({"import":1,"include":3,"module":2})");
  EXPECT_EQ(
      outputs({.main = "def env: 5; def f(input): input; env, f(6), ({env: 7} | {env})"}, "1"),
      R"(5 6 {"env":7})");
  EXPECT_EQ(outputs({.main = "3 as $env | $env, ([4] | .[0] as $input | $input)"}, "1"), "3 4");
}

TEST(Program, NowIsTheRecordsTime) {
  EXPECT_EQ(outputs({.main = "now, (now | todate), (now | gmtime | mktime)"}, "1"),
            R"(1700000000.123 "2023-11-14T22:13:20Z" 1700000000)");
  EXPECT_EQ(outputs({.main = "[1,2] | map(now) | unique | length"}, "1"), "1");
}

TEST(Program, KnowsEveryOtherFunctionOfThisLibrary) {
  const std::string unary =
      "acos, acosh, asin, asinh, atan, atanh, cbrt, ceil, cos, cosh, erf, erfc, exp, exp10, exp2, "
      "expm1, fabs, floor, frexp, gamma, j0, j1, lgamma, lgamma_r, log, log10, log1p, log2, logb, "
      "modf, nearbyint, pow10, rint, round, significand, sin, sinh, sqrt, tan, tanh, tgamma, "
      "trunc, y0, y1, isinfinite, isnan, isnormal, infinite, nan, type, tojson, tostring, length, "
      "tonumber, keys, keys_unsorted, explode, implode, sort, min, max, fromjson, gmtime, mktime, "
      "utf8bytelength, error, not, unique, add, transpose, tostream, paths, leaf_paths, "
      "to_entries, "
      "from_entries, ascii_downcase, ascii_upcase, todate, fromdate, builtins, recurse, flatten, "
      "reverse, combinations, any, all, first, last, $__loc__, @base64, @base64d, @csv, @html, "
      "@json, @sh, @text, @tsv, @uri";
  const std::string others =
      "atan2(1;2), copysign(1;2), drem(1;2), fdim(1;2), fma(1;2;3), fmax(1;2), fmin(1;2), "
      "fmod(1;2), hypot(1;2), jn(1;2), ldexp(1;2), nextafter(1;2), nexttoward(1;2), pow(1;2), "
      "remainder(1;2), scalb(1;2), scalbln(1;2), yn(1;2), contains(1), has(1), startswith(1), "
      "endswith(1), ltrimstr(1), rtrimstr(1), split(1), split(1;2), splits(1), test(1), match(1), "
      "capture(1), scan(1), sub(1;2), gsub(1;2), getpath([]), setpath([];1), delpaths([]), "
      "del(.a), path(.a), error(1), strftime(\"\"), strptime(\"\"), sort_by(.), group_by(.), "
      "min_by(.), max_by(.), unique_by(.), map(.), select(.), limit(1;.), first(.), until(.;.), "
      "while(.;.), repeat(.), range(1), range(1;2;3), walk(.), with_entries(.), index(1), "
      "inside(1), join(1), bsearch(1), INDEX(.), IN(1), isempty(.), env?";
  EXPECT_EQ(fault_of(unary), "none");
  EXPECT_EQ(fault_of(others.substr(0, others.size() - 6)), "none");
  EXPECT_THAT(fault_of(others), HasSubstr("env is refused"));
}

TEST(Program, FaultsNameTheirPlace) {
  const auto faults = faults_of({.main = ".a | foo", .event_type = "1 +\n\n  $x", .key = "{"});
  ASSERT_EQ(faults.size(), 3U);
  EXPECT_EQ(faults[0], (ProgramFault{ProgramPart::kMain, 1, 6, "foo/0 is not defined"}));
  EXPECT_EQ(faults[1], (ProgramFault{ProgramPart::kEventType, 3, 3, "$x is not defined"}));
  EXPECT_EQ(faults[2].part, ProgramPart::kKey);
  EXPECT_EQ(faults[2].line, 1U);
  EXPECT_THAT(faults[2].message, HasSubstr("syntax error"));
  for (const char* text : {"", "# nothing", "def f: 1;", " "}) {
    EXPECT_THAT(fault_of(text), HasSubstr("syntax error")) << text;
  }
  EXPECT_THAT(fault_of(std::string("1\0", 2)), HasSubstr("NUL"));
  EXPECT_THAT(fault_of("\"\xff\""), HasSubstr("UTF-8"));
}

TEST(Program, TheLineOfTheTextIsTheLineOfItsPlace) {
  EXPECT_EQ(outputs({.main = "$__loc__.line, (\n$__loc__.line)"}, "1"), "1 2");
}

TEST(Program, ErrorsAreJqs) {
  EXPECT_EQ(outputs({.main = ".a.b"}, R"({"a":"x"})"), R"(Cannot index string with string "b")");
  EXPECT_EQ(outputs({.main = "1, error({a: 1})"}, "1"), R"({"a":1})");
  EXPECT_EQ(outputs({.main = "error(\"x\" * 5000)"}, "1").size(), 1'024 + 3U);
  EXPECT_EQ(outputs({.main = "try error(\"x\") catch (\"caught \" + .)"}, "1"), "\"caught x\"");
}

TEST(Program, EventTypeAndKeyAreOneString) {
  EXPECT_THAT(outputs({.main = ".", .event_type = "1"}, "1"),
              HasSubstr("eventType: the program gives 1, expected a string"));
  EXPECT_THAT(outputs({.main = ".", .key = "empty"}, "1"),
              HasSubstr("key: the program gives noth"));
  EXPECT_THAT(outputs({.main = ".", .key = "\"a\", \"b\""}, "1"), HasSubstr("more than one"));
  EXPECT_EQ(outputs({.main = ".", .key = "\"a\", error(\"late\")"}, "1"), "key: late");
  EXPECT_EQ(outputs({.main = "$input"}, "1"), "$input is not defined");
}

TEST(Program, NumbersThatPassTheCheckComeBack) {
  for (const char* number :
       {"0", "-0", "1", "0.1", "19.99", "1e2", "9007199254740992", "9007199254740994", "1e23",
        "5e-324", "1.7976931348623157e308", "0.30000000000000004", "123456789012345"}) {
    const std::string printed = outputs({.main = "."}, number);
    EXPECT_EQ(std::strtod(printed.c_str(), nullptr), std::strtod(number, nullptr)) << printed;
  }
  EXPECT_EQ(outputs({.main = "., 1.0, 1e2, -0"}, "1.0"), "1 1 100 -0");
}

TEST(Program, WhatItWouldAlterFailsUnlessDoublesAreWanted) {
  const auto outcome = run({.main = "."}, "9007199254740993");
  EXPECT_EQ(std::get<TransformFailed>(outcome).fault, TransformFault::kWouldAlter);
  EXPECT_EQ(outputs({.main = ".", .numbers = TransformNumbers::kDouble}, "9007199254740993"),
            "9007199254740992");
  EXPECT_EQ(std::get<TransformFailed>(run({.main = "."}, "{")).fault, TransformFault::kBadInput);
}

TEST(Program, KeysKeepTheOrderOfInsertion) {
  EXPECT_EQ(outputs({.main = "., (.b = 1), (del(.z) | .z = 2), {y: 1, x: 2}"}, R"({"z":1,"a":2})"),
            R"({"z":1,"a":2} {"z":1,"a":2,"b":1} {"a":2,"z":2} {"y":1,"x":2})");
}

TEST(Program, TextSurvivesAsItIs) {
  EXPECT_EQ(outputs({.main = "."}, R"("a\u0000b\ud83d\ude00ü\n")"), "\"a\\u0000b😀ü\\n\"");
}

// jq writes a marker in the place of what is too deep: that is not JSON.
TEST(Program, AnOutputTooDeepForJqFails) {
  EXPECT_THAT(outputs({.main = "reduce range(300) as $i (1; [.])"}, "1"), HasSubstr("256 levels"));
  EXPECT_EQ(outputs({.main = "\"<b>\\\"<\""}, "1"), "\"<b>\\\"<\"");
}

TEST(Program, ThisLibraryIsFit) { EXPECT_TRUE(check_library(no_memory)); }

}  // namespace
}  // namespace hapax::jq
