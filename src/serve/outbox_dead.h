// Dead letters of the outbox of a database, which stay there: told and published again through a
// connection of their own.
#pragma once

#include <string>

#include <hapax/result.h>

#include "delivery/workflow.h"
#include "rest/record_directory.h"
#include "serve/outbox_survey.h"
#include "wire/json_text.h"

namespace hapax::serve {

// How they are reached without a server.
inline constexpr std::string_view kOutboxDeadCommand =
    "dead letters of the outbox are in its database: hapax relay --from DATABASE --dead-letters, "
    "and --redrive ID";

[[nodiscard]] bool reads_outbox(const delivery::Workflow& workflow);

// Adds those that fit to an answer as `database`, or why they cannot be told as `elsewhere`.
void tell_outbox_dead(const delivery::Workflow& workflow, const OpenOutboxOf& open,
                      const rest::DeadWanted& wanted, wire::JsonObject& out);
// Publishes those that fit again, at most so many as are wanted, or counts them.
[[nodiscard]] Result<std::string> replay_outbox_dead(const delivery::Workflow& workflow,
                                                     const OpenOutboxOf& open,
                                                     const rest::DeadWanted& wanted,
                                                     rest::DeadAct act);

}  // namespace hapax::serve
