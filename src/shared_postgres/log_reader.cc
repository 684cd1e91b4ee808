#include "shared_postgres/log_reader.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/format.h"
#include "journal/names.h"

namespace hapax::shared_postgres {

namespace {

class SegmentsReader final : public LogReader {
 public:
  SegmentsReader(ports::Folder& folder, const journal::Identity& identity,
                 std::vector<journal::Segment> segments, LogSpan span, journal::Slot after)
      : folder_(folder),
        identity_(identity),
        segments_(std::move(segments)),
        span_(span),
        after_(after) {
    while (index_ < segments_.size() && segments_[index_].number < after_.segment) ++index_;
  }

  Result<std::optional<journal::BatchView>> next() override {
    while (index_ < segments_.size()) {
      if (!reader_) HAPAX_CHECK(enter());
      if (expected_.first >= end_) {
        reader_.reset();
        ++index_;
        continue;
      }
      auto batch = reader_->read(offset_, expected_);
      if (!batch) {
        HAPAX_CHECK(step_over(std::move(batch).error()));
        continue;
      }
      offset_ += batch->bytes;
      expected_ = {batch->header.next(), batch->checksum};
      if (batch->slot > after_) return std::optional(*batch);
    }
    return std::optional<journal::BatchView>{};
  }

  [[nodiscard]] std::uint64_t left_out() const override { return left_out_; }

 private:
  [[nodiscard]] Error within(Error error) const {
    return std::move(error).within(
        base::format("{} offset {}",
                     folder_.describe(journal::segment_name(segments_[index_].number)), offset_));
  }

  Status enter() {
    offset_ = journal::kHeaderBytes;
    if (!segments_[index_].header) return within(segments_[index_].header.error());
    auto reader = journal::SegmentReader::open(folder_, identity_, segments_[index_].number);
    if (!reader) return within(std::move(reader).error());
    reader_.emplace(*std::move(reader));
    expected_ = {reader_->header().first, reader_->header().chain};
    end_ = span_.last.next();
    may_step_over_ = false;
    // What later segments begin with supersedes what this one holds from there on.
    for (std::size_t later = index_ + 1; later < segments_.size(); ++later) {
      if (!segments_[later].header) continue;
      end_ = std::min(end_, segments_[later].header->first);
      may_step_over_ = may_step_over_ || segments_[later].header->first <= span_.snapshot.next();
    }
    return Ok{};
  }

  // To the next intact batch, in segments that a start does not read.
  Status step_over(Error error) {
    if (error.code != Errc::kCorruption || !may_step_over_) return within(std::move(error));
    HAPAX_TRY(const std::uint64_t content_end, reader_->end_of_content(offset_));
    if (content_end == offset_) {  // What follows was in segments that are gone.
      expected_.first = end_;
      return Ok{};
    }
    ++left_out_;
    for (std::uint64_t from = offset_ + journal::kBatchAlignment;;) {
      HAPAX_TRY(const auto found, reader_->find_header(from));
      if (!found) break;
      const auto batch = reader_->read_any(found->offset);
      if (batch && batch->header.first >= expected_.first) {
        offset_ = found->offset;
        expected_ = {found->header.first, found->header.chain};
        return Ok{};
      }
      from = found->offset + journal::kBatchAlignment;
    }
    expected_.first = end_;
    return Ok{};
  }

  ports::Folder& folder_;
  const journal::Identity identity_;
  const std::vector<journal::Segment> segments_;
  const LogSpan span_;
  const journal::Slot after_;
  std::size_t index_ = 0;
  // Of the segment at index_:
  std::optional<journal::SegmentReader> reader_;
  std::uint64_t offset_ = 0;
  journal::SegmentReader::Expected expected_;
  journal::Lsn end_;
  bool may_step_over_ = false;
  std::uint64_t left_out_ = 0;
};

enum class RowColumn { kSegment, kAt, kLast, kBytes, kColumns };

class RowsReader final : public LogReader {
 public:
  RowsReader(PostgresFolder& folder, journal::Slot after) : folder_(folder), at_(after) {}

  Result<std::optional<journal::BatchView>> next() override {
    if (!rows_ || row_ == rows_->size()) HAPAX_CHECK(read_on());
    if (rows_->size() == 0) return std::optional<journal::BatchView>{};
    using enum RowColumn;
    const std::size_t row = row_++;
    at_ = {integer_at<std::uint32_t>(*rows_, row, kSegment),
           static_cast<std::uint32_t>(integer_at<std::uint64_t>(*rows_, row, kAt))};
    auto batch = journal::view_batch(rows_->at(row, kBytes), at_);
    if (!batch) return within(std::move(batch).error());
    if (batch->header.last().value != integer_at<std::uint64_t>(*rows_, row, kLast)) {
      return within(Error{Errc::kCorruption, "its column `last` is not that of its last fact"});
    }
    return std::optional(*batch);
  }

 private:
  [[nodiscard]] Error within(Error error) const {
    return std::move(error).within(base::format(
        "{} offset {}", folder_.describe(journal::segment_name(at_.segment)), at_.offset));
  }

  // So many bytes at once, and at least one row.
  Status read_on() {
    constexpr std::int64_t kBytesAtOnce = std::int64_t{8} << 20;
    Values values;
    values.number(at_.segment).number(at_.offset).number(kBytesAtOnce);
    HAPAX_TRY(
        Rows rows,
        folder_.read("SELECT segment, at, last, bytes FROM (SELECT *, sum(length(bytes)) OVER "
                     "(ORDER BY segment, at) - length(bytes) AS before FROM (SELECT segment, "
                     "at, last, bytes FROM " +
                         folder_.table("log") +
                         " WHERE (segment, at) > ($1::int4, $2::int8) ORDER BY segment, at "
                         "LIMIT 256) AS few) AS summed WHERE before < $3::int8 "
                         "ORDER BY segment, at",
                     values, Rowed::kBinary));
    rows_.emplace(std::move(rows));
    row_ = 0;
    return Ok{};
  }

  PostgresFolder& folder_;
  journal::Slot at_;
  std::optional<Rows> rows_;
  std::size_t row_ = 0;
};

}  // namespace

Result<std::unique_ptr<LogReader>> read_segments(ports::Folder& folder,
                                                 const journal::Identity& identity, LogSpan span,
                                                 journal::Slot after) {
  HAPAX_TRY(std::vector<journal::Segment> segments, journal::list_segments(folder, identity));
  return std::unique_ptr<LogReader>(
      std::make_unique<SegmentsReader>(folder, identity, std::move(segments), span, after));
}

std::unique_ptr<LogReader> read_rows(PostgresFolder& folder, journal::Slot after) {
  return std::make_unique<RowsReader>(folder, after);
}

}  // namespace hapax::shared_postgres
