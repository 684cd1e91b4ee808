#include "jq/bytecode.h"

#include <algorithm>
#include <iterator>

#include "base/format.h"

namespace hapax::jq {

namespace {

struct RefusedFunction {
  std::string_view function;  // as libjq calls it
  std::string_view shown;
  std::string_view reason;
};

constexpr std::string_view kOneRecord = "a transform sees one record only";
constexpr std::string_view kNoMachine = "the environment differs between machines";
constexpr std::string_view kNoZone = "the time zone differs between machines; use gmtime, strftime";
constexpr std::string_view kNoSide = "a transform has no output but its own";
constexpr std::string_view kNoModule = "a transform has no modules and no files";

constexpr RefusedFunction kRefused[] = {
    {"env", "env", kNoMachine},
    {"_input", "input", kOneRecord},
    {"input_filename", "input_filename", kOneRecord},
    {"input_line_number", "input_line_number", kOneRecord},
    {"localtime", "localtime", kNoZone},
    {"strflocaltime", "strflocaltime", kNoZone},
    {"debug", "debug", kNoSide},
    {"stderr", "stderr", kNoSide},
    {"halt", "halt", "a transform ends with its outputs; use empty"},
    {"halt_error", "halt_error", "a transform ends with its outputs; use error"},
    {"get_search_list", "get_search_list", kNoModule},
    {"get_prog_origin", "get_prog_origin", kNoModule},
    {"get_jq_origin", "get_jq_origin", kNoModule},
    {"modulemeta", "modulemeta", kNoModule},
};

// X2: what a program may call is read from its bytecode, and a function that nobody has looked at
// is refused. These are the functions of libjq 1.6 whose answer depends on their arguments only,
// with a blank on both sides of each. One that is in neither list came with another libjq.
constexpr std::string_view kPure =
    " _divide _equal _greater _greatereq _group_by_impl _less _lesseq _match_impl _max_by_impl"
    " _min_by_impl _minus _mod _multiply _negate _notequal _plus _sort_by_impl _strindices"
    " acos acosh asin asinh atan atan2 atanh cbrt ceil contains copysign cos cosh delpaths"
    " drem endswith erf erfc error exp exp10 exp2 explode expm1 fabs fdim floor fma fmax fmin"
    " fmod format frexp fromjson gamma getpath gmtime has hypot implode infinite isinfinite"
    " isnan isnormal j0 j1 jn keys keys_unsorted ldexp length lgamma lgamma_r log log10 log1p"
    " log2 logb ltrimstr max min mktime modf nan nearbyint nextafter nexttoward pow pow10"
    " remainder rint round rtrimstr scalb scalbln setpath significand sin sinh sort split sqrt"
    " startswith strftime strptime tan tanh tgamma tojson tonumber tostring trunc type"
    " utf8bytelength y0 y1 yn"
    " ";

std::string refusal_of_function(std::string_view function) {
  if (kPure.find(base::format(" {} ", function)) != std::string_view::npos) return {};
  const auto* known =
      std::find_if(std::begin(kRefused), std::end(kRefused),
                   [&](const RefusedFunction& one) { return one.function == function; });
  if (known == std::end(kRefused)) {
    return base::format("{} is refused: this version of Hapax does not know it", function);
  }
  return base::format("{} is refused: {}", known->shown, known->reason);
}

std::string_view take_word(std::string_view& line) {
  const std::size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

// An instruction is "0012 NAME ARGUMENT"; names of functions and their parameters have lines of
// their own. Constants are JSON, which has no line breaks.
std::string refusal_of_line(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  const std::string_view number = take_word(line);
  if (number.find_first_not_of("0123456789") != std::string_view::npos) return {};
  const std::string_view name = take_word(line);
  if (name == "CALL_BUILTIN") return refusal_of_function(line);
  const bool loads = name == "LOADV" || name == "LOADVN";
  if (loads && line.starts_with("$ENV:")) return base::format("$ENV is refused: {}", kNoMachine);
  return {};
}

}  // namespace

std::vector<std::string> refusals(std::string_view listing) {
  std::vector<std::string> found;
  while (!listing.empty()) {
    const std::size_t end = std::min(listing.find('\n'), listing.size());
    std::string refusal = refusal_of_line(listing.substr(0, end));
    listing.remove_prefix(std::min(end + 1, listing.size()));
    if (refusal.empty() || std::find(found.begin(), found.end(), refusal) != found.end()) continue;
    found.push_back(std::move(refusal));
  }
  return found;
}

}  // namespace hapax::jq
