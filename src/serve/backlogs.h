// How far behind the workflows of a server are: what waits of each, for how long, and what was
// given up. Made of a survey of the store, so that whoever asks waits for nobody.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <hapax/store.h>
#include <hapax/time.h>

#include "base/mutex.h"
#include "delivery/workflow.h"
#include "serve/survey.h"

namespace hapax::serve {

struct Backlog {
  std::string tenant;
  std::string workflow;
  std::uint64_t records = 0;       // that are not acknowledged
  Duration behind{0};              // since the oldest of them was stored; 0: none waits
  std::uint64_t dead_letters = 0;  // that are kept
  bool known = true;               // false: nobody has said yet, and the rest means nothing
};

// One read of the store for each stream in which something waits, and no more than so many.
inline constexpr std::size_t kBacklogReadsMax = 2'000;

// Of the workflows that run and read streams, in their order. Beyond the limit of reads, and of a
// stream that cannot be read, `behind` is 0.
[[nodiscard]] std::vector<Backlog> take_backlogs(Store& store, const Survey& survey,
                                                 const std::vector<delivery::Workflow>& workflows);

class BacklogBoard {
 public:
  using All = std::vector<Backlog>;

  void put(All backlogs) {
    auto fresh = std::make_shared<const All>(std::move(backlogs));
    const base::MutexLock lock(mutex_);
    latest_ = std::move(fresh);
  }
  [[nodiscard]] std::shared_ptr<const All> latest() const {
    const base::MutexLock lock(mutex_);
    return latest_;
  }

 private:
  mutable base::Mutex mutex_;
  std::shared_ptr<const All> latest_ HAPAX_GUARDED_BY(mutex_) = std::make_shared<const All>();
};

}  // namespace hapax::serve
