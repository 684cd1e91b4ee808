#include "shared_postgres/copy.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/hex.h"
#include "core/state.h"
#include "core/state_codec.h"
#include "digest/hash.h"
#include "engine/losses.h"
#include "engine/replay.h"
#include "engine/snapshot_sections.h"
#include "engine/snapshotter.h"
#include "host/entropy.h"
#include "journal/block.h"
#include "journal/file_window.h"
#include "journal/names.h"
#include "journal/new_file.h"
#include "journal/segment_files.h"

namespace hapax::shared_postgres {

namespace {

constexpr unsigned kIndexShardsLog2 = 12;

// Of everything that the state is, as a snapshot would write it.
std::string digest_of(core::State& state) {
  std::string bytes;
  core::encode_state(state, bytes);
  std::string sums = digest::sha256(bytes);
  for (const auto& chunk : state.ids.snapshot().chunks) {
    sums += digest::sha256(engine::encode_chunk(chunk));
  }
  for (const auto& chunk : state.settled.snapshot().chunks) {
    sums += digest::sha256(engine::encode_chunk(chunk));
  }
  return base::hex(digest::sha256(sums));
}

// Follows a log from the snapshot on.
class Follower {
 public:
  Status load(ports::Folder& folder, const journal::Identity& identity) {
    std::vector<std::string> lines;
    HAPAX_TRY(snapshot_, engine::load_snapshot(folder, identity, kIndexShardsLog2, state_, lines));
    replay_.emplace(*state_);
    next_ = snapshot_.lsn.next();
    log_time_ = snapshot_.log_time;
    return Ok{};
  }

  Status follow(const journal::BatchView& batch) {
    // Below the snapshot a superseded batch may have outlived what superseded it.
    const bool needed = batch.header.last() >= next_;
    if (needed && batch.header.first == before_ && batch.header.chain != checksum_) {
      return Error{Errc::kCorruption, place_text(batch) + "it does not follow the one before it"};
    }
    before_ = needed ? batch.header.next() : journal::Lsn{0};
    checksum_ = batch.checksum;
    if (!needed) return Ok{};
    if (batch.header.first != next_) {
      return Error{Errc::kCorruption,
                   base::format("{}it begins with fact {}, expected {}", place_text(batch),
                                batch.header.first.value, next_.value)};
    }
    HAPAX_CHECK((*replay_)(batch));
    next_ = batch.header.next();
    log_time_ = batch.header.log_time;
    return Ok{};
  }

  [[nodiscard]] static std::string place_text(const journal::BatchView& batch) {
    return base::format("{} offset {}: ", journal::segment_name(batch.slot.segment),
                        batch.slot.offset);
  }

  [[nodiscard]] const engine::LoadedSnapshot& snapshot() const { return snapshot_; }
  [[nodiscard]] core::State& state() { return *state_; }
  [[nodiscard]] journal::Lsn last() const { return journal::Lsn{next_.value - 1}; }
  [[nodiscard]] std::uint32_t checksum() const { return checksum_; }
  [[nodiscard]] Time log_time() const { return log_time_; }

 private:
  std::unique_ptr<core::State> state_;
  std::optional<engine::Replay> replay_;
  engine::LoadedSnapshot snapshot_;
  journal::Lsn next_{1};    // fact that is not in the state
  journal::Lsn before_{0};  // behind the batch that was seen last, if it was needed
  std::uint32_t checksum_ = 0;
  Time log_time_{};
};

bool same_batch(const journal::BatchView& a, const journal::BatchView& b) {
  journal::BatchHeader sealed = b.header;
  sealed.salt = a.header.salt;
  sealed.chain = a.header.chain;
  return a.slot == b.slot && a.header == sealed && a.payload == b.payload;
}

// The parts of one copy share these; the steps are in copy_store(), in their order.
class Copy {
 public:
  Copy(CopySide& source, CopySide& target, const CopyOptions& options)
      : source_(source), target_(target), options_(options) {}

  Status survey();
  // Whether there is anything to do.
  Result<bool> prepare_target();
  Status copy_files();
  Status copy_log();
  Status verify();
  Status hand_over();
  CopyReport take_report() { return std::move(report_); }

 private:
  [[nodiscard]] LogSpan span() const { return {cargo_.snapshot, cargo_.last}; }
  Status check_payloads(ports::Folder& folder, Follower& follower);
  Status check_left_out(const LogReader& reader);
  Status compare_logs(Follower& follower);
  Status copy_file(const std::string& name);
  Status step(std::string_view doing, std::uint64_t bytes);
  [[nodiscard]] Error differs(const std::string& what) const;

  CopySide& source_;
  CopySide& target_;
  const CopyOptions& options_;
  journal::Cargo cargo_;
  journal::MoveNote note_;
  std::vector<std::string> files_;  // the parts, and then the snapshot
  CopyReport report_;
  std::uint64_t bytes_all_ = 0;  // of the source
  std::uint64_t bytes_done_ = 0;
};

Status Copy::step(std::string_view doing, std::uint64_t bytes) {
  bytes_done_ += bytes;
  if (!options_.step || options_.step({doing, bytes_done_, bytes_all_})) return Ok{};
  return Error{Errc::kShuttingDown, "the copy was stopped. The same command goes on with it."};
}

Error Copy::differs(const std::string& what) const {
  return {
      Errc::kCorruption,
      "the copy is not what was copied: " + what +
          ". The target is not used; the source is as it was. Remove what is in the target, and "
          "copy again."};
}

// What is to be copied, and what state it adds up to.
Status Copy::survey() {
  ports::Folder& folder = source_.folder();
  HAPAX_CHECK(journal::check_copied(folder));
  HAPAX_TRY(cargo_.identity, journal::read_identity(folder));
  Follower follower;
  HAPAX_CHECK(follower.load(folder, cargo_.identity));
  cargo_.snapshot = follower.snapshot().lsn;
  HAPAX_TRY(cargo_.last, source_.last(cargo_.identity, cargo_.snapshot));
  HAPAX_TRY(const journal::Slot from, source_.before_end_of(cargo_.identity, cargo_.snapshot));
  HAPAX_TRY(const auto reader, source_.read(cargo_.identity, span(), from));
  for (;;) {
    HAPAX_TRY(const auto batch, reader->next());
    if (!batch) break;
    HAPAX_CHECK(follower.follow(*batch));
  }
  if (follower.last() != cargo_.last) {
    return Error{
        Errc::kCorruption,
        base::format("{}: the log ends with fact {}, but reaches only to {} from its snapshot on",
                     folder.describe(""), cargo_.last.value, follower.last().value)};
  }
  cargo_.checksum = follower.checksum();
  HAPAX_CHECK(check_payloads(folder, follower));
  host::HostEntropy entropy;
  note_ = journal::note_of(cargo_, journal::hex16(ports::draw_u64(entropy)), options_.journey);
  for (const std::uint64_t part : follower.snapshot().parts) {
    files_.push_back(journal::part_name(part));
  }
  if (cargo_.snapshot > journal::Lsn{}) {
    files_.push_back(journal::snapshot_name(cargo_.snapshot.value));
  }
  const journal::Identity& identity = cargo_.identity;
  report_.store_id = base::hex({identity.store_id.data(), identity.store_id.size()});
  report_.history = identity.history;
  report_.last_lsn = cargo_.last.value;
  report_.snapshot_lsn = cargo_.snapshot.value;
  report_.state_digest = digest_of(follower.state());
  report_.streams = follower.state().stream_names.size();
  report_.ids = follower.state().ids.live();
  HAPAX_TRY(const journal::SegmentUse use, journal::segments_on_disk(folder));
  bytes_all_ = use.bytes;
  return step("survey", 0);
}

// G2: records and results below the snapshot, which nothing reads.
Status Copy::check_payloads(ports::Folder& folder, Follower& follower) {
  HAPAX_TRY(const auto missing,
            engine::find_missing(folder, follower.state(), follower.log_time()));
  if (missing) return engine::refusal(folder, *missing);
  return Ok{};
}

Result<bool> Copy::prepare_target() {
  HAPAX_TRY(const auto moved, journal::read_note(source_.folder(), journal::kMovedName));
  HAPAX_TRY(const auto copying, journal::read_note(target_.folder(), journal::kCopyingName));
  if (copying) {
    // J2: another copy was finished meanwhile, or is about to be.
    if (moved && moved->ticket != copying->ticket) {
      HAPAX_CHECK(journal::check_not_moved(source_.folder()));
    }
    note_.ticket = copying->ticket;
    if (copying->cargo == note_.cargo) return true;
    const std::string what = journal::same_store(*copying, note_)
                                 ? "this store as it was before; it has changed since"
                                 : "another store, " + copying->journey.from;
    return Error{Errc::kAlreadyExists, note_.journey.to + " holds an unfinished copy of " + what +
                                           ". Remove it, or choose another target."};
  }
  const auto there = journal::read_identity(target_.folder());
  if (moved && there && *there == cargo_.identity && *moved == note_) {
    report_.done_before = true;
    return false;
  }
  if (moved) HAPAX_CHECK(journal::check_not_moved(source_.folder()));
  HAPAX_TRY(const std::vector<std::string> names, target_.folder().list());
  for (const std::string& name : names) {
    const journal::FileName::Kind kind = journal::parse_name(name).kind;
    if (kind == journal::FileName::Kind::kLock || kind == journal::FileName::Kind::kUnfinished) {
      continue;
    }
    return Error{Errc::kAlreadyExists, note_.journey.to + " is not empty: " + name +
                                           " is there. Nothing was changed. Choose a target that "
                                           "is empty, or not there yet."};
  }
  HAPAX_CHECK(journal::write_note(target_.folder(), journal::kCopyingName, note_));
  HAPAX_CHECK(step("begin", 0));
  return true;
}

// L4: a file that bears its name is whole.
Status Copy::copy_file(const std::string& name) {
  HAPAX_TRY(std::unique_ptr<ports::File> from, source_.folder().open(name, ports::OpenMode::kRead));
  HAPAX_TRY(journal::FileWindow window, journal::FileWindow::open(std::move(from)));
  ++report_.files;
  report_.file_bytes += window.size();
  if (const auto there = target_.folder().open(name, ports::OpenMode::kRead)) {
    HAPAX_TRY(const std::uint64_t size, (*there)->size());
    if (size == window.size()) return Ok{};
  } else if (there.error().code != Errc::kNotFound) {
    return there.error();
  }
  constexpr std::size_t kAtOnce = std::size_t{1} << 20;
  HAPAX_TRY(journal::NewFile to, journal::NewFile::create(target_.folder(), name));
  for (std::uint64_t offset = 0; offset < window.size();) {
    HAPAX_TRY(const std::string_view bytes, window.view(offset, kAtOnce));
    if (bytes.empty()) return Error{Errc::kCorruption, name + " ends before its end"};
    HAPAX_CHECK(to.append(bytes));
    offset += bytes.size();
  }
  report_.copied_bytes += window.size();
  HAPAX_TRY(const auto published, to.publish());
  return journal::sync_names(target_.folder());
}

Status Copy::copy_files() {
  for (const std::string& name : files_) {
    HAPAX_CHECK(copy_file(name));
    HAPAX_CHECK(step("files", 0));
  }
  return Ok{};
}

Status Copy::copy_log() {
  HAPAX_TRY(const auto writer, target_.write(cargo_.identity));
  HAPAX_TRY(const auto reader, source_.read(cargo_.identity, span(), writer->there()));
  for (;;) {
    HAPAX_TRY(const auto batch, reader->next());
    if (!batch) break;
    HAPAX_CHECK(writer->put(*batch));
    report_.copied_bytes += batch->bytes;
    HAPAX_CHECK(step("log", batch->bytes));
  }
  return writer->end();
}

// Damage below the snapshot that nothing needs stays behind; what somebody needs does not.
Status Copy::check_left_out(const LogReader& reader) {
  report_.left_out = reader.left_out();
  if (report_.left_out == 0) return Ok{};
  HAPAX_TRY(const journal::PayloadLoss loss,
            engine::find_losses(source_.folder(),
                                {cargo_.identity, cargo_.snapshot, cargo_.last.next(), {}}));
  if (loss.facts.empty()) return Ok{};
  return Error{
      Errc::kCorruption,
      journal::folder_path(source_.folder()) +
          " is damaged: records or results that are still needed cannot be read. See hapax "
          "verify. Restore the folder from a backup, or give up what cannot be read: hapax "
          "repair --accept-loss; then remove the target and copy again."};
}

// J4, the log: batch by batch, both sides.
Status Copy::compare_logs(Follower& follower) {
  HAPAX_TRY(const auto theirs, source_.read(cargo_.identity, span(), {}));
  HAPAX_TRY(const auto ours, target_.read(cargo_.identity, span(), {}));
  for (;;) {
    HAPAX_TRY(const auto expected, theirs->next());
    const auto found = ours->next();
    if (!found && found.error().code == Errc::kCorruption) return differs(found.error().detail);
    if (!found) return found.error();
    if (!expected && !*found) break;
    if (!expected || !*found) {
      const journal::BatchView& one = expected ? *expected : **found;
      return differs(Follower::place_text(one) + (expected ? "it is missing" : "it is too many"));
    }
    if (!same_batch(*expected, **found)) {
      return differs(Follower::place_text(*expected) + "it is another batch");
    }
    if (const Status followed = follower.follow(**found); !followed) {
      return differs(followed.error().detail);
    }
    ++report_.batches;
    report_.log_bytes += (*found)->bytes;
    HAPAX_CHECK(step("verify", (*found)->bytes));
  }
  return check_left_out(*theirs);
}

// J4
Status Copy::verify() {
  bytes_done_ = 0;
  HAPAX_CHECK(step("verify", 0));
  Follower follower;
  HAPAX_CHECK(follower.load(target_.folder(), cargo_.identity));
  if (follower.snapshot().lsn != cargo_.snapshot) {
    return differs(journal::snapshot_name(cargo_.snapshot.value) + " or a part of it is damaged");
  }
  HAPAX_CHECK(compare_logs(follower));
  HAPAX_TRY(const journal::Lsn last, target_.last(cargo_.identity, cargo_.snapshot));
  if (last != cargo_.last || follower.last() != cargo_.last) {
    return differs(base::format("it ends with fact {}, not {}", last.value, cargo_.last.value));
  }
  HAPAX_CHECK(check_payloads(target_.folder(), follower));
  const std::string digest = digest_of(follower.state());
  if (digest != report_.state_digest) {
    return differs("the state has the digest " + digest + ", not " + report_.state_digest);
  }
  return Ok{};
}

// J1, J2
Status Copy::hand_over() {
  if (!options_.keep) {
    HAPAX_CHECK(journal::write_note(source_.folder(), journal::kMovedName, note_));
    HAPAX_CHECK(step("moved", 0));
  }
  HAPAX_CHECK(journal::write_identity(target_.folder(), cargo_.identity));
  HAPAX_CHECK(journal::sync_names(target_.folder()));
  HAPAX_CHECK(step("store", 0));
  return journal::remove_note(target_.folder(), journal::kCopyingName);
}

}  // namespace

Result<CopyReport> copy_store(CopySide& source, CopySide& target, const CopyOptions& options) {
  Copy copy(source, target, options);
  HAPAX_CHECK(copy.survey());
  HAPAX_TRY(const bool needed, copy.prepare_target());
  if (!needed) return copy.take_report();
  HAPAX_CHECK(copy.copy_files());
  HAPAX_CHECK(copy.copy_log());
  HAPAX_CHECK(copy.verify());
  HAPAX_CHECK(copy.hand_over());
  return copy.take_report();
}

}  // namespace hapax::shared_postgres
