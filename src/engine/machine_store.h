// A store over a machine that somebody drives. What callers ask is prepared on their threads,
// handed over, decided by whoever drives, and completed with bytes from the log on their threads
// again.
//
// E5: damage found while running ends the service: nothing more is read, decided or written.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include <hapax/store.h>

#include "base/mutex.h"
#include "digest/hash.h"
#include "engine/answers.h"
#include "engine/machine.h"
#include "engine/prepare.h"
#include "journal/identity.h"
#include "journal/segment_files.h"

namespace hapax::engine {

class MachineStore : public Store {
 public:
  // One line per notable event, from any thread.
  using TellPeople = std::function<void(const std::string&)>;

  [[nodiscard]] std::string id() final { return id_; }
  [[nodiscard]] Result<Answer> commit(const Commit& commit) final;
  void submit(const Commit& commit, Done done) final;
  void submit_here(const Commit& commit, Done done) final;
  [[nodiscard]] Result<Records> read(const ReadRange& range) final;
  [[nodiscard]] Result<std::optional<IdStatus>> find_id(
      std::string_view stream, std::string_view id, std::optional<std::string_view> group) final;
  [[nodiscard]] Result<std::optional<ClaimStatus>> find_claim(std::string_view scope,
                                                              std::string_view key) final;
  [[nodiscard]] Result<std::optional<RegisterValue>> find_register(std::string_view name) final;
  [[nodiscard]] Result<RegisterPage> scan_registers(const RegisterScan& scan) final;
  [[nodiscard]] Result<std::optional<Position>> find_position(std::string_view source) final;
  [[nodiscard]] Result<std::optional<ProducerStatus>> find_producer(
      std::string_view stream, std::string_view producer) final;
  [[nodiscard]] Result<StreamStats> describe(std::string_view stream) final;
  [[nodiscard]] Result<UnackedPage> scan_unacked(const UnackedScan& scan) final;
  [[nodiscard]] Result<std::vector<std::string>> streams() final;
  [[nodiscard]] Result<StreamPage> scan_streams(const StreamScan& scan) final;
  [[nodiscard]] Result<Statistics> statistics() final;
  [[nodiscard]] std::uint64_t watch(const Watch& watch, Changed changed) final;
  void unwatch(std::uint64_t number) final;
  void set_shares(ShareOf share_of) final;
  [[nodiscard]] Result<std::vector<TenantUse>> tenants() final;

 protected:
  struct CommitTask {
    Prepared request;
    OnFinished reply;
  };
  struct LookTask {
    Machine::Look look;
    Machine::Fail fail;
    Machine::Sees sees = Machine::Sees::kState;
  };
  struct SharesTask {
    ShareOf share_of;
  };
  using Task = std::variant<CommitTask, LookTask, SharesTask>;
  // Whether the calling thread may drive the machine for its own task (E6).
  enum class Lead : std::uint8_t { kNever, kIfQuick, kAlways };
  // E13: a thread that serves connections never waits for the store: while too much is waiting, its
  // commits are refused. Whoever waits for an answer anyway waits for room, too.
  enum class WhenFull : std::uint8_t { kWait, kRefuse };

  MachineStore(const journal::Identity& identity, std::shared_ptr<journal::SegmentFiles> files,
               TellPeople tell);

  // False: there is no room, and the task was not taken.
  [[nodiscard]] virtual bool hand_over(Task& task, Lead lead, WhenFull when_full) = 0;
  // While the machine is looked at.
  [[nodiscard]] virtual Statistics figures() = 0;
  [[nodiscard]] virtual core::Moment moment() = 0;
  // From the disk, on the caller's thread.
  [[nodiscard]] virtual Status add_disk_figures(Statistics& stats) = 0;

  [[nodiscard]] Status check_sound();
  void stop_serving(const Error& error);
  void tell(const std::string& line) const { tell_(line); }
  [[nodiscard]] Watches& watches() { return watches_; }

 private:
  template <class Value>
  [[nodiscard]] Result<Value> ask(std::function<Result<Value>(const core::State&, Time)> question,
                                  Machine::Sees sees = Machine::Sees::kState);
  template <class Value>
  [[nodiscard]] Result<Value> serve(Result<Value> value);
  [[nodiscard]] Result<Answer> finish(Finished finished);
  void submit(const Commit& commit, Done done, Lead lead);
  void hand_over_or_wait(Task task, Lead lead);

  const std::string id_;
  const digest::HashKey key_;
  const std::shared_ptr<journal::SegmentFiles> files_;
  const TellPeople tell_;
  Watches watches_;
  base::Mutex damage_mutex_;
  std::optional<Error> damage_ HAPAX_GUARDED_BY(damage_mutex_);  // the first that was found
};

}  // namespace hapax::engine
