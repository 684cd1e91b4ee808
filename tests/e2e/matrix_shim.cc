// Loaded into `hapax serve` by LD_PRELOAD, it makes the wall clock jump, and ends the process
// before or after a sync of a file. A test writes what it wants into a small file that both have
// mapped. Every call goes to the kernel directly, because a library that is loaded first may be
// called before it could look up the functions that it replaces.
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <ctime>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

namespace {

struct Control {
  std::atomic<std::int64_t> ahead_s;  // how far the wall clock is ahead of the real one
  std::atomic<std::int64_t> syncs;    // the process ends at this one, counted from 1; 0 = at none
  std::atomic<std::int64_t> after;    // 1 = when that sync is done, 0 = before it begins
};

Control* mapped() {
  const char* const path = std::getenv("FAULT_CONTROL");
  if (path == nullptr) return nullptr;
  const int file = ::open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return nullptr;
  void* const place = ::mmap(nullptr, sizeof(Control), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  return place == MAP_FAILED ? nullptr : static_cast<Control*>(place);
}

Control* control = nullptr;

[[gnu::constructor]] void begin() { control = mapped(); }

std::int64_t ahead() { return control == nullptr ? 0 : control->ahead_s.load(); }

int sync_at(long call, int file) {
  const bool last =
      control != nullptr && control->syncs.load() > 0 && control->syncs.fetch_sub(1) == 1;
  if (last && control->after.load() == 0) ::kill(::getpid(), SIGKILL);
  const auto done = static_cast<int>(::syscall(call, file));
  if (last) ::kill(::getpid(), SIGKILL);
  return done;
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* now) noexcept {
  const auto done = static_cast<int>(::syscall(SYS_clock_gettime, clock, now));
  if (done == 0 && clock == CLOCK_REALTIME) now->tv_sec += ahead();
  return done;
}

int gettimeofday(timeval* now, void* zone) noexcept {
  const auto done = static_cast<int>(::syscall(SYS_gettimeofday, now, zone));
  if (done == 0) now->tv_sec += ahead();
  return done;
}

time_t time(time_t* now) noexcept {
  timespec read{};
  ::clock_gettime(CLOCK_REALTIME, &read);
  if (now != nullptr) *now = read.tv_sec;
  return read.tv_sec;
}

int fdatasync(int file) { return sync_at(SYS_fdatasync, file); }

int fsync(int file) { return sync_at(SYS_fsync, file); }
}
