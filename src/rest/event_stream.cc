#include "rest/event_stream.h"

#include <memory>
#include <string>
#include <utility>

#include "rest/long_poll.h"
#include "rest/replies.h"
#include "wire/answer.h"
#include "wire/json_text.h"

namespace hapax::rest {

namespace {

constexpr std::uint32_t kRecordsAtOnce = 100;
constexpr std::uint64_t kBytesAtOnce = std::uint64_t{256} << 10;
constexpr std::chrono::seconds kHeartbeat{15};

// At most one batch is under way to the client: the next is read when the last has left.
class EventStream : public std::enable_shared_from_this<EventStream> {
 public:
  EventStream(access::Entry& entry, SharedCall call, Sequence from)
      : entry_(entry),
        call_(std::move(call)),
        stream_(call_->name("stream")),
        poll_(std::make_shared<LongPoll>(entry, call_, LongPoll::For{stream_},
                                         LongPoll::Steady::max())),
        next_(from) {}

  void look() {
    poll_->listen();
    const auto read = [stream = stream_, from = next_](Store& store) {
      return store.read({stream, from, kRecordsAtOnce, kBytesAtOnce});
    };
    entry_.ask(call_->from(), call_->caller(), read,
               [self = shared_from_this()](const Result<Records>& found) { self->found(found); });
  }

 private:
  http::Exchange& exchange() { return *call_->exchange; }

  void found(const Result<Records>& records) {
    if (exchange().gone()) return poll_->quit();
    if (!records) return fail(records.error());
    if (const Status admitted = call_->still_admitted(); !admitted) {
      return fail(admitted.error());
    }
    if (std::exchange(stream_uid_, records->stream_uid) != records->stream_uid && begun_) {
      return fail(made_again());
    }
    if (!std::exchange(begun_, true)) begin();
    if (exchange().leaving()) return end();
    tell_trimmed(records->first);
    std::string events;
    for (const Record& record : records->records) events += event_of(record);
    events.empty() ? rest() : send(events);
  }

  void begin() {
    http::Response response;
    response.fields.add("Content-Type", kEventStream);
    response.fields.add("Cache-Control", "no-store");
    response.fields.add("X-Accel-Buffering", "no");  // nginx holds back what it does not know
    exchange().begin(response);
    exchange().write("retry: 1000\n\n");
    last_word_ = std::chrono::steady_clock::now();
  }

  // Records that are gone are told, not skipped silently.
  void tell_trimmed(Sequence first) {
    if (next_ >= first || first.value == 0) return;
    const std::string data =
        wire::JsonObject().add("expected", next_.value).add("first", first.value).text();
    if (next_.value != 0) exchange().write("event: trimmed\ndata: " + data + "\n\n");
    next_ = first;
  }

  std::string event_of(const Record& record) {
    next_ = record.sequence.next();
    return "id: " + std::to_string(record.sequence.value) + "\ndata: " + wire::json_of(record) +
           "\n\n";
  }

  void send(const std::string& events) {
    last_word_ = std::chrono::steady_clock::now();
    exchange().at_sent([self = shared_from_this()] {
      self->exchange().at_sent(nullptr);
      self->exchange().leaving() ? self->end() : self->look();
    });
    // Whoever leaves is told nothing more: nobody listens again after this.
    exchange().at_leave([self = shared_from_this()] { self->poll_->quit(); });
    exchange().write(events);
  }

  void rest() {
    const auto now = std::chrono::steady_clock::now();
    if (now - last_word_ >= kHeartbeat && exchange().unsent() == 0) {
      last_word_ = now;
      exchange().write(": still here\n\n");
    }
    const auto again = [self = shared_from_this()] {
      if (self->exchange().gone()) return self->poll_->quit();
      self->exchange().leaving() ? self->end() : self->look();
    };
    poll_->wait(again, last_word_ + kHeartbeat);
  }

  void end() {
    poll_->quit();
    exchange().end();
  }

  // The stream was deleted, the credential ended, or the store stops: the client hears why and may
  // come back.
  void fail(const Error& error) {
    poll_->quit();
    if (!begun_) return respond_error(call_, error);
    exchange().write("event: error\ndata: " + problem_response(error).body + "\n\n");
    exchange().end();
  }

  access::Entry& entry_;
  const SharedCall call_;
  const std::string stream_;
  const std::shared_ptr<LongPoll> poll_;
  Sequence next_;
  std::uint64_t stream_uid_ = 0;  // of the stream that the events are of
  bool begun_ = false;
  std::chrono::steady_clock::time_point last_word_;
};

}  // namespace

void stream_events(access::Entry& entry, const SharedCall& call, Sequence from) {
  if (const auto last = call->request().fields.get("Last-Event-ID"); !last.empty()) {
    Sequence seen;
    if (wire::from_text(last, seen)) {
      return respond_error(
          call, {Errc::kInvalidArgument,
                 "Last-Event-ID: expected the id of an event, got '" + std::string(last) + "'"});
    }
    from = seen.next();
  }
  std::make_shared<EventStream>(entry, call, from)->look();
}

}  // namespace hapax::rest
