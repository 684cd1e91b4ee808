// An outbox of a database as a source: opened when the database is there, cleaned now and then, and
// left to whoever else sends from it. Lanes let no two senders have one record, but records that
// are divided among senders with different endpoints reach half of them.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <hapax/result.h>

#include "base/mutex.h"
#include "delivery/lane_source.h"
#include "delivery/source.h"
#include "ports/clock.h"
#include "relay/open_outbox.h"
#include "relay/source.h"

namespace hapax::delivery {

// Senders hold lanes as LABEL#KEY. The label is for people; the key is new in every process, so
// that no two processes take each other's lanes for their own.
[[nodiscard]] inline std::string_view label_of(std::string_view owner) {
  return owner.substr(0, owner.rfind('#'));
}
// How the label of a workflow begins.
inline constexpr std::string_view kWorkflowLabel = "workflow ";

struct DatabaseOutboxSettings {
  LaneSettings lanes{};
  std::string owner{};  // LABEL#KEY. Senders of one label share the lanes.
};

class DatabaseOutbox final : public Source {
 public:
  // Any error: it is tried again with the next take().
  using Open = std::function<Result<relay::OpenedOutbox>()>;
  using Log = std::function<void(std::string_view)>;
  // What becomes of the records of that outbox.
  using Hooks = std::function<LaneHooks(const relay::OpenedOutbox&)>;

  DatabaseOutbox(Open open, ports::Clock& clock, DatabaseOutboxSettings settings, Hooks hooks,
                 Log log = {});
  ~DatabaseOutbox() override;

  // kLocked: a sender of another label holds lanes. Nothing is held then.
  [[nodiscard]] Result<Hand> take(const TakeCall& call) override;
  [[nodiscard]] Status give_back(std::span<const Settlement> settled) override;
  void wait(Duration most) override;
  void nudge() override;
  void hurry() override;

 private:
  [[nodiscard]] Result<Hand> open_and_take(const TakeCall& call);
  [[nodiscard]] Status open();
  [[nodiscard]] Status look_for_others();
  void clean();
  void say(std::string_view text) const {
    if (log_) log_(text);
  }

  const Open open_;
  ports::Clock& clock_;
  const DatabaseOutboxSettings settings_;
  const Hooks hooks_;
  const Log log_;

  base::Mutex mutex_;  // over outbox_ as it comes and goes, and over waits without one
  std::condition_variable woken_;
  std::unique_ptr<relay::Source> outbox_;
  std::optional<LaneSource> lanes_;
  bool nudged_ HAPAX_GUARDED_BY(mutex_) = false;
  bool hurries_ HAPAX_GUARDED_BY(mutex_) = false;
  bool troubled_ HAPAX_GUARDED_BY(mutex_) = false;  // the latest take failed
  std::int64_t clean_at_ms_ = 0;
  std::int64_t look_at_ms_ = 0;  // for other senders
  std::size_t lanes_there_ = 0;  // as far as it is known
};

}  // namespace hapax::delivery
