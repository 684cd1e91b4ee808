// The real disk: one folder of the file system behind ports::Folder. It owns file descriptors and
// nothing else: no caching, no buffering, no retry except of interrupted calls, no opinion about
// what the bytes mean. It must never answer Ok for something the kernel did not say.
//
// Codes: a missing file is kNotFound; a full disk, quota or file-size limit (ulimit -f; needs
// SIGXFSZ ignored, or the signal ends the process first) is kNoSpace; everything else is kIo.
// A failed sync is always kIo, even for want of space: the pages may be gone already.
#pragma once

#include <filesystem>
#include <memory>

#include "host/descriptor.h"
#include "ports/files.h"

namespace hapax::host {

enum class FolderMode : std::uint8_t {
  kMustExist,
  // Makes the last part of the path only: a missing parent is more often an unmounted disk than a
  // wish for a new tree.
  kCreateIfMissing,
};

class DiskFolder final : public ports::Folder {
 public:
  static Result<std::unique_ptr<ports::Folder>> open_folder(const std::filesystem::path& path,
                                                            FolderMode mode);

  Result<std::unique_ptr<ports::File>> open(std::string_view name, ports::OpenMode mode) override;
  Status rename(std::string_view from, std::string_view to) override;
  Status remove(std::string_view name) override;
  Status sync() override;
  // Regular files only; a lock's file is one of them.
  Result<std::vector<std::string>> list() override;
  Result<std::unique_ptr<ports::Lock>> lock(std::string_view name) override;
  [[nodiscard]] std::string describe(std::string_view name) const override;

 private:
  DiskFolder(std::filesystem::path path, Descriptor folder)
      : path_(std::move(path)), folder_(std::move(folder)) {}

  std::filesystem::path path_;
  Descriptor folder_;
};

}  // namespace hapax::host
