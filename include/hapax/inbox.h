// Messages that take effect once, although they may arrive more often: their ids are stored in the
// transaction of the change they cause. See docs/guide/inbox.md.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hapax/database.h>
#include <hapax/limits.h>
#include <hapax/time.h>
#include <hapax/verdicts.h>

namespace hapax {

struct Message {
  std::string id;       // an empty one is refused (HX1001)
  std::string content;  // a known id with other content is a conflict
};

struct InboxOptions {
  // How long an id is remembered. Longer than any sender may repeat itself, or forever.
  Window retention = Window::forever();
};

enum class Taking : std::uint8_t { kFresh, kDuplicate, kConflict };
[[nodiscard]] std::string_view word_of(Taking taking);  // fresh, duplicate, conflict

struct Handled {
  Taking taking = Taking::kFresh;
  std::string outcome;  // of the work: now if fresh, then if a duplicate
  Time first_seen{};
};

// Places in the list of messages that was handed in. What is in neither list is a duplicate.
struct Accepted {
  std::vector<std::size_t> fresh;
  std::vector<std::size_t> conflicts;
};

// What is done with a message; answers its outcome, which duplicates are answered with.
using Work = std::function<Result<std::string>()>;

class Inbox {
 public:
  explicit Inbox(Database& database, InboxOptions options = {})
      : database_(database), options_(options) {}

  // Records the id and runs `work`, both in one transaction: the one that is open (as a savepoint
  // of it), or its own. A duplicate or a conflict does not run it. If `work` fails, the id is not
  // recorded. On SQLite `work` holds the file's write lock: keep it short, or use begin and finish.
  [[nodiscard]] Result<Handled> handle(const std::string& subscriber, const Message& message,
                                       const Work& work);

  // Records the new ones of the messages, in the open transaction (HX1012 without one).
  [[nodiscard]] Result<Accepted> accept(const std::string& subscriber,
                                        std::span<const Message> messages);

  // Slow work outside of any transaction: begin, work, finish. begin answers Claimed with a fence,
  // DuplicateClaim, InProgress or Conflict. finish runs `work`, the short part that stores what the
  // slow part found, in one transaction with the id, and answers Done; or Fenced, with nothing
  // done, if the lease ran out and somebody else began meanwhile.
  [[nodiscard]] Result<Verdict> begin(const std::string& subscriber, const Message& message,
                                      const std::string& owner,
                                      Duration lease = limits::kLeaseDefault);
  [[nodiscard]] Result<Verdict> renew(const std::string& subscriber, const Message& message,
                                      Fence fence, Duration lease = limits::kLeaseDefault);
  [[nodiscard]] Result<Verdict> finish(const std::string& subscriber, const Message& message,
                                       Fence fence, const Work& work);
  // Gives up: the message may be begun again at once.
  [[nodiscard]] Result<Verdict> fail(const std::string& subscriber, const Message& message,
                                     Fence fence, const std::string& reason);

  // Deletes ids and claims whose time is over, at most so many of each; answers how many. A running
  // relay and `hapax clean` do it; several callers do not get in each other's way.
  [[nodiscard]] Result<std::uint64_t> forget_expired(std::uint32_t most = 1'000);

  // Gives ids that the subscriber has taken another retention, from when they were received on:
  // also those that were to stay forever. Looks at `most` of them, behind the id `behind`; answers
  // the last one, with which the next call goes on, or nothing when there are no more.
  [[nodiscard]] Result<std::optional<std::string>> retain(const std::string& subscriber,
                                                          Window retention,
                                                          const std::string& behind = {},
                                                          std::uint32_t most = 1'000);

 private:
  Database& database_;
  InboxOptions options_;
};

}  // namespace hapax
