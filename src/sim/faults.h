// Which faults a simulated disk has, when they fire, and how often they did. Two ways to ask for
// one: by rate (random runs) and by call number (every-point-of-failure runs). Each kind of fault
// draws from its own stream, so switching one off leaves the others where they were.
// It decides only; disk.h carries out.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include <hapax/result.h>

#include "sim/crash.h"
#include "sim/image.h"
#include "sim/random.h"

namespace hapax::sim {

enum class InjectedFault : std::uint8_t {
  kShortWrite,
  kDiskFull,         // The space limit was reached.
  kNoSpace,          // A sudden "no space" below the limit; part of a write happened.
  kWriteError,       // EIO; part of the write happened.
  kSyncError,        // EIO; see S5 in image.h.
  kFolderSyncError,  // The same for names.
  kChangeError,      // EIO of create, rename, remove or truncate; nothing happened.
  kReadError,
  kReserveIgnored,  // The file system cannot reserve: Ok, and nothing is reserved.
  kCacheDropped,    // The kernel forgot clean pages before a restart.
  kCrashBefore,
  kCrashMiddle,  // Of a write: a prefix of it happened. Other calls: as kCrashBefore.
  kCrashAfter,   // The call happened and nobody heard its answer.
  kKill,
  kPowerLoss,
  kScriptedFailure,  // By fail_at_call or fail_at_look.
};
inline constexpr std::size_t kFaultKinds =
    static_cast<std::size_t>(InjectedFault::kScriptedFailure) + 1;

[[nodiscard]] std::string_view word_of(InjectedFault fault);

// Everything is off at first.
struct DiskFaults {
  Rate short_write = kNever;
  Rate no_space = kNever;
  Rate write_error = kNever;
  Rate sync_error = kNever;
  Rate folder_sync_error = kNever;
  Rate change_error = kNever;
  Rate read_error = kNever;
  Rate reserve_ignored = kNever;
  Rate cache_dropped = kNever;  // Per restart after a kill.
  Rate crash_before = kNever;
  Rate crash_middle = kNever;
  Rate crash_after = kNever;
  Rate power_loss_share = {1, 2};  // Of the crashes above; the rest are kills.
  std::uint64_t space_limit = 0;   // Bytes in all files; 0 = none.
  LossOdds at_power_loss = {.sectors = {2, 1, 1}, .all_dropped = {1, 4}, .all_kept = {1, 8}};
  LossOdds at_failed_sync = {.sectors = {1, 1, 0}, .all_dropped = {1, 2}};
};

struct DiskStats {
  [[nodiscard]] std::uint64_t operator[](InjectedFault fault) const {
    return fired[static_cast<std::size_t>(fault)];
  }

  std::array<std::uint64_t, kFaultKinds> fired{};
  Losses losses;  // What power losses and failed syncs did to un-synced changes.
  std::uint64_t restarts = 0;
};

enum class When : std::uint8_t { kBefore, kMiddle, kAfter };
enum class Lasting : std::uint8_t { kOnce, kForever };

struct CrashPoint {
  std::uint64_t call = 0;
  When when = When::kBefore;
  Crash::Kind kind = Crash::Kind::kKill;
};

struct FailPoint {
  std::uint64_t call = 0;
  Errc code = Errc::kIo;
  Lasting lasting = Lasting::kOnce;
};

class FaultPlan {
 public:
  FaultPlan(const Random& random, const DiskFaults& faults);

  [[nodiscard]] const DiskFaults& faults() const { return faults_; }
  void set_faults(const DiskFaults& faults) { faults_ = faults; }
  [[nodiscard]] const DiskStats& stats() const { return stats_; }
  [[nodiscard]] DiskStats& stats() { return stats_; }

  void crash_at_call(const CrashPoint& point) { crash_ = point; }
  void fail_at_call(const FailPoint& point) { fail_ = point; }
  void fail_at_look(const FailPoint& point) { fail_look_ = point; }
  void clear_script();

  // Whether the fault happens now; if so it is counted.
  [[nodiscard]] bool fires(InjectedFault fault, Rate rate);
  void count(InjectedFault fault) { ++stats_.fired[static_cast<std::size_t>(fault)]; }
  // For the details of a fault that fired: how much of a write, which garbage.
  [[nodiscard]] Random& dice(InjectedFault fault) { return dice_[static_cast<std::size_t>(fault)]; }

  [[nodiscard]] std::optional<CrashPoint> crash_of_call(std::uint64_t call);
  [[nodiscard]] std::optional<Errc> failure_of_call(std::uint64_t call);
  [[nodiscard]] std::optional<Errc> failure_of_look(std::uint64_t look);

 private:
  [[nodiscard]] std::optional<Errc> failure(const std::optional<FailPoint>& point,
                                            std::uint64_t number);

  DiskFaults faults_;
  DiskStats stats_;
  std::array<Random, kFaultKinds> dice_;
  std::optional<CrashPoint> crash_;
  std::optional<FailPoint> fail_;
  std::optional<FailPoint> fail_look_;
};

}  // namespace hapax::sim
