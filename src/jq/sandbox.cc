#include "jq/sandbox.h"

#include <csignal>
#include <cstring>
#include <memory>

#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/format.h"

namespace hapax::jq {

namespace {

// No worker should live so long. If the pool's own watch fails, the kernel ends the worker here.
constexpr rlim_t kCpuSecondsMax = 600;
constexpr rlim_t kStackMax = rlim_t{8} << 20;

Error refused(std::string_view what, int number) {
  return {Errc::kUnavailable, base::format("{}: {}", what, std::strerror(number))};
}

Status limit(std::string_view what, __rlimit_resource resource, rlim_t value) {
  const rlimit both{.rlim_cur = value, .rlim_max = value};
  if (::setrlimit(resource, &both) != 0) return refused(what, errno);
  return Ok{};
}

Status set_limits(std::size_t memory_max) {
  if (!kSanitized) HAPAX_CHECK(limit("RLIMIT_DATA", RLIMIT_DATA, memory_max));
  HAPAX_CHECK(limit("RLIMIT_STACK", RLIMIT_STACK, kStackMax));
  HAPAX_CHECK(limit("RLIMIT_CPU", RLIMIT_CPU, kCpuSecondsMax));
  HAPAX_CHECK(limit("RLIMIT_CORE", RLIMIT_CORE, 0));
  HAPAX_CHECK(limit("RLIMIT_FSIZE", RLIMIT_FSIZE, 0));
  return limit("RLIMIT_NOFILE", RLIMIT_NOFILE, 0);
}

Status set_process() {
  // The pool's thread ends with its process; a worker must not outlive it.
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return refused("PR_SET_PDEATHSIG", errno);
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return refused("PR_SET_NO_NEW_PRIVS", errno);
  if (::prctl(PR_SET_DUMPABLE, 0) != 0) return refused("PR_SET_DUMPABLE", errno);
  if (::close_range(3, ~0U, 0) != 0) return refused("close_range", errno);
  return Ok{};
}

class Filter {
 public:
  Filter() : context_(::seccomp_init(SCMP_ACT_KILL_PROCESS)) {}
  ~Filter() {
    if (context_ != nullptr) ::seccomp_release(context_);
  }
  Filter(const Filter&) = delete;
  Filter& operator=(const Filter&) = delete;

  template <class... Conditions>
  void allow(int call, Conditions... conditions) {
    if (failed_ != 0 || context_ == nullptr) return;
    failed_ = ::seccomp_rule_add(context_, SCMP_ACT_ALLOW, call,
                                 static_cast<unsigned>(sizeof...(conditions)), conditions...);
  }
  Status load() {
    if (context_ == nullptr) return Error{Errc::kUnavailable, "seccomp: no memory for a filter"};
    if (failed_ == 0) failed_ = ::seccomp_load(context_);
    if (failed_ != 0) return refused("seccomp", -failed_);
    return Ok{};
  }

 private:
  scmp_filter_ctx context_;
  int failed_ = 0;
};

constexpr scmp_arg_cmp argument(unsigned index, scmp_compare how, scmp_datum_t a,
                                scmp_datum_t b = 0) {
  return {index, how, a, b};
}

void allow_memory(Filter& filter) {
  const auto not_executable = argument(2, SCMP_CMP_MASKED_EQ, PROT_EXEC, 0);
  const auto of_no_file = argument(3, SCMP_CMP_MASKED_EQ, MAP_ANONYMOUS, MAP_ANONYMOUS);
  filter.allow(SCMP_SYS(mmap), not_executable, of_no_file);
  filter.allow(SCMP_SYS(mprotect), not_executable);
  filter.allow(SCMP_SYS(munmap));
  filter.allow(SCMP_SYS(mremap));
  filter.allow(SCMP_SYS(madvise));
  filter.allow(SCMP_SYS(brk));
}

Status install_filter() {
  Filter filter;
  filter.allow(SCMP_SYS(read), argument(0, SCMP_CMP_EQ, STDIN_FILENO));
  filter.allow(SCMP_SYS(write), argument(0, SCMP_CMP_EQ, STDOUT_FILENO));
  allow_memory(filter);
  filter.allow(SCMP_SYS(futex));
  filter.allow(SCMP_SYS(clock_gettime));  // Where the vDSO does not answer.
  filter.allow(SCMP_SYS(exit_group));
  if (kSanitized) {  // Their runtimes lock, yield and look at their own threads.
    filter.allow(SCMP_SYS(sched_yield));
    filter.allow(SCMP_SYS(getpid));
    filter.allow(SCMP_SYS(gettid));
    filter.allow(SCMP_SYS(rt_sigprocmask));
    filter.allow(SCMP_SYS(sigaltstack));
  }
  return filter.load();
}

}  // namespace

Status lock_in(std::size_t memory_max) {
  HAPAX_CHECK(set_process());
  HAPAX_CHECK(set_limits(memory_max));
  return install_filter();
}

}  // namespace hapax::jq
