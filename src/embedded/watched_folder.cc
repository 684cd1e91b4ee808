#include "embedded/watched_folder.h"

#include <chrono>
#include <utility>

namespace hapax::embedded {

namespace {

constexpr std::string_view kSegmentPrefix = "journal-";

using OnSynced = std::function<void(const Synced&)>;

class WatchedFile final : public ports::File {
 public:
  WatchedFile(std::unique_ptr<ports::File> file, const OnSynced& tell)
      : file_(std::move(file)), tell_(tell) {}

  Result<std::size_t> write_at(std::uint64_t offset, std::string_view bytes) override {
    auto written = file_->write_at(offset, bytes);
    if (written) unsynced_ += *written;
    return written;
  }
  Result<std::size_t> read_at(std::uint64_t offset, std::span<char> into) const override {
    return file_->read_at(offset, into);
  }
  Status sync() override {
    const auto before = std::chrono::steady_clock::now();
    Status done = file_->sync();
    if (done) tell_({std::chrono::steady_clock::now() - before, std::exchange(unsynced_, 0)});
    return done;
  }
  Status truncate(std::uint64_t size) override { return file_->truncate(size); }
  [[nodiscard]] Result<std::uint64_t> size() const override { return file_->size(); }
  Status reserve(std::uint64_t size) override { return file_->reserve(size); }

 private:
  const std::unique_ptr<ports::File> file_;
  const OnSynced& tell_;
  std::uint64_t unsynced_ = 0;
};

class WatchedFolder final : public ports::Folder {
 public:
  WatchedFolder(std::unique_ptr<ports::Folder> folder, OnSynced tell)
      : folder_(std::move(folder)), tell_(std::move(tell)) {}

  Result<std::unique_ptr<ports::File>> open(std::string_view name, ports::OpenMode mode) override {
    HAPAX_TRY(std::unique_ptr<ports::File> file, folder_->open(name, mode));
    if (mode == ports::OpenMode::kRead || !name.starts_with(kSegmentPrefix)) return file;
    return std::unique_ptr<ports::File>(std::make_unique<WatchedFile>(std::move(file), tell_));
  }
  Status rename(std::string_view from, std::string_view to) override {
    return folder_->rename(from, to);
  }
  Status remove(std::string_view name) override { return folder_->remove(name); }
  Status sync() override { return folder_->sync(); }
  Result<std::vector<std::string>> list() override { return folder_->list(); }
  Result<std::unique_ptr<ports::Lock>> lock(std::string_view name) override {
    return folder_->lock(name);
  }
  [[nodiscard]] std::string describe(std::string_view name) const override {
    return folder_->describe(name);
  }

 private:
  const std::unique_ptr<ports::Folder> folder_;
  const OnSynced tell_;
};

}  // namespace

std::unique_ptr<ports::Folder> watch_syncs(std::unique_ptr<ports::Folder> folder,
                                           std::function<void(const Synced&)> tell) {
  return std::make_unique<WatchedFolder>(std::move(folder), std::move(tell));
}

}  // namespace hapax::embedded
