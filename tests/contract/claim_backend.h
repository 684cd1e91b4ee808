// Whoever keeps claims, as the suite of claims sees it: a store, or the tables in an application's
// own database. The suite is one for all; what a backend does not have it says by name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include <hapax/hapax.h>

namespace hapax::contract {

// What a backend may lack, and still keep claims.
enum class Feature : std::uint8_t {
  kAnyBytes,     // scopes and keys of any bytes, not of text only
  kFullResults,  // a result with a status and headers, not a body only
  kTombstones,   // that it happened is known longer than its result
  kAbandoned,    // a claim that nobody settles is forgotten after its retention
  kCommitIds,    // a repeated commit gets the answer of the first one
  kCounts,       // how many claims are open or unknown, and how often a fence refused
};
struct Lack {
  Feature feature;
  const char* reason;
};

// When something happened, by the backend's own clock. A store says it exactly.
struct When {
  Time from{};
  Time to{};
  [[nodiscard]] bool holds(Time time) const { return from <= time && time <= to; }
  [[nodiscard]] When after(Duration span) const { return {from + span, to + span}; }
};

struct Counts {
  std::uint64_t open = 0;
  std::uint64_t unknown = 0;
  std::uint64_t fenced = 0;
};

class ClaimBackend {
 public:
  struct Told {
    Verdict verdict;  // an error is told as Refused
    When when{};
    bool repeated = false;  // of a commit id
  };
  enum class First : std::uint8_t { kSettle, kEffect };

  virtual ~ClaimBackend() = default;

  // Claim, Renew, Settle, Resolve or Forget.
  virtual Told run(const Op& op, std::optional<std::string_view> commit_id) = 0;
  // The settle and an effect beside it, in this order: both happen or neither does.
  virtual bool settle_with_effect(const Settle& settle, First first) = 0;
  virtual std::uint64_t effects() = 0;

  virtual std::optional<ClaimStatus> find(std::string_view scope, std::string_view key) = 0;
  virtual std::vector<std::string> audit() = 0;  // a JSON object for each act of a person
  virtual Counts counts() = 0;
  // What is told to be before this time is over.
  virtual Time now() = 0;
  // Enough traffic that the backend tidies up, where it does that by itself.
  virtual void churn() = 0;
};

struct ClaimBackendKind {
  std::string name;
  std::function<std::unique_ptr<ClaimBackend>(const std::filesystem::path& folder)> open;
  std::vector<Lack> lacks{};
};
inline void PrintTo(const ClaimBackendKind& kind, std::ostream* out) { *out << kind.name; }

}  // namespace hapax::contract
