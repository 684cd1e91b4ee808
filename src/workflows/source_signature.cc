#include "workflows/source_signature.h"

#include <vector>

#include "base/words.h"
#include "workflows/secrets.h"

namespace hapax::workflows {

namespace {

constexpr std::string_view kWhere = "source.signature";

}  // namespace

Result<SharedVerifier> make_verifier(const delivery::Workflow& workflow) {
  if (workflow.source_keys.empty()) return SharedVerifier();
  std::vector<std::string> keys;
  for (const delivery::SecretText& key : workflow.source_keys) {
    auto value = reveal(key, {.declared_in = workflow.declared_in});
    if (!value) return std::move(value).error().within(kWhere);
    keys.push_back(*std::move(value));
  }
  auto verifier = EventVerifier::make(keys);
  if (!verifier) return std::move(verifier).error().within(kWhere);
  return SharedVerifier(std::make_shared<const EventVerifier>(*std::move(verifier)));
}

bool is_signature_header(std::string_view name) {
  return name.size() == kEventSignatureHeader.size() && base::lower(name) == kEventSignatureHeader;
}

Status check_signature(const SharedVerifier& verifier, const SignedEvent& event,
                       std::span<const std::pair<std::string, std::string>> headers) {
  if (!verifier) return Ok{};
  std::string_view signatures;
  for (const auto& [name, value] : headers) {
    if (signatures.empty() && is_signature_header(name)) signatures = value;
  }
  const auto fault = verifier->fault_of(event, signatures);
  if (!fault) return Ok{};
  return Error{Errc::kInvalidArgument, std::string(*fault)};
}

}  // namespace hapax::workflows
