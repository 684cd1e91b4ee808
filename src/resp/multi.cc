#include "resp/multi.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/format.h"

namespace hapax::resp {

namespace {

constexpr std::size_t kBytesPerOp = 600;  // that the store adds to the limit of a commit

}  // namespace

Status Multi::add(CommitPart command, std::size_t bytes) {
  bytes_ += bytes + command.words.size() * sizeof(std::string);
  commands_.push_back(std::move(command));
  const std::size_t count = std::max(request_->ops.size(), commands_.size());
  if (count > limits::kCommitOpsMax) return too_many_ops(count);
  const std::size_t most = limits::kCommitBytesMax + request_->ops.size() * kBytesPerOp;
  if (bytes_ > most) {
    return Error{Errc::kLimitExceeded,
                 base::format("commit in bytes has {}; the most is {}", bytes_, most)};
  }
  if (broken_) forget();
  return Ok{};
}

void Multi::refuse() {
  broken_ = true;
  forget();
}

bool Multi::has_others_than_ops() const {
  return !std::all_of(commands_.begin(), commands_.end(),
                      [](const CommitPart& command) { return command.is_op(); });
}

void Multi::forget() {
  request_ = std::make_shared<wire::Request>();
  commands_.clear();
  bytes_ = 0;
}

Error too_many_ops(std::size_t ops) {
  return {Errc::kLimitExceeded,
          base::format("number of operations of a commit has {}; the most is {}", ops,
                       limits::kCommitOpsMax)};
}

}  // namespace hapax::resp
