// Figures of the store, taken now and then on a thread of their own: whoever asks for them waits
// for nobody, and a store that answers slowly holds up neither signals nor the end of the process.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <hapax/store.h>

#include "base/mutex.h"
#include "metrics/near_misses.h"

namespace hapax::serve {

struct Survey {
  Statistics store;
  std::vector<StreamStats> streams;  // names as the store knows them
  std::vector<TenantUse> tenants;

  // Of the streams whose ids are forgotten some day.
  [[nodiscard]] metrics::NearMisses::Windows windows() const;
};

// That it holds, as its figures tell.
[[nodiscard]] std::uint64_t records_of(const StreamStats& stream);

// `go_on` is asked after each answer of the store; false ends it with what there is.
using GoOn = std::function<bool()>;
[[nodiscard]] Result<Survey> take_survey(Store& store, const GoOn& go_on);

class SurveyBoard {
 public:
  void put(Survey survey) {
    auto fresh = std::make_shared<const Survey>(std::move(survey));
    const base::MutexLock lock(mutex_);
    latest_ = std::move(fresh);
  }
  [[nodiscard]] std::shared_ptr<const Survey> latest() const {
    const base::MutexLock lock(mutex_);
    return latest_;
  }

 private:
  mutable base::Mutex mutex_;
  std::shared_ptr<const Survey> latest_ HAPAX_GUARDED_BY(mutex_) = std::make_shared<const Survey>();
};

// Looks at the store until it is stopped.
class Surveyor {
 public:
  struct Found {
    std::function<void(const Result<Statistics>&)> health;  // of each look
    std::function<void(Survey)> survey;
  };
  struct Every {
    std::chrono::milliseconds look{500};
    std::chrono::milliseconds survey{5'000};
  };
  Surveyor(Store& store, Found found, Every every);
  ~Surveyor() { stop(); }
  Surveyor(const Surveyor&) = delete;
  Surveyor& operator=(const Surveyor&) = delete;

  // Ends after the answer that it waits for.
  void stop();
  // Answers of the store since the start, errors included: while it grows, the store is alive.
  [[nodiscard]] std::uint64_t answers() const { return answers_; }

 private:
  void run();
  void look();
  void survey();
  [[nodiscard]] bool note_answer();

  Store& store_;
  const Found found_;
  const Every every_;
  std::atomic<std::uint64_t> answers_ = 0;
  base::Mutex mutex_;
  std::condition_variable wake_;
  bool stop_ HAPAX_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace hapax::serve
