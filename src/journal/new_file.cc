#include "journal/new_file.h"

#include "base/assert.h"
#include "base/mutant.h"
#include "journal/names.h"

namespace hapax::journal {
namespace {

Status remove_if_there(ports::Folder& folder, std::string_view name) {
  auto removed = folder.remove(name);
  if (!removed.ok() && removed.error().code == Errc::kNotFound) return Ok{};
  return removed;
}

}  // namespace

Status write_all(ports::File& file, std::uint64_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    HAPAX_TRY(const std::size_t written, file.write_at(offset, bytes));
    HAPAX_ASSERT(written > 0 && written <= bytes.size(), "a write makes progress");
    bytes.remove_prefix(written);
    offset += written;
  }
  return Ok{};
}

Status sync_file(ports::File& file) {
  auto synced = file.sync();
  if (synced.ok()) return synced;
  if (base::mutant(base::Mutant::kRetrySync)) return file.sync();
  return Error{Errc::kIo, std::move(synced).error().detail};
}

Status sync_names(ports::Folder& folder) {
  if (base::mutant(base::Mutant::kNoDirectorySync)) return Ok{};
  auto synced = folder.sync();
  if (synced.ok()) return synced;
  return Error{Errc::kIo, std::move(synced).error().detail};
}

Result<NewFile> NewFile::create(ports::Folder& folder, std::string name) {
  // What an earlier attempt left behind is nobody's: it never had the name.
  const std::string unfinished = name + std::string(kUnfinishedSuffix);
  HAPAX_CHECK(remove_if_there(folder, unfinished));
  HAPAX_TRY(auto file, folder.open(unfinished, ports::OpenMode::kCreate));
  return NewFile(folder, std::move(name), std::move(file));
}

Status NewFile::append(std::string_view bytes) {
  auto written = write_all(*file_, size_, bytes);
  if (written.ok()) {
    size_ += bytes.size();
    return written;
  }
  if (written.error().code == Errc::kNoSpace) {
    file_.reset();
    ignore(folder_->remove(unfinished_name()), "the next start removes it");
  }
  return written;
}

Status NewFile::sync_so_far() { return sync_file(*file_); }

Result<std::unique_ptr<ports::File>> NewFile::publish() {
  HAPAX_CHECK(sync_file(*file_));
  HAPAX_CHECK(folder_->rename(unfinished_name(), name_));
  return std::move(file_);
}

std::string NewFile::unfinished_name() const { return name_ + std::string(kUnfinishedSuffix); }

Result<std::unique_ptr<ports::File>> create_whole(ports::Folder& folder, std::string name,
                                                  std::string_view content) {
  HAPAX_TRY(NewFile file, NewFile::create(folder, std::move(name)));
  HAPAX_CHECK(file.append(content));
  return file.publish();
}

}  // namespace hapax::journal
