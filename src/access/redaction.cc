#include "access/redaction.h"

#include <utility>

#include "base/place_failure.h"

namespace hapax::access {

namespace {

std::string_view sentence(Errc code) {
  switch (code) {
    case Errc::kNoSpace:
      return "the store has no space left; nothing was written. Reading, trimming and deleting go "
             "on";
    case Errc::kOutcomeUnknown:
      return "it may have happened, but the store gave no answer that can be told. Look it up, or "
             "send it again with the same ids";
    case Errc::kIo:
      return "the store cannot read or write. The server ends, and recovers when it starts";
    case Errc::kCorruption:
      return "the store found damage and serves nothing more";
    case Errc::kFormatVersion:
      return "the store was written by another version";
    case Errc::kLocked:
      return "another process holds the store; nothing happened";
    default:
      return "the store cannot be used now; nothing happened. Try again";
  }
}

}  // namespace

Error Redaction::outside(Error error, std::string_view reference) const {
  if (!base::is_place_failure(error.code)) return error;
  const std::string told = reference.empty() ? new_reference_() : std::string(reference);
  note_(error, told);
  error.detail =
      std::string(sentence(error.code)) + " (details: log of the server, request " + told + ")";
  return error;
}

void Redaction::clean(Verdict& verdict, std::string_view reference) const {
  auto* const refused = std::get_if<Refused>(&verdict);
  if (refused != nullptr) refused->error = outside(std::move(refused->error), reference);
}

}  // namespace hapax::access
