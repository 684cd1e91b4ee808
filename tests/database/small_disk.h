// A small disk that is only there for the thread that makes it, and for the programs that it
// starts: its mounts are its own.
#pragma once

#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include "host/temporary_folder_test.h"

namespace hapax::testing_disk {

class SmallDisk {
 public:
  explicit SmallDisk(const std::string& size) {
    if (::unshare(CLONE_NEWNS) != 0) return;
    if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return;
    const passwd* owner = ::geteuid() == 0 ? ::getpwnam("postgres") : nullptr;
    const std::string user = owner == nullptr ? "" : ",uid=" + std::to_string(owner->pw_uid);
    const std::string how = "size=" + size + ",mode=0777" + user;
    mounted_ = ::mount("tmpfs", folder_.path().c_str(), "tmpfs", 0, how.c_str()) == 0;
  }
  ~SmallDisk() {
    if (mounted_) ::umount2(folder_.path().c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  [[nodiscard]] bool mounted() const { return mounted_; }
  [[nodiscard]] std::string path() const { return folder_.text(); }

  void fill() const {
    const int file = ::open(filler().c_str(), O_CREAT | O_WRONLY, 0600);
    const std::string zeros(4'096, '\0');
    while (::write(file, zeros.data(), zeros.size()) > 0) {
    }
    ::close(file);
  }
  void free() const { std::filesystem::remove(filler()); }

 private:
  [[nodiscard]] std::string filler() const { return path() + "/filler"; }

  host::TemporaryFolder folder_;
  bool mounted_ = false;
};

// Runs it on a thread with a disk of its own; skips where nobody may mount one.
inline void with_small_disk(const std::string& size,
                            const std::function<void(const SmallDisk&)>& act) {
  bool mounted = false;
  std::thread([&] {
    const SmallDisk disk(size);
    mounted = disk.mounted();
    if (mounted) act(disk);
  }).join();
  if (!mounted) GTEST_SKIP() << "mounting a disk is not permitted here";
}

}  // namespace hapax::testing_disk
