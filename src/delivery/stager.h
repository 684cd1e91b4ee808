// The first of the two steps of a workflow that makes records of records: it takes from the source
// stream, transforms, and stores what comes of it, in the workflow's outbox or in a target stream.
//
// G1: what is made of a record and its acknowledgement are one commit. So every output is stored
//     exactly once, whoever dies meanwhile; its message id is a second fence.
// G2: outputs are stored in the order in which their records were handed out. Of a group the store
//     hands out one record at a time, so the order of a group is kept over all processes.
// G3: a record that its transform fails over becomes a dead letter with the reason, as it was, or
//     blocks its key (Z19). What is nobody's fault is tried again, without end.
//
// It has no thread and no clock of its own. Its caller calls step() again and again, and waits in
// between.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hapax/store.h>

#include "base/mutex.h"
#include "delivery/blocked_keys.h"
#include "delivery/source_keeping.h"
#include "delivery/stream_news.h"
#include "delivery/transforming.h"
#include "delivery/workflow_streams.h"
#include "ports/clock.h"

namespace hapax::delivery {

// A record that is to be stored.
struct StagedRecord {
  std::string stream;
  std::string id;
  std::string group;  // empty: none
  std::vector<std::pair<std::string, std::string>> headers;
  std::string payload;
};

struct StagerSettings {
  std::string source;  // stream
  std::string consumer;
  std::string dead_letters;  // stream
  std::string blocked;       // as StreamSourceSettings
  std::optional<Duration> hold{};
  Keeping keeping{};
  std::string owner;
  // Where outputs wait for delivery; none: all of them go to streams of others.
  std::optional<OwnStream> outbox{};
  Duration delivered_kept{0};  // in the outbox, and in the source if that is its own
  bool owns_source = false;    // nobody else reads it
  Duration lease{10'000};
  std::uint32_t held_max = 1'000;  // records
  // Of their payloads; and of their outputs, with what transforms under way hold of payloads.
  std::size_t bytes_max = std::size_t{16} << 20;
  std::uint32_t under_way_max = 256;                // transforms
  std::size_t commit_bytes = std::size_t{8} << 20;  // of outputs; a record that makes more is alone
};

struct StagerCounts {
  std::uint64_t taken = 0;
  std::uint64_t staged = 0;    // outputs
  std::uint64_t repeated = 0;  // of these, what was stored before under the same id
  std::uint64_t filtered = 0;  // records without an output
  std::uint64_t dead = 0;      // or they block their keys
  std::uint64_t again = 0;     // transforms that ended without a verdict on the record
  std::uint64_t lost = 0;      // held, and given to somebody else meanwhile
};

class Stager {
 public:
  using Log = std::function<void(std::string_view)>;
  // What is to be stored for the outputs of a record of the stream with that uid. The same of the
  // same on every attempt. An error: the record is a dead letter for that reason.
  using Compose = std::function<Result<std::vector<StagedRecord>>(
      const Record&, std::uint64_t stream_uid, std::vector<Reshaped>)>;

  // Without a transform (nullptr), the only output is the record itself. All outlive the stager.
  Stager(Store& store, ports::Clock& clock, StagerSettings settings, Compose compose,
         Transforming* transform = nullptr, Log log = {});
  ~Stager();
  Stager(const Stager&) = delete;
  Stager& operator=(const Stager&) = delete;

  // How long there is nothing to do by itself. After an error the next step starts over.
  [[nodiscard]] Result<Duration> step();
  // Returns when there may be something new, after `most`, or when nudged.
  void wait(Duration most);
  void nudge() { news_.nudge(); }
  // Gives back what is held.
  [[nodiscard]] Status stop();

  [[nodiscard]] const StagerCounts& counts() const { return counts_; }
  [[nodiscard]] std::size_t held() const { return held_.size(); }
  [[nodiscard]] std::size_t under_way() const { return under_way_; }

 private:
  struct Held {
    enum class State : std::uint8_t { kWaits, kUnderWay, kDone };
    Receipt receipt;
    Record record;
    State state = State::kWaits;
    std::vector<StagedRecord> staged{};     // of kDone
    std::string flaw{};                     // of kDone: why it is a dead letter
    std::optional<BlockedRecord> blocks{};  // of kDone: it is none yet, and its key waits
    std::uint32_t retries = 0;              // that a person asked for after it was given up
    std::size_t bytes = 0;                  // of `staged`
    std::size_t payload_bytes = 0;
    bool lost = false;  // somebody else has it
  };
  // What transforms said, from whatever thread, until step() comes by.
  struct Arrivals {
    struct Arrival {
      std::uint64_t number = 0;
      std::size_t payload_bytes = 0;
      Result<ReshapeOutcome> outcome;
    };
    base::Mutex mutex;
    std::vector<Arrival> waiting HAPAX_GUARDED_BY(mutex);

    void put(Arrival arrival);
    [[nodiscard]] std::vector<Arrival> take();
  };
  class Batch;

  [[nodiscard]] Status open();
  void collect();
  void begin_transforms();
  [[nodiscard]] bool may_begin(std::size_t place) const;
  void begin(std::size_t place);
  void finish(Held& held, std::vector<Reshaped> outputs);
  void give_up(Held& held, std::string reason);
  [[nodiscard]] Status hold_back(Held& held, std::uint32_t handed_out);
  void tell_given_up(const Held& held);
  void try_later(const Error& error);

  [[nodiscard]] Status renew();
  [[nodiscard]] Status stage();
  [[nodiscard]] std::size_t done_in_front() const;
  [[nodiscard]] bool may_receive() const;
  [[nodiscard]] Status judge_refusal(const Batch& batch, const Answer& answer);
  [[nodiscard]] Status judge_alone(Held& held, const Verdict& verdict, bool of_output);
  void release_staged(std::size_t count, const Answer& answer);
  void release_front();
  [[nodiscard]] Status admit(Answer& answer, std::int64_t asked_ms);
  void forget();
  void tidy_streams();
  void tidy(const std::string& stream);
  [[nodiscard]] Duration idle_for();
  [[nodiscard]] Time log_now() const { return time_from_ms(clock_.steady_ms() + log_ahead_ms_); }

  Store& store_;
  ports::Clock& clock_;
  const StagerSettings settings_;
  const Compose compose_;
  Transforming* const transform_;
  const Log log_;
  const KeyBlocks blocks_;
  SourceKeeping keeping_;

  std::optional<std::uint64_t> stream_uid_{};  // none: look whether the streams are there
  std::deque<Held> held_;                      // as they were handed out; the front is the next one
  std::uint64_t first_number_ = 0;             // of the front; they count on
  std::size_t held_bytes_ = 0;                 // of payloads
  std::size_t staged_bytes_ = 0;
  std::size_t under_way_bytes_ = 0;  // of payloads, which transforms have copies of
  std::size_t waiting_ = 0;          // records in the state kWaits
  std::size_t under_way_ = 0;        // transforms, those of forgotten records included
  std::size_t one_by_one_ = 0;       // so many are committed alone: somebody among them was refused
  const std::shared_ptr<Arrivals> arrivals_;

  std::int64_t lease_end_ms_ = 0;     // of all that is held
  std::int64_t next_due_ms_ = 0;      // of the store; look then
  std::int64_t transform_at_ms_ = 0;  // not before
  std::int64_t tidy_at_ms_ = 0;
  std::int64_t log_ahead_ms_ = 0;  // of log time to our steady clock
  bool told_trouble_ = false;      // of the transform
  StagerCounts counts_;

  StreamNews news_;
};

}  // namespace hapax::delivery
