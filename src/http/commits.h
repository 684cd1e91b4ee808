// Bodies that become commits, and their answers.
#pragma once

#include <hapax/result.h>
#include <hapax/verdicts.h>

#include "front/desk.h"
#include "http/router.h"
#include "wire/request.h"

namespace hapax::http {

// The commit's id from Idempotency-Key, quoted or bare; refused if the body names another.
[[nodiscard]] Status give_id(const Request& http, wire::Request& request);

using Tell = void (*)(const SharedCall&, const Result<Answer>&);
void respond_one(const SharedCall& call, const Result<Answer>& answer);   // its verdict
void respond_list(const SharedCall& call, const Result<Answer>& answer);  // {"verdicts": […]}

void carry_out(front::Desk& desk, const SharedCall& call, Result<wire::SharedRequest> request,
               Tell tell = respond_one);

}  // namespace hapax::http
