#include "serve/stored_secrets.h"

#include <utility>

#include "delivery/endpoint_settings.h"
#include "wire/json_text.h"
#include "workflows/secrets.h"

namespace hapax::serve {

Result<std::optional<workflows::SecretKeys>> secret_keys_of(const std::string& reference) {
  if (reference.empty()) return std::optional<workflows::SecretKeys>();
  HAPAX_TRY(const auto text, delivery::SecretText::parse(reference));
  const auto revealed = workflows::reveal(text);
  if (!revealed) return Error(revealed.error()).within("server.secrets_key");
  auto keys = workflows::SecretKeys::parse(*revealed);
  if (!keys) return std::move(keys).error().within("server.secrets_key");
  return std::optional(*std::move(keys));
}

namespace {

void tell(wire::JsonObject& out, const workflows::SecretName& secret) {
  out.add("name", secret.name).add("changed_ms", to_ms(secret.changed));
}

}  // namespace

Result<std::string> StoredSecrets::list(std::string_view tenant) {
  HAPAX_TRY(const workflows::SecretList list, vault_.list(tenant));
  return wire::JsonObject().list("secrets", list.names, tell).text();
}

Result<std::string> StoredSecrets::put(std::string_view tenant, std::string_view name,
                                       std::string_view value) {
  HAPAX_TRY(const workflows::SecretName made, vault_.put(tenant, name, value));
  wire::JsonObject out;
  tell(out, made);
  return out.text();
}

Status StoredSecrets::remove(std::string_view tenant, std::string_view name) {
  return vault_.remove(tenant, name);
}

}  // namespace hapax::serve
