// What every benchmark needs: a place for its data, and a way to give up.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <unistd.h>

namespace hapax::bench {

namespace fs = std::filesystem;

[[noreturn]] inline void fail(const std::string& why) {
  std::fprintf(stderr, "bench: %s\n", why.c_str());
  std::fflush(nullptr);
  std::_Exit(1);
}

// A folder of its own under the working folder, so that the disk measured is the one asked for.
class Folder {
 public:
  Folder() {
    static int count = 0;
    path_ = fs::current_path() /
            ("bench-data-" + std::to_string(::getpid()) + "-" + std::to_string(count++));
    fs::create_directories(path_);
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] std::string path(const std::string& name = "") const {
    return (name.empty() ? path_ : path_ / name).string();
  }

 private:
  fs::path path_;
};

}  // namespace hapax::bench
