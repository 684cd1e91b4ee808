#include "journal/rewrite.h"

#include "journal/batch.h"

namespace hapax::journal {

std::vector<TailBatch> unproven_batches(const JournalFindings& findings, const Evidence& evidence) {
  const Lsn sure = proven(findings, evidence);
  std::vector<TailBatch> unproven = findings.tail;
  std::erase_if(unproven, [&](const TailBatch& batch) { return batch.header.last() <= sure; });
  return unproven;
}

Result<Rewritten> reseal(ports::Folder& folder, const Identity& identity,
                         const std::vector<TailBatch>& batches, const SegmentHeader& into) {
  Rewritten rewritten{{}, into.chain};
  if (batches.empty()) return rewritten;
  const std::uint32_t source = batches.front().slot.segment;
  HAPAX_TRY(SegmentReader reader, SegmentReader::open(folder, identity, source));
  for (const TailBatch& batch : batches) {
    const SegmentReader::Expected same{batch.header.first, batch.header.chain};
    HAPAX_TRY(const BatchView view, reader.read(batch.slot.offset, same));
    BatchHeader header = view.header;
    header.flags |= BatchHeader::kRewritten;
    header.salt = into.salt;
    header.durable = Lsn{into.first.value - 1};
    header.chain = rewritten.chain;
    rewritten.chain = append_sealed(rewritten.bytes, header, view.payload);
  }
  return rewritten;
}

}  // namespace hapax::journal
