// What secrets stand for. Values are never told.
#pragma once

#include <string>

#include <hapax/result.h>

#include "delivery/endpoint_settings.h"
#include "delivery/workflow.h"
#include "workflows/secrets_book.h"

namespace hapax::workflows {

// Whose references are looked up.
struct SecretScope {
  // U2: what came over the API reads neither the environment nor files of the server.
  delivery::DeclaredIn declared_in = delivery::DeclaredIn::kFile;
  SecretBook* stored = nullptr;  // of the workflow's tenant; null: none are stored
};

// kPreconditionFailed with the reference, not its value: there is no such variable or file; or as
// SecretBook::value_of(). A line break at the end of a file is not part of the secret.
[[nodiscard]] Result<std::string> reveal(const delivery::SecretText& text,
                                         const SecretScope& scope = {});

}  // namespace hapax::workflows
