// What a commit of several commands is answered.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <hapax/result.h>
#include <hapax/verdicts.h>

#include "resp/reply_queue.h"

namespace hapax::resp {

// One command of it: operations, or one that is none, with its words and what it is answered.
struct CommitPart {
  Say say = nullptr;
  std::size_t ops = 1;
  std::vector<std::string> words{};
  std::string reply{};

  [[nodiscard]] bool is_op() const { return say != nullptr; }
};

enum class CommitShape : std::uint8_t {
  kOne,    // the reply of the only command
  kArray,  // of the replies of all
  kWhole,  // committed, repeated, time_ms and all verdicts, whatever became of it
};

void reply_commit(Replies& replies, const Result<Answer>& answer,
                  std::span<const CommitPart> commands, CommitShape shape);

}  // namespace hapax::resp
