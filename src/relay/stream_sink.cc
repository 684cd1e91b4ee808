#include "relay/stream_sink.h"

#include <algorithm>
#include <variant>

#include "base/filled.h"

namespace hapax::relay {

namespace {

using PieceKind = PieceAnswer::Kind;
using Ending = SinkDelivery::Ending;

constexpr std::size_t kPieceRecords = 1'000;
constexpr std::size_t kPieceBytes = std::size_t{4} << 20;

std::size_t piece_size(std::span<const Outgoing* const> records) {
  std::size_t bytes = 0;
  std::size_t count = 0;
  while (count < std::min(records.size(), kPieceRecords)) {
    bytes += records[count]->payload.size();
    if (count != 0 && bytes > kPieceBytes) break;
    ++count;
  }
  return count;
}

// A record that breaks a rule of the store breaks it again; everything else may pass.
bool is_own_fault(Errc code) {
  return code == Errc::kInvalidArgument || code == Errc::kLimitExceeded || code == Errc::kConflict;
}

PieceAnswer answer_of(const Error& error) {
  return {is_own_fault(error.code) ? PieceKind::kTooLarge : PieceKind::kUnavailable, 0,
          error.text()};
}

PieceAnswer answer_of(const Verdict& verdict, std::size_t place) {
  if (const auto* refused = std::get_if<Refused>(&verdict)) {
    const PieceKind kind =
        is_own_fault(refused->error.code) ? PieceKind::kRefused : PieceKind::kUnavailable;
    return {kind, place, refused->error.text()};
  }
  return {PieceKind::kRefused, place, std::string(word_of(verdict))};
}

}  // namespace

SinkDelivery PieceSink::deliver(std::span<const Outgoing* const> records, const Permit& permit) {
  std::size_t done = 0;
  std::size_t size = piece_size(records);
  Duration longest{0};  // that a piece took
  while (done < records.size()) {
    // Nothing is begun that would probably not be answered in time.
    const Duration left = permit.left();
    if (left <= longest || !permit.good()) return {done, Ending::kOutOfTime, {}};
    const PieceAnswer answer = send(records.subspan(done, size), permit);
    if (answer.kind == PieceKind::kUnavailable) {
      const bool cut_off = permit.cuts_off();
      return {done, cut_off ? Ending::kOutOfTime : Ending::kUnavailable, answer.reason};
    }
    if (answer.kind == PieceKind::kAll) {
      longest = std::max(longest, left - permit.left());
      done += size;
      size = piece_size(records.subspan(done));
    } else if (size == 1) {
      return {done, Ending::kRefused, answer.reason};
    } else if (answer.kind == PieceKind::kRefused && answer.refused < size) {
      // First those before it, then it alone.
      size = answer.refused == 0 ? 1 : answer.refused;
    } else {
      size /= 2;
    }
  }
  return {done, Ending::kAll, {}};
}

std::vector<std::pair<std::string, std::string>> stream_headers(const Outgoing& record) {
  std::vector<std::pair<std::string, std::string>> headers{{"event_type", record.type}};
  if (!record.correlation_id.empty()) headers.emplace_back("correlation_id", record.correlation_id);
  if (!record.causation_id.empty()) headers.emplace_back("causation_id", record.causation_id);
  headers.insert(headers.end(), record.headers.begin(), record.headers.end());
  return headers;
}

PieceAnswer StoreSink::send(std::span<const Outgoing* const> piece, const Permit&) {
  std::vector<std::vector<std::pair<std::string, std::string>>> owned;
  std::vector<std::vector<Header>> headers;
  std::vector<Op> ops;
  owned.reserve(piece.size());
  headers.reserve(piece.size());
  for (const Outgoing* record : piece) {
    const auto& texts = owned.emplace_back(stream_headers(*record));
    auto& views = headers.emplace_back();
    for (const auto& [name, value] : texts) views.push_back({name, value});
    ops.emplace_back(Append{.stream = stream_,
                            .payload = record->payload,
                            .id = record->id,
                            .group = base::if_filled(record->key),
                            .headers = views});
  }
  const auto answer = store_.commit({.ops = ops, .mode = Mode::kAtomic});
  if (!answer) return answer_of(answer.error());
  if (answer->committed) return {};
  for (std::size_t i = 0; i < answer->verdicts.size(); ++i) {
    const Verdict& verdict = answer->verdicts[i];
    if (holds(verdict) || std::holds_alternative<NotApplied>(verdict)) continue;
    return answer_of(verdict, i);
  }
  return {PieceKind::kUnavailable, 0, "the commit was not applied, for no reason that was told"};
}

}  // namespace hapax::relay
