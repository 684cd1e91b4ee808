#include "access/left_out.h"

#include <utility>

namespace hapax::access {

namespace {

Result<Verdict> with_result(Store& store, LeftOut& it) {
  HAPAX_TRY(std::optional<ClaimStatus> found, store.find_claim(it.place, it.key));
  auto& claim = std::get<DuplicateClaim>(it.verdict);
  claim.left_out = false;
  // Another fence is that of a later claim of the same key.
  if (found && found->fence == claim.fence) claim.result = std::move(found->result);
  return std::move(it.verdict);
}

Result<Verdict> with_record(Store& store, LeftOut& it) {
  auto& received = std::get<Received>(it.verdict);
  Record& record = received.deliveries.front().record;
  received.left_out = false;
  Result<Records> found = store.read({.stream = it.place, .from = record.sequence, .max = 1});
  if (!found && found.error().code == Errc::kNotFound) return std::move(it.verdict);
  if (!found) return std::move(found).error();
  // One that was appended later belongs to another stream of the same name.
  for (Record& one : found->records) {
    if (one.sequence == record.sequence && one.time <= it.when) record = std::move(one);
  }
  return std::move(it.verdict);
}

}  // namespace

bool lacks_something(const Verdict& verdict) {
  if (const auto* claim = std::get_if<DuplicateClaim>(&verdict)) return claim->left_out;
  const auto* received = std::get_if<Received>(&verdict);
  return received != nullptr && received->left_out;
}

LeftOut::LeftOut(const Op& op, Verdict answer, Time decided)
    : verdict(std::move(answer)), when(decided) {
  if (const auto* claim = std::get_if<Claim>(&op)) {
    place = claim->scope;
    key = claim->key;
  } else {
    place = std::get<Receive>(op).stream;
  }
}

Result<Verdict> read_left_out(Store& store, LeftOut it) {
  return std::holds_alternative<Received>(it.verdict) ? with_record(store, it)
                                                      : with_result(store, it);
}

}  // namespace hapax::access
