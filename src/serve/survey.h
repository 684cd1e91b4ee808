// Figures of the store, taken by the main thread now and then: whoever asks for them waits for
// nobody, and asking often costs nothing.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <hapax/store.h>

#include "metrics/near_misses.h"

namespace hapax::serve {

struct Survey {
  Statistics store;
  std::vector<StreamStats> streams;  // names as the store knows them
  std::vector<TenantUse> tenants;

  // Of the streams whose ids are forgotten some day.
  [[nodiscard]] metrics::NearMisses::Windows windows() const;
};

[[nodiscard]] Result<Survey> take_survey(Store& store);

class SurveyBoard {
 public:
  void put(Survey survey) {
    auto fresh = std::make_shared<const Survey>(std::move(survey));
    const std::lock_guard lock(mutex_);
    latest_ = std::move(fresh);
  }
  [[nodiscard]] std::shared_ptr<const Survey> latest() const {
    const std::lock_guard lock(mutex_);
    return latest_;
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const Survey> latest_ = std::make_shared<const Survey>();  // guarded by mutex_
};

}  // namespace hapax::serve
