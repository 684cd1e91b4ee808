#include "rest/trace.h"

#include <algorithm>
#include <span>

namespace hapax::rest {

namespace {

constexpr std::size_t kRequestIdMax = 128;

bool is_request_id(std::string_view text) {
  const auto fits = [](char c) { return c > ' ' && c < 0x7f && c != '"' && c != '\\'; };
  return !text.empty() && text.size() <= kRequestIdMax &&
         std::all_of(text.begin(), text.end(), fits);
}

bool is_hex(std::string_view text) {
  const auto fits = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return std::all_of(text.begin(), text.end(), fits);
}

bool is_zero(std::string_view text) { return text.find_first_not_of('0') == text.npos; }

// version "-" trace "-" parent "-" flags: 2, 32, 16 and 2 hex digits. Later versions may say more
// behind a further "-".
bool is_traceparent(std::string_view text) {
  if (text.size() < 55 || text[2] != '-' || text[35] != '-' || text[52] != '-') return false;
  const std::string_view version = text.substr(0, 2);
  if (text.size() > 55 && (version == "00" || text[55] != '-')) return false;
  const std::string_view trace = text.substr(3, 32);
  const std::string_view parent = text.substr(36, 16);
  return is_hex(version) && version != "ff" && is_hex(trace) && !is_zero(trace) && is_hex(parent) &&
         !is_zero(parent) && is_hex(text.substr(53, 2));
}

}  // namespace

Tracer::Tracer(ports::Entropy& entropy) {
  std::uint64_t first = 0;
  entropy.fill(std::as_writable_bytes(std::span(&first, 1)));
  next_ = first;
}

std::string Tracer::next_id() {
  // The finalizer of SplitMix64: neighbours look nothing alike.
  std::uint64_t id = next_.fetch_add(0x9e3779b97f4a7c15ULL, std::memory_order_relaxed);
  id = (id ^ (id >> 30)) * 0xbf58476d1ce4e5b9ULL;
  id = (id ^ (id >> 27)) * 0x94d049bb133111ebULL;
  id ^= id >> 31;
  std::string text(16, '0');
  for (char& digit : text) {
    digit = "0123456789abcdef"[id & 15U];
    id >>= 4U;
  }
  return text;
}

Trace Tracer::trace_of(const http::Fields& fields) {
  Trace trace;
  const std::string_view given = fields.get("X-Request-Id");
  trace.request_id = is_request_id(given) ? std::string(given) : next_id();
  const std::string_view parent = fields.get("traceparent");
  if (!is_traceparent(parent) || fields.count("traceparent") != 1) return trace;
  trace.trace_id = parent.substr(3, 32);
  trace.parent = "00-" + trace.trace_id + "-" + next_id() + "-" + std::string(parent.substr(53, 2));
  return trace;
}

}  // namespace hapax::rest
