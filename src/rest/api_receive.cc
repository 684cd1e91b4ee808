// Receive, with waiting. Each look is a commit of its own: what it hands out is leased, so nothing
// is asked of the store on behalf of a client that has left.
#include <memory>
#include <string>
#include <utility>

#include "rest/api.h"
#include "rest/commits.h"
#include "rest/long_poll.h"
#include "rest/replies.h"

namespace hapax::rest {

namespace {

class LongReceive : public std::enable_shared_from_this<LongReceive> {
 public:
  LongReceive(access::Entry& entry, SharedCall call, LongPoll::Steady until)
      : entry_(entry),
        call_(std::move(call)),
        poll_(std::make_shared<LongPoll>(
            entry, call_,
            LongPoll::For{std::string(call_->name("stream")), std::string(call_->name("consumer"))},
            until)) {}

  void look() {
    if (Status admitted = call_->still_admitted(); !admitted) {
      poll_->quit();
      return respond_error(call_, std::move(admitted).error());
    }
    auto request = read();
    if (request) {
      Status named = give_id(call_->request(), **request);
      if (!named) request = std::move(named).error();
    }
    if (!request) return respond_error(call_, std::move(request).error());
    has_id_ = (*request)->id.has_value();
    if (!poll_->over()) poll_->listen();
    entry_.commit(
        call_->from(), call_->caller(), *std::move(request),
        [self = shared_from_this()](const Result<Answer>& answer) { self->answered(answer); });
  }

 private:
  Result<wire::SharedRequest> read() {
    HAPAX_CHECK(check_media(call_->request()));
    return wire::read_op("receive", call_->request().body, call_->fields(),
                         usual_of(call_->caller()));
  }

  void answered(const Result<Answer>& answer) {
    const http::Exchange& exchange = *call_->exchange;
    const Received* received = received_in(answer);
    const bool nothing = received != nullptr && received->deliveries.empty();
    // An empty answer is not remembered: each look has the caller's id, and a repetition finds the
    // answer that has records.
    if (nothing && !poll_->over() && !exchange.leaving()) {
      return rest(received->next_due, answer->time);
    }
    poll_->quit();
    if (received != nullptr && !nothing && exchange.gone() && !has_id_) return give_back(*received);
    respond_one(call_, answer);
  }

  static const Received* received_in(const Result<Answer>& answer) {
    if (!answer || answer->verdicts.size() != 1) return nullptr;
    return std::get_if<Received>(&answer->verdicts.front());
  }

  // Until something changes, or time alone may bring a record. Log time may be slower than ours: a
  // look that came too early says again when the next is due.
  void rest(Time due, Time decided_at) {
    const auto again = [self = shared_from_this()] {
      if (!self->call_->exchange->leaving()) return self->look();
      self->poll_->quit();
      self->call_->exchange->respond(verdict_response(Received{}));
    };
    const bool by_time = due != Time::max();
    const auto now = std::chrono::steady_clock::now();
    poll_->wait(again, by_time ? now + (due - decided_at) : LongPoll::Steady::max());
  }

  // The client left while the store decided. Without an id nobody can ask for this answer again, so
  // the records would only wait for their leases to run out.
  void give_back(const Received& received) {
    auto request = std::make_shared<wire::Request>();
    request->mode = Mode::kEach;
    const std::string_view stream = request->keep(call_->name("stream"));
    const std::string_view consumer = request->keep(call_->name("consumer"));
    for (const Delivery& delivery : received.deliveries) {
      request->ops.emplace_back(Nack{stream,
                                     consumer,
                                     {delivery.record.sequence, delivery.token},
                                     Duration{0},
                                     "the client left before the answer"});
    }
    entry_.commit(call_->from(), call_->caller(), request,
                  [](const Result<Answer>&) {});  // If it fails, the leases run out.
  }

  access::Entry& entry_;
  const SharedCall call_;
  const std::shared_ptr<LongPoll> poll_;
  bool has_id_ = false;
};

}  // namespace

void add_receive_route(Router& router, access::Entry& entry) {
  Route route{"POST", std::string(kRoot) + "/streams/{stream}/consumers/{consumer}/receive",
              guarded({access::Right::kConsume},
                      [&entry](const SharedCall& call) {
                        const auto until = wait_until(call);
                        if (!until) return respond_error(call, until.error());
                        std::make_shared<LongReceive>(entry, call, *until)->look();
                      }),
              "Hand out records under leases; wait_ms waits for some", "receive"};
  route.query = {wait_field()};
  router.add(std::move(route));
}

}  // namespace hapax::rest
