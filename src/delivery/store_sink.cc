#include "delivery/store_sink.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <map>
#include <utility>
#include <variant>
#include <vector>

#include <hapax/limits.h>

#include "base/assert.h"
#include "base/format.h"
#include "delivery/workflow_streams.h"

namespace hapax::delivery {

namespace {

constexpr Duration kTroubleRest{500};  // while nothing can be stored
constexpr std::size_t kPieceBytesMax = std::size_t{8} << 20;

}  // namespace

// One start(): the records are stored in pieces, each one commit, in their order. It outlives the
// sink and whoever gave it the records, so it has copies of them.
class StoreSink::Call : public std::enable_shared_from_this<Call> {
 public:
  Call(const StoreSink& sink, std::span<const Outgoing* const> records, std::int64_t not_after_ms,
       Done done)
      : ports_(sink.ports_),
        stream_(sink.stream_),
        winding_down_(sink.winding_down_),
        not_after_ms_(not_after_ms),
        results_(records.size(), SendResult{.outcome = SendResult::Outcome::kNotSent}),
        done_(std::move(done)) {
    for (const Outgoing* record : records) {
      waiting_.push_back(records_.size());
      records_.push_back({record->id, record->key, record->payload, record->headers});
    }
  }

  void go_on() {
    cut_piece();
    const bool too_late = *winding_down_ || ports_.clock.steady_ms() >= not_after_ms_;
    if (piece_.empty() || too_late) return done_(std::move(results_));  // The rest was not sent.
    ops_.clear();
    for (const std::size_t place : piece_) ops_.push_back(append_of(records_[place]));
    ports_.submit({.ops = ops_},
                  [self = shared_from_this()](Result<Answer> answer) { self->hear(answer); });
  }

 private:
  struct Kept {
    std::string id;
    std::string key;
    std::string payload;
    relay::Headers headers;
    std::vector<Header> views{};
    [[nodiscard]] std::size_t bytes() const { return id.size() + key.size() + payload.size(); }
  };

  Append append_of(Kept& record) const {
    record.views.clear();
    for (const auto& [name, value] : record.headers) record.views.push_back({name, value});
    Append append{
        .stream = stream_, .payload = record.payload, .id = record.id, .headers = record.views};
    if (!record.key.empty()) append.group = record.key;
    return append;
  }

  // Nothing of a key behind a record that was not stored.
  void cut_piece() {
    piece_.clear();
    std::size_t bytes = 0;
    while (!waiting_.empty()) {
      const std::size_t place = waiting_.front();
      const Kept& record = records_[place];
      if (!is_behind(place)) {
        const bool full = bytes + record.bytes() > kPieceBytesMax || alone_ > 0;
        if (!piece_.empty() && full) return;
        bytes += record.bytes();
        piece_.push_back(place);
      }
      waiting_.pop_front();
    }
  }

  [[nodiscard]] bool is_behind(std::size_t place) const {
    const auto stopped = stopped_.find(records_[place].key);
    return stopped != stopped_.end() && place > stopped->second;
  }

  void hear(const Result<Answer>& answer) {
    if (!answer) return hear_error(answer.error());
    if (!answer->committed) return hear_refusal(*answer);
    for (const std::size_t place : piece_) {
      results_[place] = {.outcome = SendResult::Outcome::kDelivered, .answered = true};
    }
    if (ports_.told) ports_.told({});
    alone_ -= std::min(alone_, piece_.size());
    go_on();
  }

  // An outcome that nobody knows is no harm: the ids tell.
  void hear_error(const Error& error) {
    if (!is_of_the_record(error)) return rest(error);
    if (piece_.size() == 1) return reject(piece_.front(), error.text());
    try_alone();
  }

  // Nothing of the piece was stored.
  void hear_refusal(const Answer& answer) {
    const auto at = std::find_if(
        answer.verdicts.begin(), answer.verdicts.end(),
        [](const Verdict& verdict) { return !std::holds_alternative<NotApplied>(verdict); });
    HAPAX_ASSERT(at != answer.verdicts.end(), "a commit is refused for one of its operations");
    const auto place = static_cast<std::size_t>(at - answer.verdicts.begin());
    const auto* refused = std::get_if<Refused>(&*at);
    if (refused != nullptr && !is_of_the_record(refused->error)) return rest(refused->error);
    // Most of the piece has nothing to do with it.
    const std::size_t culprit = piece_[place];
    piece_.erase(piece_.begin() + static_cast<std::ptrdiff_t>(place));
    waiting_.insert(waiting_.begin(), piece_.begin(), piece_.end());
    if (refused != nullptr) return reject(culprit, refused->error.text());
    reject(culprit, base::format("it was not stored: {}; another record has its id", word_of(*at)));
  }

  void try_alone() {
    alone_ = piece_.size();
    waiting_.insert(waiting_.begin(), piece_.begin(), piece_.end());
    go_on();
  }

  void reject(std::size_t place, std::string reason) {
    results_[place] = {
        .outcome = SendResult::Outcome::kRejected, .hopeless = true, .reason = std::move(reason)};
    if (!records_[place].key.empty()) stopped_.emplace(records_[place].key, place);
    alone_ -= std::min<std::size_t>(alone_, 1);
    go_on();
  }

  // Nobody's fault: what is not stored yet comes again.
  void rest(const Error& error) {
    const std::string reason = error.text();
    if (ports_.told) ports_.told(reason);
    for (SendResult& result : results_) {
      if (result.outcome != SendResult::Outcome::kNotSent) continue;
      result.after = kTroubleRest;
      result.reason = reason;
    }
    done_(std::move(results_));
  }

  const StoreSinkPorts ports_;
  const std::string stream_;
  const std::shared_ptr<std::atomic<bool>> winding_down_;
  const std::int64_t not_after_ms_;
  std::vector<Kept> records_;
  std::vector<SendResult> results_;
  const Done done_;
  std::deque<std::size_t> waiting_;             // places, in order
  std::vector<std::size_t> piece_;              // under way
  std::vector<Op> ops_;                         // of it
  std::size_t alone_ = 0;                       // so many are committed alone
  std::map<std::string, std::size_t> stopped_;  // keys, and which of their records was not stored
};

StoreSink::StoreSink(StoreSinkPorts ports, std::string stream)
    : ports_(std::move(ports)),
      stream_(std::move(stream)),
      winding_down_(std::make_shared<std::atomic<bool>>(false)) {}

StoreSink::~StoreSink() = default;

void StoreSink::start(std::span<const Outgoing* const> records, std::int64_t not_after_ms,
                      Done done) {
  std::make_shared<Call>(*this, records, not_after_ms, std::move(done))->go_on();
}

}  // namespace hapax::delivery
