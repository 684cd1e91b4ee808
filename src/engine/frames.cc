#include "engine/frames.h"

#include "base/encoding.h"
#include "digest/crc32c.h"

namespace hapax::engine {

namespace {

std::size_t guess_bytes(const core::Fact& fact) {
  constexpr std::size_t kSmall = 64;
  if (const auto* record = std::get_if<core::RecordAppended>(&fact)) {
    return kSmall + record->payload.size() + record->id.size() + record->headers.size();
  }
  if (const auto* settled = std::get_if<core::ClaimSettled>(&fact)) {
    return kSmall + settled->result.body.size() + settled->result.headers.size();
  }
  return kSmall;
}

// Text that is not bounded by limits::kNameBytesMax and the like.
struct LongBytes {
  static constexpr std::size_t kHistory =
      limits::kHistoryBytesMax + limits::kHistoryAttemptsMax * 64;

  std::size_t operator()(const core::RecordAppended& fact) const {
    return fact.payload.size() + fact.headers.size() + (fact.lineage ? kHistory : 0);
  }
  std::size_t operator()(const core::RunMoved& fact) const { return fact.frames.size(); }
  std::size_t operator()(const core::ClaimSettled& fact) const {
    return fact.result.headers.size() + fact.result.body.size();
  }
  std::size_t operator()(const core::CommitAnswered& fact) const { return fact.answer.size(); }
  std::size_t operator()(const core::ResultMoved& fact) const { return fact.frame.size(); }
  std::size_t operator()(const core::HandedOut& fact) const { return fact.sequences.size(); }
  std::size_t operator()(const core::RegisterSet& fact) const {
    return fact.name.size() + fact.value.size();
  }
  std::size_t operator()(const core::TransactionStaged& fact) const { return fact.ops.size(); }
  template <class Other>
  std::size_t operator()(const Other&) const {
    return 0;
  }
};

Error damaged(std::string_view what) {
  return Error{Errc::kCorruption, "a fact in the journal " + std::string(what) +
                                      "; run hapax verify on the data folder"};
}

}  // namespace

std::size_t frame_bytes_max(const core::Fact& fact) {
  constexpr std::size_t kNamesAndNumbers = 8192;  // a handful of names, ids and a reason
  return kNamesAndNumbers + std::visit(LongBytes{}, fact);
}

FrameSpan write_frame(journal::Batch& batch, const core::Fact& fact) {
  const std::uint32_t start = journal::kHeaderBytes + batch.payload_bytes();
  std::string& out = batch.begin_fact(guess_bytes(fact));
  const std::size_t begin = out.size();
  core::encode(fact, out);
  const std::uint32_t crc = digest::crc32c(std::string_view(out).substr(begin));
  base::Encoder(out).u32(crc);
  batch.end_fact();
  return {start, journal::kHeaderBytes + batch.payload_bytes() - start};
}

Result<std::string_view> checked_fact(std::string_view bytes) {
  if (bytes.size() <= core::kFactTrailer) return damaged("is too short");
  const std::string_view fact = bytes.substr(0, bytes.size() - core::kFactTrailer);
  base::Decoder trailer(bytes.substr(fact.size()));
  if (trailer.u32() != digest::crc32c(fact)) return damaged("does not match its checksum");
  return fact;
}

Result<std::string_view> take_frame(std::string_view& rest) {
  base::Decoder decoder(rest);
  const std::string_view bytes = decoder.bytes();
  if (!decoder.ok()) return damaged("has a length beyond its frame");
  HAPAX_TRY(const std::string_view fact, checked_fact(bytes));
  rest.remove_prefix(rest.size() - decoder.left());
  return fact;
}

Result<std::string> read_span(const ports::File& file, base::Where where) {
  std::string bytes(where.length, '\0');
  HAPAX_TRY(const std::size_t got, file.read_at(where.offset, bytes));
  if (got != bytes.size()) return damaged("lies behind the end of its segment");
  return bytes;
}

Result<std::string_view> record_in_run(std::string_view run, std::uint64_t index) {
  for (; index > 0; --index) {
    // Frames before the wanted one are skipped by length; only what is answered is checked.
    base::Decoder decoder(run);
    decoder.bytes();
    if (!decoder.ok()) return damaged("has a length beyond its run");
    run.remove_prefix(run.size() - decoder.left());
  }
  return take_frame(run);
}

Result<Record> to_record(std::string_view fact, Time time) {
  HAPAX_TRY(const core::Fact decoded, core::decode_fact(fact));
  const auto* appended = std::get_if<core::RecordAppended>(&decoded);
  if (appended == nullptr) return damaged("is not a record where one must be");
  Record record;
  record.sequence = appended->sequence;
  record.time = time;
  record.id = appended->id;
  record.group = appended->group;
  if (!appended->headers.empty()) {
    HAPAX_TRY(record.headers, core::decode_headers(appended->headers));
  }
  record.payload = appended->payload;
  record.lineage = appended->lineage;
  return record;
}

Result<SettledResult> to_result(std::string_view fact) {
  HAPAX_TRY(const core::Fact decoded, core::decode_fact(fact));
  const auto* settled = std::get_if<core::ClaimSettled>(&decoded);
  if (settled == nullptr) return damaged("is not a result where one must be");
  const ResultView& result = settled->result;
  return SettledResult{std::string(settled->owner),
                       {result.status, std::string(result.headers), std::string(result.body)}};
}

}  // namespace hapax::engine
