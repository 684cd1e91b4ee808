// Reading records: as JSON, as frames, or as events; with or without waiting.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "rest/api.h"
#include "rest/event_stream.h"
#include "rest/long_poll.h"
#include "rest/record_frames.h"
#include "rest/replies.h"
#include "wire/answer.h"
#include "wire/json_schema.h"

namespace hapax::rest {

namespace {

struct Range {
  Sequence from{1};
  std::uint32_t max = 100;
  std::uint64_t bytes_max = ReadRange{}.bytes_max;
  std::uint64_t stream_uid = 0;  // of the stream whose records are waited for; 0: not known yet
};

Result<Range> range_of(const SharedCall& call) {
  HAPAX_TRY(const Sequence from, option(call, "from", Sequence{1}));
  HAPAX_TRY(const std::uint32_t max, option<std::uint32_t>(call, "max", 100));
  HAPAX_TRY(const std::uint64_t bytes_max, option(call, "bytes_max", ReadRange{}.bytes_max));
  return Range{from, max, std::min(bytes_max, ReadRange{}.bytes_max)};
}

http::Response records_response(const SharedCall& call, const Records& records) {
  const bool framed = http::accepts(call->request(), kRecordFrames);
  http::Response response =
      json_response(200, framed ? frames_of(records) : wire::json_of(records));
  if (framed) {
    response.fields = {};
    response.fields.add("Content-Type", kRecordFrames);
  }
  response.fields.add("Hapax-First", std::to_string(records.first.value));
  response.fields.add("Hapax-Last", std::to_string(records.last.value));
  return response;
}

void respond_records(const SharedCall& call, const Result<Records>& records) {
  if (!records) return respond_error(call, records.error());
  call->exchange->respond(records_response(call, *records));
}

// What was waited for may be answered: to a caller who is still admitted, from the same stream.
Result<Records> checked(const SharedCall& call, const Range& range, Result<Records> records) {
  HAPAX_CHECK(call->still_admitted());
  const bool waited = range.stream_uid != 0;
  if (waited && records && records->stream_uid != range.stream_uid) return made_again();
  return records;
}

void read_records(access::Entry& entry, const SharedCall& call, Range range,
                  const std::shared_ptr<LongPoll>& poll) {
  if (!poll->over()) poll->listen();
  const auto read = [stream = std::string(call->name("stream")), range](Store& store) {
    return store.read({stream, range.from, range.max, range.bytes_max});
  };
  entry.ask(call->from(), call->caller(), read, [&entry, call, range, poll](Result<Records> found) {
    Result<Records> records = checked(call, range, std::move(found));
    const bool nothing = records && records->records.empty();
    if (!nothing || poll->over() || call->exchange->leaving()) {
      poll->quit();
      return respond_records(call, records);
    }
    Range same = range;
    same.stream_uid = records->stream_uid;
    poll->wait([&entry, call, same, poll] { read_records(entry, call, same, poll); });
  });
}

void get_records(access::Entry& entry, const SharedCall& call) {
  const auto range = range_of(call);
  const auto until = wait_until(call);
  if (!range) return respond_error(call, range.error());
  if (!until) return respond_error(call, until.error());
  if (http::accepts(call->request(), kEventStream)) return stream_events(entry, call, range->from);
  read_records(entry, call, *range,
               std::make_shared<LongPoll>(
                   entry, call, LongPoll::For{std::string(call->name("stream"))}, *until));
}

}  // namespace

void add_record_routes(Router& router, access::Entry& entry) {
  Route route{"GET", std::string(kRoot) + "/streams/{stream}/records",
              guarded({access::Right::kConsume},
                      [&entry](const SharedCall& call) { get_records(entry, call); }),
              "Read records; wait_ms waits for some, Accept: text/event-stream never ends", ""};
  route.answer = "Records";
  const std::string any = wire::number_schema_of({});
  route.query = {{"from", any, "First sequence wanted; 1 without it"},
                 {"max", wire::number_schema_of(wire::allowed::kRead),
                  "How many records at most; 100 without it"},
                 {"bytes_max", any, "End before it is more, but not before the first; 4 MiB"},
                 wait_field()};
  router.add(std::move(route));
}

}  // namespace hapax::rest
