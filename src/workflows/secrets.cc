#include "workflows/secrets.h"

#include <cstdlib>
#include <variant>

#include "base/format.h"
#include "host/whole_file.h"

namespace hapax::workflows {

namespace {

using delivery::SecretReference;

Result<std::string> value_of(const SecretReference& reference, const SecretScope& scope) {
  const bool stored = reference.place == SecretReference::Place::kStored;
  if (!stored && scope.declared_in == delivery::DeclaredIn::kApi) {
    return Error{Errc::kForbidden,
                 "a workflow that was declared over the API may use ${secret:NAME} only"};
  }
  switch (reference.place) {
    case SecretReference::Place::kEnvironment: {
      const char* value = std::getenv(reference.name.c_str());
      if (value != nullptr) return std::string(value);
      return Error{Errc::kPreconditionFailed,
                   base::format("the environment has no variable {}", reference.name)};
    }
    case SecretReference::Place::kFile: {
      Result<std::string> content = host::read_file(reference.name);
      if (!content) return Error{Errc::kPreconditionFailed, content.error().text()};
      while (content->ends_with('\n') || content->ends_with('\r')) content->pop_back();
      return content;
    }
    case SecretReference::Place::kStored:
      if (scope.stored != nullptr) return scope.stored->value_of(reference.name);
      break;
  }
  return Error{
      Errc::kPreconditionFailed,
      base::format("secret {} is not known: this process keeps no secrets", reference.name)};
}

}  // namespace

Result<std::string> reveal(const delivery::SecretText& text, const SecretScope& scope) {
  std::string all;
  for (const auto& piece : text.pieces()) {
    if (const auto* clear = std::get_if<std::string>(&piece)) {
      all += *clear;
      continue;
    }
    HAPAX_TRY(const std::string value, value_of(std::get<SecretReference>(piece), scope));
    all += value;
  }
  return all;
}

}  // namespace hapax::workflows
