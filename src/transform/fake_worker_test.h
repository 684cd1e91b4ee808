// A shell script that a pool starts in the place of hapax-jq.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace hapax::transform {

class FakeWorker {
 public:
  explicit FakeWorker(std::string_view script) {
    std::string pattern = std::filesystem::temp_directory_path() / "hapax-fake-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    std::ofstream(path()) << "#!/bin/sh\n" << script << "\n";
    std::filesystem::permissions(path(), std::filesystem::perms::owner_all);
  }
  ~FakeWorker() { std::filesystem::remove_all(folder_); }
  FakeWorker(const FakeWorker&) = delete;
  FakeWorker& operator=(const FakeWorker&) = delete;

  [[nodiscard]] std::string path() const { return folder_ / "worker"; }

 private:
  std::filesystem::path folder_;
};

}  // namespace hapax::transform
