#include "tables/tables.h"

#include "base/format.h"
#include "digest/hash.h"

namespace hapax::tables {

namespace {

void add_quoted(std::string& out, std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      out += "\\u00";
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15];
    } else {
      out += c;
    }
  }
  out += '"';
}

}  // namespace

Status check_filled(std::string_view what, std::string_view text) {
  if (!text.empty()) return Ok{};
  return Error{Errc::kInvalidArgument,
               std::string(what) +
                   " is empty: what somebody forgot to fill in would be taken for the same as "
                   "everything else without it; give it"};
}

Status check_lease(Duration lease) {
  if (lease.count() > 0) return Ok{};
  return Error{Errc::kInvalidArgument,
               base::format("the lease is {} ms; it must be positive", lease.count())};
}

Status check_signed(ClaimKey key, std::string_view actor, std::string_view reason) {
  if (!actor.empty() && !reason.empty()) return Ok{};
  return Error{Errc::kInvalidArgument, "claim '" + std::string(key.scope) + "/" +
                                           std::string(key.key) +
                                           "' was left as it is: the act is audited and needs an "
                                           "actor and a reason"};
}

std::string_view word_of(OnLapse on_lapse) {
  return on_lapse == OnLapse::kUnknown ? "unknown" : "take_over";
}

Former former_of(std::uint32_t attempt, bool lapsed) {
  if (lapsed) return Former::kLapsed;
  return attempt > 1 ? Former::kFailed : Former::kNone;
}

std::string_view word_of(Resolution resolution) {
  if (resolution == Resolution::kRelease) return "release";
  return resolution == Resolution::kCompleted ? "completed" : "not_applied";
}

std::string_view act_of(Resolution resolution) {
  if (resolution == Resolution::kRelease) return "release";
  return resolution == Resolution::kCompleted ? "resolve-completed" : "resolve-not-applied";
}

std::string fingerprint_of(std::string_view content) {
  return digest::sha256(content).substr(0, 16);
}

Fingerprint to_fingerprint(std::string_view bytes) {
  const auto half = [&](std::size_t from) {
    std::uint64_t value = 0;
    for (std::size_t i = from; i < from + 8 && i < bytes.size(); ++i) {
      value = value << 8 | static_cast<unsigned char>(bytes[i]);
    }
    return value;
  };
  return {half(0), half(8)};
}

std::string headers_json(const Event& event) {
  if (event.headers.empty()) return {};
  std::string out = "[";
  for (const auto& [name, value] : event.headers) {
    if (out.size() > 1) out += ',';
    out += '[';
    add_quoted(out, name);
    out += ',';
    add_quoted(out, value);
    out += ']';
  }
  return out + "]";
}

JobStatus status_of(std::string_view word) {
  for (const JobStatus status :
       {JobStatus::kProcessing, JobStatus::kCompleted, JobStatus::kFailed, JobStatus::kUnknown}) {
    if (word == word_of(status)) return status;
  }
  return JobStatus::kNotSeen;
}

}  // namespace hapax::tables
