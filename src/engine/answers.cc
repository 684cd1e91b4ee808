#include "engine/answers.h"

#include "engine/frames.h"

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

}  // namespace

Result<std::vector<Record>> read_records(const std::vector<RecordPlace>& places) {
  RunCache cache;
  std::vector<Record> records;
  records.reserve(places.size());
  for (const RecordPlace& place : places) {
    HAPAX_TRY(Record record, cache.record(place));
    records.push_back(std::move(record));
  }
  return records;
}

namespace {

Result<Answer> read_missing(Finished finished) {
  Answer& answer = *finished.answer;
  RunCache cache;
  for (const DeliveryFetch& fetch : finished.deliveries) {
    auto& received = std::get<Received>(answer.verdicts[fetch.verdict]);
    HAPAX_TRY(received.deliveries[fetch.delivery].record, cache.record(fetch.place));
  }
  for (const ResultFetch& fetch : finished.results) {
    HAPAX_TRY(const std::string bytes, read_span(*fetch.file, fetch.where));
    std::string_view rest = bytes;
    HAPAX_TRY(const std::string_view fact, take_frame(rest));
    auto& duplicate = std::get<DuplicateClaim>(answer.verdicts[fetch.verdict]);
    HAPAX_TRY(duplicate.result, to_result(fact));
  }
  return finished.answer;
}

}  // namespace

Error unreadable(const Error& error) {
  return Error{Errc::kOutcomeUnknown,
               "the commit stands, but what it answers with cannot be read: " + error.text() +
                   " Look it up under its id."};
}

Result<Answer> complete(Finished finished) {
  if (!finished.answer) return finished.answer;
  auto answer = read_missing(std::move(finished));
  if (!answer) return unreadable(answer.error());
  return answer;
}

}  // namespace hapax::engine
