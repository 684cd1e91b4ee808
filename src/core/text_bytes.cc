#include "core/text_bytes.h"

namespace hapax::core {

namespace {

constexpr std::uint64_t kPendingBytes = 240;
constexpr std::uint64_t kParkedBytes = 64;
constexpr std::uint64_t kSpanBytes = 72;

}  // namespace

std::uint64_t text_bytes_of(const Run& run) {
  return sizeof(Run) + run.groups.size() * sizeof(GroupHash);
}

std::uint64_t text_bytes_of(const Stream& stream) {
  std::uint64_t bytes = kStreamBytes + stream.name.size() + stream.group_last.size() * kGroupBytes;
  for (const auto& [name, producer] : stream.producers) {
    bytes += kProducerBytes + name.size() + producer.stored.size() * sizeof(Producer::Stored);
  }
  for (const auto& [sequence, consumer] : stream.addressed) bytes += addressed_bytes(consumer);
  return bytes;
}

std::uint64_t text_bytes_of(const Consumer& consumer) {
  return kConsumerBytes + consumer.name.size() + consumer.settings.dead_letters.size() +
         consumer.pending.size() * kPendingBytes + consumer.past_bytes +
         consumer.parked.size() * kParkedBytes +
         (consumer.acked.size() + consumer.acked_tokens.size()) * kSpanBytes;
}

}  // namespace hapax::core
