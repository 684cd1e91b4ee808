// How every file of the store comes to be. L4: a name is used only when the file behind it was
// written completely and synced under another name, renamed, and the folder synced. So a file that
// bears its name is whole, and one whose content is not whole is damaged, not unfinished.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "ports/files.h"

namespace hapax::journal {

// Short writes continued.
Status write_all(ports::File& file, std::uint64_t offset, std::string_view bytes);

// A failed sync is kIo, for whatever reason it failed: what it should have stored may be lost
// although the file still shows it.
Status sync_file(ports::File& file);
Status sync_names(ports::Folder& folder);

class NewFile {
 public:
  static Result<NewFile> create(ports::Folder& folder, std::string name);

  // A refusal (kNoSpace) removes what was written: the space goes back, the NewFile is over.
  Status append(std::string_view bytes);
  // Bounds how much the last sync has to do, for the sake of others who sync the same disk.
  Status sync_so_far();
  // Syncs the file and gives it its name, replacing what bore it. The name is durable after the
  // folder's next sync_names().
  Result<std::unique_ptr<ports::File>> publish();

  [[nodiscard]] std::uint64_t size() const { return size_; }

 private:
  NewFile(ports::Folder& folder, std::string name, std::unique_ptr<ports::File> file)
      : folder_(&folder), name_(std::move(name)), file_(std::move(file)) {}
  [[nodiscard]] std::string unfinished_name() const;

  ports::Folder* folder_;
  std::string name_;
  std::unique_ptr<ports::File> file_;
  std::uint64_t size_ = 0;
};

// Creates, fills and publishes; the folder is not yet synced.
Result<std::unique_ptr<ports::File>> create_whole(ports::Folder& folder, std::string name,
                                                  std::string_view content);

}  // namespace hapax::journal
