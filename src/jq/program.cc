#include "jq/program.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/assert.h"
#include "base/format.h"
#include "base/utf8.h"
#include "base/whole_number.h"
#include "jq/bytecode.h"
#include "transform/json_check.h"

extern "C" {
#include <jq.h>
}

namespace hapax::jq {

namespace {

using transform::ProgramFault;
using transform::ProgramPart;
using transform::TransformFailed;
using transform::TransformFault;
using transform::TransformOutcome;
using transform::TransformOutput;

// Every text is compiled behind one of these, on its own first line. They bind what a transform
// gets besides its input, hide jq's `now`, and give `$ENV` a binding that the check sees. As
// definitions precede it, no text can begin with `import`, `include` or `module`.
constexpr std::string_view kBeforeMain = "null as $ENV|.[0] as $__now|.[1]|def now:$__now; ";
constexpr std::string_view kBeforeOthers =
    "null as $ENV|.[0] as $__now|.[1] as $input|.[2]|def now:$__now; ";

constexpr std::size_t kMessageMax = 1'024;

jq_state* state_of(void* state) { return static_cast<jq_state*>(state); }

// One jv, freed with its scope. take() hands it to a function of libjq, which frees it.
class JqValue {
 public:
  explicit JqValue(jv value) : value_(value) {}
  JqValue(JqValue&& other) noexcept : value_(std::exchange(other.value_, jv_invalid())) {}
  JqValue& operator=(JqValue&&) = delete;
  ~JqValue() { jv_free(value_); }

  [[nodiscard]] bool valid() const { return jv_get_kind(value_) != JV_KIND_INVALID; }
  [[nodiscard]] bool is_string() const { return jv_get_kind(value_) == JV_KIND_STRING; }
  [[nodiscard]] bool has_message() const {
    return !valid() && jv_invalid_has_msg(jv_copy(value_)) != 0;
  }
  [[nodiscard]] JqValue message() const { return JqValue(jv_invalid_get_msg(jv_copy(value_))); }
  [[nodiscard]] jv copy() const { return jv_copy(value_); }
  [[nodiscard]] jv take() { return std::exchange(value_, jv_invalid()); }

  // REQUIRES: is_string().
  [[nodiscard]] std::string_view text() const {
    return {jv_string_value(value_),
            static_cast<std::size_t>(jv_string_length_bytes(jv_copy(value_)))};
  }
  [[nodiscard]] JqValue printed() const { return JqValue(jv_dump_string(jv_copy(value_), 0)); }

 private:
  jv value_;
};

std::string shortened(std::string_view text) {
  if (text.size() <= kMessageMax) return std::string(text);
  std::size_t end = kMessageMax;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return base::format("{}…", text.substr(0, end));
}

std::string text_of(const JqValue& message) {
  if (message.is_string()) return shortened(message.text());
  return shortened(message.printed().text());
}

// jq_dump_disassembly writes to stdout, and glibc lets a program say what that is.
std::string listing_of(jq_state* state) {
  char* bytes = nullptr;
  std::size_t size = 0;
  std::FILE* memory = ::open_memstream(&bytes, &size);
  HAPAX_ASSERT(memory != nullptr, "there is memory for a listing");
  std::FILE* const before = std::exchange(stdout, memory);
  jq_dump_disassembly(state, 0);
  stdout = before;
  std::fclose(memory);
  std::string listing(bytes, size);
  std::free(bytes);
  return listing;
}

std::string_view without(std::string_view text, std::string_view prefix, std::string_view suffix) {
  if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
  if (text.ends_with(suffix)) text.remove_suffix(suffix.size());
  return text;
}

std::string explained(std::string_view message) {
  for (const std::string_view word : {"import", "include", "module"}) {
    if (message.starts_with(base::format("syntax error, unexpected {}", word))) {
      return base::format("{} is refused: a transform has no modules and no files", word);
    }
  }
  return shortened(message);
}

// jq says "jq: error: MESSAGE at <top-level>, line 3:", then the line, then as many blanks as the
// place is from the line's beginning.
ProgramFault fault_of(ProgramPart part, std::string_view report, std::string_view text,
                      std::size_t before) {
  constexpr std::string_view kPlace = " at <top-level>, line ";
  ProgramFault fault{.part = part, .message = {}};
  const std::size_t place = report.find(kPlace);
  std::string_view message = report.substr(0, std::min(place, report.find('\n')));
  message = without(message, "jq: error: ", " (Unix shell quoting issues?)");
  fault.message = explained(message);
  if (place == std::string_view::npos) return fault;
  report.remove_prefix(place + kPlace.size());
  const auto line = base::take_number(report);
  if (!line || !report.starts_with(":\n")) return fault;
  report.remove_prefix(2);
  for (std::uint64_t i = 1; i < *line && !text.empty(); ++i) {
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  }
  const std::size_t length = std::min(text.find('\n'), text.size());
  if (report.size() < length) return fault;
  const std::size_t first = *line == 1 ? before : 0;
  const std::size_t offset = std::max(report.size() - length, first) - first;
  fault.line = static_cast<std::uint32_t>(*line);
  fault.column = static_cast<std::uint32_t>(offset + 1);
  return fault;
}

struct Reports {
  std::vector<std::string> all;
};

void report(void* reports, jv message) {
  const JqValue owned(message);
  static_cast<Reports*>(reports)->all.push_back(
      owned.is_string() ? std::string(owned.text()) : std::string(owned.printed().text()));
}

// In the place of what is nested too deeply jq writes a marker such as <skipped: too deep>, whose
// words differ between builds. Outside of strings JSON has no such bracket.
bool is_whole(std::string_view json) {
  if (json.find('<') == std::string_view::npos) return true;
  bool in_string = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    if (json[i] == '"') in_string = !in_string;
    if (in_string && json[i] == '\\') ++i;
    if (!in_string && json[i] == '<') return false;
  }
  return true;
}

TransformFailed failed(TransformFault fault, std::string message) {
  return {fault, std::move(message)};
}

template <class... Values>
jv list(Values... values) {
  jv all = jv_array();
  ((all = jv_array_append(all, values)), ...);
  return all;
}

// The one string that a program gives, or why it does not.
std::optional<TransformFailed> pick_string(jq_state* state, std::string_view what, jv arguments,
                                           std::optional<std::string>& to) {
  jq_start(state, arguments, 0);
  const JqValue first(jq_next(state));
  const JqValue second(first.valid() ? jq_next(state) : jv_invalid());
  std::string reason;
  if (first.has_message() || second.has_message()) {
    reason = text_of(first.has_message() ? first.message() : second.message());
  } else if (!first.valid()) {
    reason = "the program gives nothing for an output";
  } else if (second.valid()) {
    reason = "the program gives more than one value for an output";
  } else if (!first.is_string()) {
    reason =
        base::format("the program gives {}, expected a string", shortened(first.printed().text()));
  } else {
    to = first.text();
    return std::nullopt;
  }
  return failed(TransformFault::kError, base::format("{}: {}", what, reason));
}

// Takes outputs up to the limits.
class Outputs {
 public:
  explicit Outputs(const OutputLimits& limits) : limits_(limits) {}

  std::optional<TransformFailed> add(TransformOutput output) {
    if (!is_whole(output.data)) return too_much("an output has more than 256 levels");
    bytes_ += output.data.size();
    if (output.event_type) bytes_ += output.event_type->size();
    if (output.key) bytes_ += output.key->size();
    if (bytes_ > limits_.bytes_max) {
      return too_much(base::format("the outputs have more than {} bytes", limits_.bytes_max));
    }
    if (taken_.outputs.size() == limits_.outputs_max) {
      return too_much(base::format("there are more than {} outputs", limits_.outputs_max));
    }
    taken_.outputs.push_back(std::move(output));
    return std::nullopt;
  }
  transform::Transformed take() { return std::move(taken_); }

 private:
  static TransformFailed too_much(std::string message) {
    return failed(TransformFault::kTooMuchOutput, std::move(message));
  }

  OutputLimits limits_;
  std::size_t bytes_ = 0;
  transform::Transformed taken_;
};

}  // namespace

void CompiledPart::Teardown::operator()(void* state) const {
  jq_state* owned = state_of(state);
  jq_teardown(&owned);
}

std::optional<CompiledPart> CompiledPart::compile(ProgramPart part, const std::string& text,
                                                  NoMemory no_memory,
                                                  std::vector<ProgramFault>& faults) {
  const std::size_t before = faults.size();
  if (text.size() > transform::kProgramMax) {
    faults.push_back(
        {part, 0, 0, base::format("{} bytes, at most {}", text.size(), transform::kProgramMax)});
  }
  if (!base::is_utf8(text) || text.find('\0') != std::string::npos) {
    faults.push_back({part, 0, 0, "the text is not UTF-8, or it has a NUL"});
  }
  if (faults.size() > before) return std::nullopt;

  const std::string_view prelude = part == ProgramPart::kMain ? kBeforeMain : kBeforeOthers;
  const std::string whole = base::format("{}{}", prelude, text);
  State state(jq_init());
  HAPAX_ASSERT(state != nullptr, "there is memory for a program");
  jq_set_nomem_handler(state_of(state.get()), no_memory, nullptr);
  Reports reports;
  jq_set_error_cb(state_of(state.get()), report, &reports);
  const bool good = jq_compile(state_of(state.get()), whole.c_str()) != 0;
  jq_set_error_cb(state_of(state.get()), nullptr, nullptr);
  if (good) {
    for (std::string& refusal : refusals(listing_of(state_of(state.get())))) {
      faults.push_back({part, 0, 0, std::move(refusal)});
    }
  } else {
    // The last report only counts the others.
    if (reports.all.size() > 1) reports.all.pop_back();
    for (const std::string& each : reports.all) {
      faults.push_back(fault_of(part, each, whole, prelude.size()));
    }
    if (reports.all.empty()) faults.push_back({part, 0, 0, "jq gives no reason"});
  }
  if (faults.size() > before) return std::nullopt;
  return CompiledPart(std::move(state));
}

std::variant<CompiledTransform, std::vector<ProgramFault>> CompiledTransform::compile(
    const transform::TransformText& text, NoMemory no_memory) {
  std::vector<ProgramFault> faults;
  std::optional<CompiledPart> event_type;
  std::optional<CompiledPart> key;
  auto main = CompiledPart::compile(ProgramPart::kMain, text.main, no_memory, faults);
  if (!text.event_type.empty()) {
    event_type = CompiledPart::compile(ProgramPart::kEventType, text.event_type, no_memory, faults);
  }
  if (!text.key.empty()) {
    key = CompiledPart::compile(ProgramPart::kKey, text.key, no_memory, faults);
  }
  if (!faults.empty()) return faults;
  return CompiledTransform(*std::move(main), std::move(event_type), std::move(key), text.numbers);
}

TransformOutcome CompiledTransform::run(std::string_view input, std::int64_t time_ms,
                                        const OutputLimits& limits) {
  if (auto refused = transform::check_json(input, numbers_)) return *std::move(refused);
  JqValue record(jv_parse_sized(input.data(), static_cast<int>(input.size())));
  if (!record.valid()) {
    const std::string reason = record.has_message() ? text_of(record.message()) : "no value";
    return failed(TransformFault::kBadInput, base::format("jq cannot read it: {}", reason));
  }
  const JqValue now(jv_number(static_cast<double>(time_ms) / 1'000));
  Outputs outputs(limits);
  jq_state* const main = state_of(main_.state_.get());
  // jq changes a value in place if nobody else holds it.
  const bool record_is_needed = event_type_ || key_;
  jq_start(main, list(now.copy(), record_is_needed ? record.copy() : record.take()), 0);
  while (true) {
    const JqValue value(jq_next(main));
    if (value.has_message()) return failed(TransformFault::kError, text_of(value.message()));
    if (!value.valid()) return outputs.take();
    TransformOutput output{.data = std::string(value.printed().text())};
    std::optional<TransformFailed> reason;
    if (event_type_) {
      reason = pick_string(state_of(event_type_->state_.get()), "eventType",
                           list(now.copy(), record.copy(), value.copy()), output.event_type);
    }
    if (!reason && key_) {
      reason = pick_string(state_of(key_->state_.get()), "key",
                           list(now.copy(), record.copy(), value.copy()), output.key);
    }
    if (!reason) reason = outputs.add(std::move(output));
    if (reason) return *std::move(reason);
  }
}

Status check_library(NoMemory no_memory) {
  jv_nomem_handler(no_memory, nullptr);
  std::vector<ProgramFault> faults;
  const auto part =
      CompiledPart::compile(ProgramPart::kMain, "[env, $ENV, input]", no_memory, faults);
  if (part || faults.size() != 3) {
    return Error{Errc::kUnavailable, "this libjq does not show what a program calls; expected 1.6"};
  }
  return Ok{};
}

}  // namespace hapax::jq
