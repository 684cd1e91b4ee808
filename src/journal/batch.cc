#include "journal/batch.h"

#include <algorithm>

#include "base/assert.h"
#include "digest/crc32c.h"
#include "journal/block.h"

namespace hapax::journal {
namespace {

constexpr std::size_t kLengthBytesMax = 4;  // varint of anything up to kBatchBytesMax
static_assert(kBatchBytesMax < std::uint32_t{1} << (7 * kLengthBytesMax));

std::size_t varint_bytes(std::size_t value) {
  std::size_t bytes = 1;
  for (; value >= 0x80; value >>= 7) ++bytes;
  return bytes;
}

void put_varint(char* to, std::size_t value) {
  for (; value >= 0x80; value >>= 7) *to++ = static_cast<char>((value & 0x7f) | 0x80);
  *to = static_cast<char>(value);
}

}  // namespace

std::uint32_t append_sealed(std::string& out, const BatchHeader& header, std::string_view payload) {
  HAPAX_ASSERT(header.payload == payload.size(), "the header tells the payload's length");
  const std::size_t end = out.size() + sealed_bytes(header.payload);
  const HeaderBytes front = encode(header);
  const std::string_view front_bytes(front.data(), front.size());
  out.append(front_bytes).append(payload);
  const std::size_t payload_end = out.size();
  const std::uint32_t checksum = digest::crc32c(payload, crc_of(front_bytes));
  out.resize(end);
  put(out, payload_end, checksum);
  return checksum;
}

void Batch::begin(Lsn first, Time log_time) {
  bytes_.resize(kHeaderBytes);
  first_ = first;
  log_time_ = log_time;
  count_ = 0;
  payload_end_ = kHeaderBytes;
  fact_start_ = kNoFact;
  closed_ = false;
  frees_space_ = false;
}

std::string& Batch::begin_fact(std::size_t expected_bytes) {
  HAPAX_ASSERT(fact_start_ == kNoFact, "one fact is built at a time");
  HAPAX_ASSERT(!closed_, "a sealed batch takes no facts");
  fact_start_ = bytes_.size();
  length_bytes_ = varint_bytes(expected_bytes);
  bytes_.append(length_bytes_, '\0');
  return bytes_;
}

std::uint32_t Batch::end_fact() {
  HAPAX_ASSERT(fact_start_ != kNoFact, "a fact was begun");
  HAPAX_ASSERT(bytes_.size() >= fact_start_ + length_bytes_, "a fact is only appended to");
  const std::size_t size = bytes_.size() - fact_start_ - length_bytes_;
  const std::size_t needed = varint_bytes(size);
  if (needed > length_bytes_) bytes_.insert(fact_start_, needed - length_bytes_, '\0');
  if (needed < length_bytes_) bytes_.erase(fact_start_, length_bytes_ - needed);
  put_varint(bytes_.data() + fact_start_, size);
  const std::size_t offset = fact_start_ + needed;
  fact_start_ = kNoFact;
  payload_end_ = bytes_.size();
  HAPAX_ASSERT(payload_bytes() <= kBatchBytesMax, "a batch keeps within its limit");
  ++count_;
  return static_cast<std::uint32_t>(offset);
}

void Batch::drop_fact() {
  HAPAX_ASSERT(fact_start_ != kNoFact, "a fact was begun");
  bytes_.resize(fact_start_);
  fact_start_ = kNoFact;
}

std::uint32_t Batch::add(std::string_view fact) {
  begin_fact(fact.size()).append(fact);
  return end_fact();
}

void Batch::cut(Mark mark) {
  HAPAX_ASSERT(fact_start_ == kNoFact, "whole facts are cut off");
  HAPAX_ASSERT(!closed_ && mark.end <= payload_end_, "only the end of an open batch is cut off");
  bytes_.resize(mark.end);
  payload_end_ = mark.end;
  count_ = mark.count;
}

std::uint32_t Batch::payload_bytes() const {
  return static_cast<std::uint32_t>(payload_end_ - kHeaderBytes);
}

bool Batch::has_room(std::size_t fact_bytes) const {
  return fact_bytes <= kBatchBytesMax &&
         payload_bytes() + kLengthBytesMax + fact_bytes <= kBatchBytesMax;
}

void Batch::close() {
  HAPAX_ASSERT(fact_start_ == kNoFact, "every fact is ended before the batch is sealed");
  HAPAX_ASSERT(count_ > 0, "a batch has facts");
  bytes_.resize(bytes());
  closed_ = true;
}

std::string_view Batch::seal(const Seal& seal) {
  if (!closed_) close();
  BatchHeader header;
  header.flags = seal.flags;
  header.salt = seal.salt;
  header.first = first_;
  header.count = count_;
  header.payload = payload_bytes();
  header.durable = seal.durable;
  header.log_time = log_time_;
  header.chain = seal.chain;
  const HeaderBytes front = encode(header);
  std::copy(front.begin(), front.end(), bytes_.begin());

  const std::uint32_t header_crc = crc_of({front.data(), front.size()});
  const std::string_view payload(bytes_.data() + kHeaderBytes, header.payload);
  const std::uint32_t checksum = digest::crc32c(payload, header_crc);
  put(bytes_, payload_end_, checksum);
  return bytes_;
}

std::uint32_t Batch::checksum() const {
  HAPAX_ASSERT(closed_, "only a sealed batch has a checksum");
  return get<std::uint32_t>(bytes_, payload_end_);
}

}  // namespace hapax::journal
