// Carries out a commit: its operations in order, all or nothing or each on its own.
#pragma once

#include <span>
#include <variant>

#include <hapax/ops.h>
#include <hapax/verdicts.h>

#include "core/moment.h"
#include "core/turn.h"

namespace hapax::core {

// Hashes of one operation; which of them mean something depends on the operation.
struct OpHashes {
  base::Hash128 key;  // of the message id, of scope and key, or of a register's name
  Fingerprint content;
  GroupHash group = 0;
};

struct CommitRequest {
  const Commit& commit;
  std::span<const OpHashes> hashes;  // one per op
  base::Hash128 id;                  // of the commit's id, if it has one
  Fingerprint content;               // of all operations, if it has an id
};

// The commit was answered before; the first answer lies in the journal at `where`.
struct Repeat {
  base::Where where;
};

// An Error refuses the commit as a whole: nothing happened.
using Executed = std::variant<Answer, Repeat, Error>;

[[nodiscard]] Executed execute(Turn& turn, const CommitRequest& request);

// W6: until when registers stay is told as times of the wall clock.
void to_wall_times(Answer& answer, const Moment& moment);

// The answer of a commit as it is kept in the journal, to be told again: with the times of the wall
// clock that were told first. Records and results are not in it: they are looked up again.
void encode_answer(const Answer& answer, std::string& out);
[[nodiscard]] Result<Answer> decode_answer(std::string_view bytes);

// Operations that may wait in a transaction, with their hashes and, for each append, the stream
// that has its name now; 0 = none, as for all others.
[[nodiscard]] std::optional<Error> encode_staged(std::span<const Op> ops,
                                                 std::span<const OpHashes> hashes,
                                                 std::span<const StreamUid> streams,
                                                 std::string& out);
// How many they are, by their beginning.
[[nodiscard]] std::uint64_t staged_count(std::string_view bytes);
struct StagedOps {
  std::vector<Op> ops;  // views into the bytes they were decoded from
  std::vector<OpHashes> hashes;
  std::vector<StreamUid> streams;            // 0 = not known
  std::vector<std::vector<Header>> headers;  // what Append::headers refer to
};
[[nodiscard]] Result<StagedOps> decode_staged(std::string_view bytes);

}  // namespace hapax::core
