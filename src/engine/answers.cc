#include "engine/answers.h"

#include <string>
#include <utility>

#include "base/format.h"
#include "core/commit.h"
#include "engine/frames.h"
#include "journal/names.h"

namespace hapax::engine {

namespace {

// The run read last: neighbours are mostly in the same one.
class RunCache {
 public:
  Result<Record> record(const RecordPlace& place) {
    if (place.run != where_ || place.file != file_) {
      HAPAX_TRY(bytes_, read_span(*place.file, place.run));
      where_ = place.run;
      file_ = place.file;
      rest_ = bytes_;
      next_ = place.run_first;
    }
    if (place.sequence < next_) {
      rest_ = bytes_;
      next_ = place.run_first;
    }
    HAPAX_TRY(const std::string_view fact,
              record_in_run(rest_, place.sequence.value - next_.value));
    const std::size_t end =
        static_cast<std::size_t>(fact.data() - bytes_.data()) + fact.size() + core::kFactTrailer;
    rest_ = std::string_view(bytes_).substr(end);
    next_ = place.sequence.next();
    return to_record(fact, place.time);
  }

 private:
  base::Where where_;
  std::shared_ptr<const ports::File> file_;
  std::string bytes_;
  std::string_view rest_;  // behind the record read last
  Sequence next_;          // the record at its front
};

std::string describe(base::Where where) {
  return base::format("{} offset {}", journal::segment_name(where.segment), where.offset);
}
std::string describe(const RecordPlace& place) {
  return base::format("record {} in {}", place.sequence.value, describe(place.run));
}

}  // namespace

Result<std::vector<Record>> read_records(const std::vector<RecordPlace>& places) {
  RunCache cache;
  std::vector<Record> records;
  records.reserve(places.size());
  for (const RecordPlace& place : places) {
    auto record = cache.record(place);
    if (!record) return std::move(record).error().within(describe(place));
    records.push_back(*std::move(record));
  }
  return records;
}

Result<SettledResult> read_result(const ResultFetch& fetch) {
  auto result = [&]() -> Result<SettledResult> {
    HAPAX_TRY(const std::string bytes, read_span(*fetch.file, fetch.where));
    std::string_view rest = bytes;
    HAPAX_TRY(const std::string_view fact, take_frame(rest));
    return to_result(fact);
  }();
  if (!result) return std::move(result).error().within("result in " + describe(fetch.where));
  return result;
}

Result<Answer> read_missing(Finished finished) {
  if (!finished.answer) return std::move(finished.answer);
  Answer& answer = *finished.answer;
  RunCache cache;
  for (const DeliveryFetch& fetch : finished.deliveries) {
    auto& received = std::get<Received>(answer.verdicts[fetch.verdict]);
    auto record = cache.record(fetch.place);
    if (!record) {
      return std::move(record).error().within("stream '" + std::string(fetch.stream) + "', " +
                                              describe(fetch.place));
    }
    received.deliveries[fetch.delivery].record = *std::move(record);
  }
  for (const ResultFetch& fetch : finished.results) {
    HAPAX_TRY(SettledResult settled, read_result(fetch));
    std::get<DuplicateClaim>(answer.verdicts[fetch.verdict]).result = std::move(settled.result);
  }
  return std::move(finished.answer);
}

void tell_wall_times(Answer& answer, const core::Moment& moment) {
  // A commit that was answered before is told what it was told then.
  if (!answer.repeated) core::to_wall_times(answer, moment);
  for (Verdict& verdict : answer.verdicts) {
    auto* held = std::get_if<Held>(&verdict);
    if (held == nullptr || held->expires_at == Time::max()) continue;
    held->expires_in = std::max(held->expires_at - moment.wall, Duration{0});
  }
}

Error unreadable(const Error& error) {
  return Error{Errc::kOutcomeUnknown,
               "the commit stands, but what it answers with cannot be read: " + error.text() +
                   ". Look it up under its id."};
}

Result<Answer> complete(Finished finished) {
  if (!finished.answer) return std::move(finished.answer);
  auto answer = read_missing(std::move(finished));
  if (!answer) return unreadable(answer.error());
  return answer;
}

}  // namespace hapax::engine
