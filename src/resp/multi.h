// Commands between MULTI and EXEC: they are kept and checked; EXEC makes one atomic commit of them.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include <hapax/ops.h>
#include <hapax/result.h>

#include "resp/commit_reply.h"
#include "wire/request.h"

namespace hapax::resp {

// One list of commands, from its MULTI on. A broken one is never carried out: it takes commands, so
// that the client may go on to its EXEC, and keeps none.
class Multi {
 public:
  Multi() { forget(); }

  // The request of what waits, alive until the next command is refused.
  [[nodiscard]] wire::Request& request() { return *request_; }
  [[nodiscard]] const wire::SharedRequest& shared() const { return request_; }

  // A command waits that took so many bytes to say. Its operations are in the request already. As
  // much may wait as makes one commit.
  [[nodiscard]] Status add(CommitPart command, std::size_t bytes);
  // It cannot be carried out any more; what waits is forgotten when the next command comes …
  void break_off() { broken_ = true; }
  // … or now.
  void refuse();
  [[nodiscard]] bool broken() const { return broken_; }

  // HX.COMMIT was said: the answer tells everything, and there are operations only.
  void tell_whole() { whole_ = true; }
  [[nodiscard]] bool whole() const { return whole_; }
  [[nodiscard]] bool has_others_than_ops() const;

  [[nodiscard]] std::vector<CommitPart>& commands() { return commands_; }

 private:
  void forget();

  wire::SharedRequest request_;
  std::vector<CommitPart> commands_;
  std::size_t bytes_ = 0;  // that they took to say
  bool broken_ = false;
  bool whole_ = false;
};

// A commit of more operations than there may be.
[[nodiscard]] Error too_many_ops(std::size_t ops);

}  // namespace hapax::resp
