#include "shared_postgres/copy_side.h"

#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "engine/offline.h"
#include "host/entropy.h"
#include "host/folder.h"
#include "journal/examine.h"
#include "journal/marks.h"
#include "journal/names.h"
#include "journal/open_store.h"
#include "journal/renew_names.h"
#include "shared/shared_store.h"

namespace hapax::shared_postgres {

namespace {

// --- a data folder

class FolderSide final : public CopySide {
 public:
  explicit FolderSide(std::unique_ptr<ports::Folder> folder) : folder_(std::move(folder)) {}

  Status begin(CopyRole role) {
    HAPAX_CHECK(role == CopyRole::kSource ? engine::demand_store(*folder_) : demand_ours());
    HAPAX_TRY(lock_, folder_->lock(journal::kLockName));
    if (role == CopyRole::kTarget) return Ok{};
    HAPAX_CHECK(journal::check_store_file(*folder_));
    return journal::finish_renewals(*folder_);
  }

  ports::Folder& folder() override { return *folder_; }

  Result<journal::Lsn> last(const journal::Identity& identity, journal::Lsn snapshot) override {
    HAPAX_TRY(const journal::Marks marks, journal::Marks::open(*folder_));
    HAPAX_TRY(const journal::JournalFindings findings,
              journal::examine(*folder_, identity, snapshot.next()));
    if (const auto damage = journal::judge(findings, {marks.newest(), snapshot})) {
      return journal::refusal(*folder_, *damage);
    }
    return journal::Lsn{findings.next.value - 1};
  }

  Result<journal::Slot> before_end_of(const journal::Identity& identity,
                                      journal::Lsn snapshot) override {
    HAPAX_TRY(const auto segments, journal::list_segments(*folder_, identity));
    journal::Slot before;
    for (const journal::Segment& segment : segments) {
      const bool begins_before = segment.header && segment.header->first <= snapshot.next();
      if (begins_before) before = {segment.number, 0};
    }
    return before;
  }

  Result<std::unique_ptr<LogReader>> read(const journal::Identity& identity, LogSpan span,
                                          journal::Slot after) override {
    return read_segments(*folder_, identity, span, after);
  }

  Result<std::unique_ptr<LogWriter>> write(const journal::Identity& identity) override {
    return write_segments(*folder_, entropy_, identity);
  }

 private:
  // A folder that is not ours gets no file of ours, not even the lock's.
  Status demand_ours() {
    HAPAX_TRY(const std::vector<std::string> names, folder_->list());
    for (const std::string& name : names) {
      if (journal::parse_name(name).kind != journal::FileName::Kind::kUnknown) continue;
      return Error{Errc::kAlreadyExists, folder_->describe(name) +
                                             " is no file of a store: a copy goes into an empty "
                                             "folder, or one that is not there yet"};
    }
    return Ok{};
  }

  std::unique_ptr<ports::Folder> folder_;
  std::unique_ptr<ports::Lock> lock_;
  host::HostEntropy entropy_;
};

// --- tables

class TablesSide final : public CopySide {
 public:
  explicit TablesSide(const StorePlace& place) : place_(place), folder_(place, recent_) {}

  Status begin(CopyRole role, std::uint32_t segment_bytes) {
    if (role == CopyRole::kSource) HAPAX_CHECK(check_store_tables(place_));
    if (role == CopyRole::kTarget) HAPAX_CHECK(make_store_tables(place_, segment_bytes));
    HAPAX_TRY(Connection connection, Connection::open(place_.uri, {.notice = place_.notice}));
    HAPAX_CHECK(check_durable(connection));
    // Who appends, who gives a store its identity, and who writes snapshots and removes segments.
    HAPAX_TRY(use_, lock(kUseName));
    HAPAX_TRY(making_, lock(shared::kMakingName));
    HAPAX_TRY(keeper_, lock(shared::kKeeperName));
    return Ok{};
  }

  ports::Folder& folder() override { return folder_; }

  Result<journal::Lsn> last(const journal::Identity&, journal::Lsn) override {
    HAPAX_TRY(const Rows rows,
              folder_.read("SELECT max(last) FROM " + folder_.table("log"), {}, Rowed::kText));
    return journal::Lsn{static_cast<std::uint64_t>(rows.number(0, kOnly))};
  }

  Result<journal::Slot> before_end_of(const journal::Identity&, journal::Lsn snapshot) override {
    Values values;
    values.number(static_cast<std::int64_t>(snapshot.value));
    enum Column { kSegment, kAt, kColumns };
    HAPAX_TRY(const Rows rows,
              folder_.read("SELECT segment, at FROM " + folder_.table("log") +
                               " WHERE last <= $1::int8 ORDER BY last DESC LIMIT 1",
                           values, Rowed::kText));
    if (rows.size() == 0) return journal::Slot{};
    return journal::Slot{static_cast<std::uint32_t>(rows.number(0, kSegment)),
                         static_cast<std::uint32_t>(rows.number(0, kAt))};
  }

  Result<std::unique_ptr<LogReader>> read(const journal::Identity&, LogSpan,
                                          journal::Slot after) override {
    return read_rows(folder_, after);
  }

  Result<std::unique_ptr<LogWriter>> write(const journal::Identity&) override {
    return write_rows(folder_);
  }

 private:
  // A process that was killed may be committing still: it is waited for a little.
  Result<std::unique_ptr<ports::Lock>> lock(std::string_view name) {
    constexpr int kTries = 40;
    for (int tries = 1;; ++tries) {
      auto taken = folder_.lock(name);
      if (taken || taken.error().code != Errc::kLocked) return taken;
      if (tries == kTries) break;
      std::this_thread::sleep_for(std::chrono::milliseconds{50});
    }
    return Error{Errc::kLocked, "the store in schema " + place_.schema +
                                    " is used by another process. Stop every hapax serve with this "
                                    "store, and any other copy of it, and try again."};
  }

  const StorePlace place_;
  RecentBatches recent_;
  PostgresFolder folder_;
  std::unique_ptr<ports::Lock> use_;
  std::unique_ptr<ports::Lock> making_;
  std::unique_ptr<ports::Lock> keeper_;
};

}  // namespace

Result<std::unique_ptr<CopySide>> folder_side(const std::string& path, CopyRole role) {
  const auto mode =
      role == CopyRole::kSource ? host::FolderMode::kMustExist : host::FolderMode::kCreateIfMissing;
  HAPAX_TRY(std::unique_ptr<ports::Folder> folder, host::DiskFolder::open_folder(path, mode));
  auto side = std::make_unique<FolderSide>(std::move(folder));
  HAPAX_CHECK(side->begin(role));
  return std::unique_ptr<CopySide>(std::move(side));
}

Result<std::unique_ptr<CopySide>> tables_side(const StorePlace& place, CopyRole role,
                                              std::uint32_t segment_bytes) {
  auto side = std::make_unique<TablesSide>(place);
  HAPAX_CHECK(side->begin(role, segment_bytes));
  return std::unique_ptr<CopySide>(std::move(side));
}

}  // namespace hapax::shared_postgres
