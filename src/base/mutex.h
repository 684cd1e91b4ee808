// A mutex that clang's thread-safety analysis follows: what is declared HAPAX_GUARDED_BY(mutex_)
// can only be touched where the compiler sees that mutex_ is held. Other compilers see a plain
// mutex. A predicate that is waited for is analysed on its own: it says HAPAX_REQUIRES(mutex_)
// itself.
#pragma once

#include <condition_variable>
#include <mutex>
#include <utility>

#if defined(__clang__)
#define HAPAX_THREAD_ANNOTATION(what) __attribute__((what))
#else
#define HAPAX_THREAD_ANNOTATION(what)
#endif

// Of a member: read and written only while the mutex is held.
#define HAPAX_GUARDED_BY(mutex) HAPAX_THREAD_ANNOTATION(guarded_by(mutex))
// Of a function: called only while the mutex is held, which it is again when the function returns.
#define HAPAX_REQUIRES(mutex) HAPAX_THREAD_ANNOTATION(requires_capability(mutex))

namespace hapax::base {

class HAPAX_THREAD_ANNOTATION(capability("mutex")) Mutex {
 public:
  void lock() HAPAX_THREAD_ANNOTATION(acquire_capability()) { mutex_.lock(); }
  void unlock() HAPAX_THREAD_ANNOTATION(release_capability()) { mutex_.unlock(); }

 private:
  friend class MutexLock;
  std::mutex mutex_;
};

// Holds a mutex while it lives, but for the time between unlock() and lock().
class HAPAX_THREAD_ANNOTATION(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) HAPAX_THREAD_ANNOTATION(acquire_capability(mutex))
      : lock_(mutex.mutex_) {}
  ~MutexLock() HAPAX_THREAD_ANNOTATION(release_capability()) = default;
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void lock() HAPAX_THREAD_ANNOTATION(acquire_capability()) { lock_.lock(); }
  void unlock() HAPAX_THREAD_ANNOTATION(release_capability()) { lock_.unlock(); }

  // The mutex is free while these wait.
  template <class Holds>
  void wait(std::condition_variable& condition, Holds holds) {
    condition.wait(lock_, std::move(holds));
  }
  template <class Span>
  std::cv_status wait_for(std::condition_variable& condition, Span span) {
    return condition.wait_for(lock_, span);
  }
  template <class Span, class Holds>
  bool wait_for(std::condition_variable& condition, Span span, Holds holds) {
    return condition.wait_for(lock_, span, std::move(holds));
  }

 private:
  std::unique_lock<std::mutex> lock_;
};

}  // namespace hapax::base
