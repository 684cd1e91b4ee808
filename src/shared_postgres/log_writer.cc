#include "shared_postgres/log_writer.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/format.h"
#include "journal/batch.h"
#include "journal/marks.h"
#include "journal/names.h"
#include "journal/new_file.h"

namespace hapax::shared_postgres {

namespace {

constexpr std::size_t kWriteBytes = std::size_t{4} << 20;  // at once

// A segment gets its name when it is whole (L4), so those that are there need no second look.
class SegmentsWriter final : public LogWriter {
 public:
  SegmentsWriter(ports::Folder& folder, ports::Entropy& entropy, const journal::Identity& identity)
      : folder_(folder), entropy_(entropy), identity_(identity) {}

  [[nodiscard]] journal::Slot there() const override { return there_; }

  // Where a copy before this one ended.
  Status find_end() {
    HAPAX_TRY(const auto segments, journal::list_segments(folder_, identity_));
    if (segments.empty()) return Ok{};
    HAPAX_TRY(journal::SegmentReader reader,
              journal::SegmentReader::open(folder_, identity_, segments.back().number));
    begin_at(reader.header());
    while (offset_ < reader.size()) {
      HAPAX_TRY(const auto found, reader.find_header(offset_));
      if (!found) break;
      HAPAX_TRY(const journal::BatchView batch, reader.read_any(found->offset));
      there_ = batch.slot;
      note(batch.header, batch.checksum);
      offset_ = found->offset + batch.bytes;
    }
    return Ok{};
  }

  Status put(const journal::BatchView& batch) override {
    if (batch.slot.segment != header_.number) {
      HAPAX_CHECK(end_segment());
      HAPAX_CHECK(begin_segment(batch));
    }
    if (!file_) {
      return Error{Errc::kCorruption, folder_.describe(journal::segment_name(header_.number)) +
                                          " has its name although it is not whole"};
    }
    if (batch.slot.offset < offset_) {
      return Error{
          Errc::kCorruption,
          base::format("{} offset {} of the source: the batch before it reaches to {}",
                       journal::segment_name(batch.slot.segment), batch.slot.offset, offset_)};
    }
    pending_.append(batch.slot.offset - offset_, '\0');  // in place of what could not be read
    journal::BatchHeader header = batch.header;
    header.salt = header_.salt;
    header.chain = chain_before(batch.header);
    note(header, journal::append_sealed(pending_, header, batch.payload));
    offset_ = batch.slot.offset + batch.bytes;
    return pending_.size() < kWriteBytes ? Ok{} : flush();
  }

  // A clean mark: the next start goes on behind the last batch.
  Status end() override {
    HAPAX_CHECK(end_segment());
    if (header_.number == 0) HAPAX_CHECK(begin_empty());
    journal::Mark mark;
    mark.kind = journal::MarkKind::kClean;
    mark.durable = journal::Lsn{next_.value - 1};
    mark.salt = header_.salt;
    mark.end = {header_.number, static_cast<std::uint32_t>(offset_)};
    mark.log_time = log_time_;
    HAPAX_TRY(const journal::Marks marks, journal::Marks::create(folder_, mark));
    return journal::sync_names(folder_);
  }

 private:
  [[nodiscard]] std::uint32_t chain_before(const journal::BatchHeader& header) const {
    return header.first == next_ ? chain_ : header.chain;
  }

  void note(const journal::BatchHeader& header, std::uint32_t checksum) {
    next_ = header.next();
    chain_ = checksum;
    log_time_ = header.log_time;
  }

  void begin_at(const journal::SegmentHeader& header) {
    header_ = header;
    offset_ = journal::kHeaderBytes;
  }

  Status begin_segment(const journal::BatchView& batch) {
    journal::SegmentHeader header;
    header.number = batch.slot.segment;
    header.salt = batch.header.salt;  // drawn at random for this very batch
    header.first = batch.header.first;
    header.history = identity_.history;
    header.store = identity_.store();
    header.chain = chain_before(batch.header);
    begin_at(header);
    HAPAX_TRY(journal::NewFile file,
              journal::NewFile::create(folder_, journal::segment_name(header.number)));
    file_.emplace(std::move(file));
    const journal::HeaderBytes front = encode(header);
    pending_.assign(front.data(), front.size());
    return Ok{};
  }

  // A store without facts.
  Status begin_empty() {
    journal::SegmentHeader header;
    header.number = 1;
    header.salt = ports::draw_u64(entropy_);
    header.history = identity_.history;
    header.store = identity_.store();
    begin_at(header);
    HAPAX_TRY(const auto file, journal::create_segment(folder_, header, {}));
    return Ok{};
  }

  Status flush() {
    HAPAX_CHECK(file_->append(pending_));
    pending_.clear();
    return Ok{};
  }

  Status end_segment() {
    if (!file_) return Ok{};
    HAPAX_CHECK(flush());
    HAPAX_TRY(const auto published, file_->publish());
    file_.reset();
    return journal::sync_names(folder_);
  }

  ports::Folder& folder_;
  ports::Entropy& entropy_;
  const journal::Identity identity_;
  journal::Slot there_;
  // The segment that is being written, or was last:
  journal::SegmentHeader header_;
  std::optional<journal::NewFile> file_;
  std::string pending_;
  std::uint64_t offset_ = 0;  // behind the last batch
  // Behind the last batch:
  journal::Lsn next_{1};
  std::uint32_t chain_ = 0;
  Time log_time_{};
};

// Rows are inserted some at a time, in their order, each time all or none.
class RowsWriter final : public LogWriter {
 public:
  RowsWriter(PostgresFolder& folder, journal::Slot there) : folder_(folder), there_(there) {}

  [[nodiscard]] journal::Slot there() const override { return there_; }

  Status put(const journal::BatchView& batch) override {
    std::string bytes;
    journal::append_sealed(bytes, batch.header, batch.payload);
    values_.number(batch.slot.segment).number(batch.slot.offset);
    values_.number(static_cast<std::int64_t>(batch.header.last().value));
    // Those of a segment have its salt in common; each must have a mark of its own.
    values_.number(static_cast<std::int64_t>(batch.header.salt + batch.header.first.value));
    values_.bytes(bytes);
    ++rows_;
    bytes_ += bytes.size();
    return rows_ < kRowsMax && bytes_ < kWriteBytes ? Ok{} : end();
  }

  Status end() override {
    if (rows_ == 0) return Ok{};
    std::string sql =
        "INSERT INTO " + folder_.table("log") + " (segment, at, last, mark, bytes) VALUES ";
    for (std::size_t row = 0, value = 1; row < rows_; ++row, value += 5) {
      const auto name = [&](std::size_t offset) { return base::format("${}", value + offset); };
      sql += (row == 0 ? "(" : ", (") + name(0) + "::int4, " + name(1) + "::int8, " + name(2) +
             "::int8, " + name(3) + "::int8, " + name(4) + "::bytea)";
    }
    HAPAX_CHECK(folder_.write(sql, values_));
    values_ = {};
    rows_ = 0;
    bytes_ = 0;
    return Ok{};
  }

 private:
  static constexpr std::size_t kRowsMax = 500;

  PostgresFolder& folder_;
  const journal::Slot there_;
  Values values_;
  std::size_t rows_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace

Result<std::unique_ptr<LogWriter>> write_segments(ports::Folder& folder, ports::Entropy& entropy,
                                                  const journal::Identity& identity) {
  auto writer = std::make_unique<SegmentsWriter>(folder, entropy, identity);
  HAPAX_CHECK(writer->find_end());
  return std::unique_ptr<LogWriter>(std::move(writer));
}

Result<std::unique_ptr<LogWriter>> write_rows(PostgresFolder& folder) {
  enum Column { kSegment, kAt, kColumns };
  HAPAX_TRY(const Rows rows, folder.read("SELECT segment, at FROM " + folder.table("log") +
                                             " ORDER BY segment DESC, at DESC LIMIT 1",
                                         {}, Rowed::kText));
  journal::Slot there;
  if (rows.size() != 0) {
    there = {static_cast<std::uint32_t>(rows.number(0, kSegment)),
             static_cast<std::uint32_t>(rows.number(0, kAt))};
  }
  return std::unique_ptr<LogWriter>(std::make_unique<RowsWriter>(folder, there));
}

}  // namespace hapax::shared_postgres
