// Hashes everything a commit needs hashed, before the state is touched: it runs on the callers'
// threads, in parallel.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include <hapax/ops.h>

#include "core/commit.h"
#include "digest/hash.h"

namespace hapax::engine {

struct Prepared {
  Commit commit;
  std::vector<core::OpHashes> hashes;
  base::Hash128 id;
  Fingerprint content;
  std::size_t bytes = 0;  // upper bound of what the commit adds to a batch

  [[nodiscard]] core::CommitRequest request() const { return {commit, hashes, id, content}; }
};

// Refuses what no state could accept: too many operations, too many bytes, a bad id.
[[nodiscard]] Result<Prepared> prepare(const Commit& commit, const digest::HashKey& key);

[[nodiscard]] base::Hash128 claim_hash(const digest::HashKey& key, std::string_view scope,
                                       std::string_view claim_key);
[[nodiscard]] base::Hash128 id_hash(const digest::HashKey& key, std::string_view id);
[[nodiscard]] base::Hash128 register_hash(const digest::HashKey& key, std::string_view name);
[[nodiscard]] core::GroupHash group_hash(const digest::HashKey& key,
                                         std::optional<std::string_view> group);

}  // namespace hapax::engine
