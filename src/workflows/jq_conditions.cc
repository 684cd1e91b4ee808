#include "workflows/jq_conditions.h"

#include <string_view>
#include <utility>

#include "workflows/jq_transform.h"

namespace hapax::workflows {

Result<std::unique_ptr<delivery::Transforming>> JqConditions::compile(const std::string& program) {
  transform::TransformPool* pool = nullptr;
  {
    const base::MutexLock lock(mutex_);
    if (!pool_) {
      HAPAX_TRY(pool_, transform::TransformPool::start({.workers = 1, .worker = {}}));
    }
    pool = pool_.get();
  }
  // A number that a double cannot hold is compared as the nearest one.
  auto made =
      JqTransform::make(*pool, {.jq = program, .numbers = delivery::TransformNumbers::kDouble});
  if (made) return std::unique_ptr<delivery::Transforming>(*std::move(made));
  Error error = std::move(made).error();
  constexpr std::string_view kKey = "transform.";
  if (error.detail.starts_with(kKey)) error.detail.erase(0, kKey.size());
  return error;
}

}  // namespace hapax::workflows
