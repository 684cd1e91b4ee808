#include "delivery/attempt_record.h"

#include <algorithm>
#include <utility>

#include "base/encoding.h"
#include "base/format.h"
#include "base/hex.h"

namespace hapax::delivery {

namespace {

constexpr std::uint8_t kForm = 1;
constexpr std::size_t kHashBytes = 32;  // of a key that is 64 hexadecimal digits

// Of the first byte of an attempt; its lowest two bits are the outcome.
constexpr std::uint8_t kOutcomeBits = 0x03;
constexpr std::uint8_t kKeyIsHash = 0x04;
constexpr std::uint8_t kStatus200 = 0x08;
constexpr std::uint8_t kSameEndpoint = 0x10;  // as the attempt before; of the first one: no name
constexpr std::uint8_t kFirstOfAll = 0x20;    // attempt 1, and never replayed
constexpr std::uint8_t kHasWords = 0x40;      // a reason, or an answer
constexpr std::uint8_t kNoFlag = 0x80;
constexpr int kOk = 200;

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

// The bytes that the text is in lower hexadecimal digits; empty: it is something else.
std::string hash_in(std::string_view text) {
  std::string bytes;
  if (text.size() != 2 * kHashBytes) return bytes;
  bytes.reserve(kHashBytes);
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const int high = digit_of(text[i]);
    const int low = digit_of(text[i + 1]);
    if (high < 0 || low < 0) return {};
    bytes.push_back(static_cast<char>(high << 4 | low));
  }
  return bytes;
}

// Phases follow each other, so each is written as its distance to the one before; TLS may be
// missing.
void write_times(base::Encoder& out, const AttemptTimes& times) {
  const auto since = [](std::uint64_t from, std::uint64_t to) { return to > from ? to - from : 0; };
  out.varint(times.waited);
  out.varint(times.name);
  out.varint(since(times.name, times.connected));
  out.varint(times.tls);
  out.varint(times.first_byte);
  out.varint(since(times.first_byte, times.total));
}

AttemptTimes read_times(base::Decoder& in) {
  AttemptTimes times;
  times.waited = in.varint();
  times.name = in.varint();
  const std::uint64_t connecting = in.varint();
  if (connecting != 0) times.connected = times.name + connecting;
  times.tls = in.varint();
  times.first_byte = in.varint();
  times.total = times.first_byte + in.varint();
  return times;
}

LoggedAttempt read_one(base::Decoder& in, std::string& endpoint, Time noted) {
  LoggedAttempt logged{.noted = noted};
  Attempt& attempt = logged.attempt;
  const std::uint8_t flags = in.u8();
  if ((flags & kNoFlag) != 0) in.refuse();
  attempt.outcome = static_cast<AttemptOutcome>(flags & kOutcomeBits);
  attempt.key = (flags & kKeyIsHash) != 0 ? base::hex(in.raw(kHashBytes)) : in.bytes();
  attempt.place = in.varint();
  const auto age_ms = static_cast<std::int64_t>(in.varint() & 0x7fffffffffff);
  logged.began = noted - Duration{age_ms};
  attempt.facts.status = kOk;
  if ((flags & kStatus200) == 0) attempt.facts.status = static_cast<int>(in.varint() & 0xffff);
  if ((flags & kSameEndpoint) == 0) endpoint = in.bytes();
  attempt.endpoint = endpoint;
  if ((flags & kFirstOfAll) == 0) {
    attempt.number = static_cast<std::uint32_t>(in.varint());
    attempt.replay = static_cast<std::uint32_t>(in.varint());
  }
  attempt.facts.times = read_times(in);
  if ((flags & kHasWords) == 0) return logged;
  attempt.reason = in.bytes();
  attempt.facts.answer = in.bytes();
  attempt.facts.answer_cut = in.u8() != 0;
  return logged;
}

}  // namespace

void AttemptWriter::add(const Attempt& attempt) {
  base::Encoder out(payload_);
  if (count_++ == 0) out.u8(kForm);
  const std::string hash = hash_in(attempt.key);
  const AttemptFacts& facts = attempt.facts;
  const bool first = attempt.number == 1 && attempt.replay == 0;
  const bool words = !attempt.reason.empty() || !facts.answer.empty() || facts.answer_cut;
  auto flags = static_cast<std::uint8_t>(attempt.outcome);
  if (!hash.empty()) flags |= kKeyIsHash;
  if (facts.status == kOk) flags |= kStatus200;
  if (attempt.endpoint == endpoint_) flags |= kSameEndpoint;
  if (first) flags |= kFirstOfAll;
  if (words) flags |= kHasWords;
  out.u8(flags);
  if (hash.empty()) {
    out.bytes(attempt.key);
  } else {
    out.raw(hash);
  }
  out.varint(attempt.place);
  out.varint(static_cast<std::uint64_t>(std::max<std::int64_t>(now_ms_ - attempt.began_ms, 0)));
  if (facts.status != kOk) out.varint(static_cast<std::uint64_t>(std::max(facts.status, 0)));
  if (attempt.endpoint != endpoint_) out.bytes(endpoint_ = attempt.endpoint);
  if (!first) {
    out.varint(attempt.number);
    out.varint(attempt.replay);
  }
  write_times(out, facts.times);
  if (!words) return;
  out.bytes(attempt.reason);
  out.bytes(facts.answer);
  out.u8(facts.answer_cut ? 1 : 0);
}

Result<std::vector<LoggedAttempt>> read_attempts(std::string_view payload, Time noted) {
  base::Decoder in(payload);
  std::vector<LoggedAttempt> all;
  std::string endpoint;
  bool whole = in.u8() == kForm;
  while (whole && !in.finished()) {
    all.push_back(read_one(in, endpoint, noted));
    whole = in.ok() && all.size() <= kAttemptsPerRecord;
  }
  if (whole && !all.empty()) return all;
  return Error{Errc::kCorruption,
               base::format("{} bytes are no record of a log of attempts", payload.size())};
}

}  // namespace hapax::delivery
