#include <utility>

#include <hapax/inbox.h>

#include "tables/tables.h"

namespace hapax {

namespace {

using tables::check_filled;
using tables::ClaimKey;
using tables::MessageRow;
using tables::Taken;

// Claims of messages do not meet those of JobClaims.
std::string scope_of(const std::string& subscriber) { return "inbox/" + subscriber; }

Status check(const std::string& subscriber, const Message& message) {
  HAPAX_CHECK(check_filled("the subscriber", subscriber));
  return check_filled("the id of a message", message.id);
}

// Of a message that the inbox knows.
Verdict verdict_of(const Taken& known, std::string_view fingerprint) {
  if (known.taking == Taking::kConflict) {
    return Conflict{tables::to_fingerprint(known.stored), tables::to_fingerprint(fingerprint),
                    known.first_seen};
  }
  return DuplicateClaim{.result = StoredResult{.body = known.outcome},
                        .settled_at = known.first_seen,
                        .expires_at = Time::max()};
}

}  // namespace

std::string_view word_of(Taking taking) {
  switch (taking) {
    case Taking::kFresh:
      return "fresh";
    case Taking::kDuplicate:
      return "duplicate";
    case Taking::kConflict:
      return "conflict";
  }
  return "";
}

Result<Handled> Inbox::handle(const std::string& subscriber, const Message& message,
                              const Work& work) {
  HAPAX_CHECK(check(subscriber, message));
  const std::string fingerprint = tables::fingerprint_of(message.content);
  const MessageRow row{subscriber, message.id, fingerprint};
  Handled handled;
  HAPAX_CHECK(database_.with_transaction([&]() -> Status {
    HAPAX_TRY(Taken taken, database_.tables_->take(row, options_.retention));
    handled = {taken.taking, std::move(taken.outcome), taken.first_seen};
    if (handled.taking != Taking::kFresh) return Ok{};
    HAPAX_TRY(handled.outcome, work());
    if (handled.outcome.empty()) return Ok{};
    return database_.tables_->keep_outcome(row, handled.outcome);
  }));
  return handled;
}

Result<Accepted> Inbox::accept(const std::string& subscriber, std::span<const Message> messages) {
  if (!database_.in_transaction()) {
    return Error{Errc::kPreconditionFailed,
                 "accept outside of a transaction: messages commit together with their effects; "
                 "begin one, or use Database::with_transaction"};
  }
  std::vector<std::string> fingerprints;
  std::vector<MessageRow> rows;
  fingerprints.reserve(messages.size());
  for (const Message& message : messages) {
    HAPAX_CHECK(check(subscriber, message));
    fingerprints.push_back(tables::fingerprint_of(message.content));
    rows.push_back({subscriber, message.id, fingerprints.back()});
  }
  Accepted accepted;
  if (rows.empty()) return accepted;
  HAPAX_TRY(const std::vector<Taking> takings, database_.tables_->accept(rows, options_.retention));
  for (std::size_t i = 0; i < takings.size(); ++i) {
    if (takings[i] == Taking::kFresh) accepted.fresh.push_back(i);
    if (takings[i] == Taking::kConflict) accepted.conflicts.push_back(i);
  }
  return accepted;
}

Result<Verdict> Inbox::begin(const std::string& subscriber, const Message& message,
                             const std::string& owner, Duration lease) {
  HAPAX_CHECK(check(subscriber, message));
  HAPAX_CHECK(tables::check_lease(lease));
  const std::string fingerprint = tables::fingerprint_of(message.content);
  const std::string scope = scope_of(subscriber);
  const MessageRow row{subscriber, message.id, fingerprint};
  // O3: the inbox is looked at after the claim is taken. Whoever finishes gives up the claim and
  // records the id in one transaction, so one of the two is seen.
  HAPAX_TRY(const Verdict claimed,
            database_.tables_->claim(ClaimKey{scope, message.id}, {owner, lease, fingerprint}));
  const auto* mine = std::get_if<Claimed>(&claimed);
  if (mine == nullptr) return claimed;
  HAPAX_TRY(const std::optional<Taken> known, database_.tables_->find(row));
  if (!known) return claimed;
  HAPAX_CHECK(database_.tables_->drop(ClaimKey{scope, message.id}, mine->fence));
  return verdict_of(*known, fingerprint);
}

Result<Verdict> Inbox::renew(const std::string& subscriber, const Message& message, Fence fence,
                             Duration lease) {
  HAPAX_CHECK(check(subscriber, message));
  HAPAX_CHECK(tables::check_lease(lease));
  const std::string scope = scope_of(subscriber);
  return database_.tables_->renew(ClaimKey{scope, message.id}, fence, lease);
}

Result<Verdict> Inbox::finish(const std::string& subscriber, const Message& message, Fence fence,
                              const Work& work) {
  HAPAX_CHECK(check(subscriber, message));
  const std::string fingerprint = tables::fingerprint_of(message.content);
  const std::string scope = scope_of(subscriber);
  const MessageRow row{subscriber, message.id, fingerprint};
  Verdict verdict = Done{};
  HAPAX_CHECK(database_.with_transaction([&]() -> Status {
    HAPAX_TRY(verdict, database_.tables_->drop(ClaimKey{scope, message.id}, fence));
    if (!std::holds_alternative<Done>(verdict)) return Ok{};
    HAPAX_TRY(const Taken taken, database_.tables_->take(row, options_.retention));
    if (taken.taking != Taking::kFresh) {  // By handle or accept, which know no claims.
      verdict = verdict_of(taken, fingerprint);
      return Ok{};
    }
    HAPAX_TRY(const std::string outcome, work());
    if (outcome.empty()) return Ok{};
    return database_.tables_->keep_outcome(row, outcome);
  }));
  return verdict;
}

Result<Verdict> Inbox::fail(const std::string& subscriber, const Message& message, Fence fence,
                            const std::string& reason) {
  HAPAX_CHECK(check(subscriber, message));
  const std::string scope = scope_of(subscriber);
  return database_.tables_->settle(ClaimKey{scope, message.id}, fence,
                                   {JobStatus::kFailed, {}, reason, tables::kFailedRetention});
}

Result<std::uint64_t> Inbox::forget_expired(std::uint32_t most) {
  return database_.tables_->forget_expired(most);
}

Result<std::optional<std::string>> Inbox::retain(const std::string& subscriber, Window retention,
                                                 const std::string& behind, std::uint32_t most) {
  HAPAX_CHECK(check_filled("the subscriber", subscriber));
  return database_.tables_->retain({tables::Retained::kInbox, subscriber}, retention, behind, most);
}

}  // namespace hapax
