#include "database/tables.h"

#include "digest/hash.h"

namespace hapax::database {

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
       {JobStatus::kProcessing, JobStatus::kCompleted, JobStatus::kFailed}) {
    if (word == word_of(status)) return status;
  }
  return JobStatus::kNotSeen;
}

}  // namespace hapax::database
