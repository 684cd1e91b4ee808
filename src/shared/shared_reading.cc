// How a shared store begins, and how it reads everything that is in its place.
#include <utility>

#include "base/format.h"
#include "base/mutex.h"
#include "engine/frames.h"
#include "journal/segment.h"
#include "journal/snapshot_file.h"
#include "shared/shared_store.h"

namespace hapax::shared {

namespace {

journal::Slot slot_of(ports::LogPlace place) { return {place.segment, place.offset}; }

}  // namespace

// --- reading everything
// ----------------------------------------------------------------------------

Status SharedStore::read_all() {
  if (engine_ != nullptr) {
    // It may write to a server that is gone; callers do not wait as long as that takes to notice.
    base::MutexLock lock(mutex_);
    const bool idle =
        lock.wait_for(background_wake_, options_.patience,
                      [this]() HAPAX_REQUIRES(mutex_) { return to_write_ == nullptr; });
    if (!idle) return Error{Errc::kUnavailable, "a snapshot is still being written"};
  }
  // The keeper may remove the snapshot, or what only it needs, while it is read.
  constexpr int kTries = 10;
  for (int tries = 1;; ++tries) {
    HAPAX_TRY(const journal::Lsn before, newest_snapshot());
    Status read = read_once();
    const bool missing =
        !read && (read.error().code == Errc::kCorruption || read.error().code == Errc::kNotFound);
    if (!missing) return read;
    HAPAX_TRY(const journal::Lsn after, newest_snapshot());
    if (after == before) return read;
    if (tries == kTries) {
      return Error{Errc::kUnavailable, "snapshots come faster than they can be read"};
    }
  }
}

Result<journal::Lsn> SharedStore::newest_snapshot() {
  HAPAX_TRY(const journal::SnapshotFiles files, journal::list_snapshots(ports_.folder));
  return files.snapshots.empty() ? journal::Lsn{0} : files.snapshots.front();
}

Status SharedStore::read_once() {
  engine::Engine::Read read;
  std::vector<std::string> lines;
  HAPAX_TRY(read.snapshot,
            engine::load_snapshot(ports_.folder, identity_, options_.engine.index_shards_log2,
                                  read.state, lines));
  for (const std::string& line : lines) tell(line);
  HAPAX_CHECK(read_log(read));
  read.alone = keeper_ != nullptr;
  const bool has_news = engine_ != nullptr && durable_ >= engine_->machine().next_lsn();
  if (engine_ != nullptr) read.clock = engine_->take_clock();
  engine_ = engine::Engine::over(ports_.folder, ports_.clock, files_, identity_, std::move(read),
                                 options_.engine);
  engine_->machine().set_shares(share_of_);
  engine_->machine().wake(watches());
  news_.clear();
  watches().tell_all();  // Nobody knows which facts led here.
  // W8: a snapshot does not say whether its facts were questions only.
  if (has_news) decided_behind_ = true;
  tell_losses();
  return Ok{};
}

// E9
void SharedStore::tell_losses() {
  const auto lost = known_.end_anew();
  if (!lost) return;
  decided_behind_ = false;  // By what is lost, too, something was told to be over.
  tell(text_of(*lost) +
       ", are lost: the database went back to an earlier state, as one does that fails over to a "
       "standby that was behind. What was acknowledged with them is not known any more: whoever "
       "says it again is told that it is new.");
}

Status SharedStore::read_log(engine::Engine::Read& read) {
  known_.begin_anew();
  tip_ = {};
  tip_bytes_ = 0;
  chain_ = 0;
  durable_ = read.snapshot.lsn;
  log_time_ = read.snapshot.log_time;
  HAPAX_TRY(ports::LogPart part, ports_.log.read_from(durable_.value));
  std::vector<ports::LogBatch> batches = std::move(part.batches);
  if (batches.empty() && durable_ != journal::Lsn{0}) {
    return Error{
        Errc::kCorruption,
        base::format("the log does not reach to its newest snapshot, of fact {}", durable_.value)};
  }
  if (!batches.empty() && batches.front().last == durable_.value) {
    HAPAX_CHECK(stand_on(batches.front()));
    batches.erase(batches.begin());
  } else if (!batches.empty()) {
    // The batch that it ends with was removed: the first one that follows says what it was.
    HAPAX_TRY(const journal::BatchView first,
              journal::view_batch(batches.front().bytes, slot_of(batches.front().at)));
    chain_ = first.header.chain;
  }
  engine::Replay replay(*read.state);
  for (;;) {
    for (const ports::LogBatch& batch : batches) {
      read.bytes += batch.bytes.size();
      HAPAX_CHECK(follow_one(replay, batch));
    }
    if (tip_.none) break;
    HAPAX_TRY(part, ports_.log.read_behind(tip_));
    batches = std::move(part.batches);
    if (batches.empty()) break;
  }
  read.log_time = log_time_;
  read.end = {options_.engine.segment_bytes, durable_.next(), end_of_log(), log_time_};
  return Ok{};
}

Status SharedStore::stand_on(const ports::LogBatch& batch) {
  HAPAX_TRY(const journal::BatchView view, journal::view_batch(batch.bytes, slot_of(batch.at)));
  stand_behind(batch, view.checksum, {view.header.first, view.header.last()}, view.header.log_time);
  return Ok{};
}

journal::Slot SharedStore::end_of_log() const {
  if (tip_.none) return {1, journal::kHeaderBytes};
  return journal::slot_after(slot_of(tip_.at), tip_bytes_, options_.engine.segment_bytes);
}

// --- the beginning
// ---------------------------------------------------------------------------------

namespace {

// The first process makes the store; others wait for it.
Result<journal::Identity> find_identity(const SharedPorts& ports,
                                        std::chrono::milliseconds patience) {
  const std::int64_t since_ms = ports.clock.steady_ms();
  for (;;) {
    auto found = journal::read_identity(ports.folder);
    if (found || found.error().code != Errc::kNotFound) return found;
    auto lock = ports.folder.lock(kMakingName);
    if (!lock && lock.error().code != Errc::kLocked) return std::move(lock).error();
    if (!lock && ports.clock.steady_ms() - since_ms >= patience.count()) {
      return Error{Errc::kLocked,
                   base::format("another process makes this store and has not done so in {} ms. If "
                                "it stands still, end it, and start this one again.",
                                patience.count())};
    }
    if (!lock) {
      std::this_thread::sleep_for(std::chrono::milliseconds{20});
      continue;
    }
    found = journal::read_identity(ports.folder);
    if (found || found.error().code != Errc::kNotFound) return found;
    const journal::Identity identity = journal::draw_identity(ports.entropy, ports.clock.wall_ms());
    HAPAX_CHECK(journal::write_identity(ports.folder, identity));
    HAPAX_CHECK(ports.folder.sync());
    return identity;
  }
}

}  // namespace

Result<std::unique_ptr<SharedStore>> SharedStore::open(std::shared_ptr<void> owner,
                                                       SharedPorts ports, SharedOptions options,
                                                       TellPeople tell) {
  HAPAX_TRY(const journal::Identity identity, find_identity(ports, options.patience));
  std::unique_ptr<SharedStore> store(
      new SharedStore(std::move(owner), ports, std::move(options), identity,
                      std::make_shared<journal::SegmentFiles>(ports.folder), std::move(tell)));
  if (auto keeper = ports.folder.lock(kKeeperName)) store->keeper_ = *std::move(keeper);
  HAPAX_CHECK(store->read_all());
  if (store->keeper_ != nullptr) HAPAX_CHECK(store->clear_leftovers());
  store->start_time();
  // Not before everything is there: the threads begin at once.
  store->background_ = std::thread([raw = store.get()] { raw->run_background(); });
  store->driver_ = std::thread([raw = store.get()] { raw->run(); });
  return store;
}

}  // namespace hapax::shared
