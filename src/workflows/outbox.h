// An outbox of an application's database as the source of a workflow.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <hapax/result.h>

#include "delivery/lane_source.h"
#include "delivery/source.h"
#include "delivery/workflow.h"
#include "ports/clock.h"
#include "relay/open_outbox.h"
#include "workflows/source_signature.h"

namespace hapax::workflows {

struct OutboxPorts {
  relay::OpenOutbox open;
  ports::Clock& clock;
  std::string store_id;  // processes of one store share the work of a workflow
  std::string key;       // of this process, for what it holds
  SharedVerifier verifier{};
};

// The database is not asked before the first take. kPreconditionFailed: the reference to it is of
// nothing; kInvalidArgument: it is not the address of a database.
[[nodiscard]] Result<std::unique_ptr<delivery::Source>> make_outbox_source(
    const delivery::Workflow& workflow, const OutboxPorts& ports,
    std::function<bool(const delivery::Outgoing&)> wanted, delivery::LaneSource::Log log);

// Takes the rows of an outbox into the workflow's own stream of rows (rows_of()): a source whose
// records are ready to be stored there. Errors as above.
[[nodiscard]] Result<std::unique_ptr<delivery::Source>> make_row_source(
    const delivery::Workflow& workflow, const OutboxPorts& ports, delivery::LaneSource::Log log);

// The outbox, to be asked how it does and nothing else. Errors as above, and those of the database.
[[nodiscard]] Result<std::unique_ptr<relay::Source>> open_to_report(
    const delivery::Workflow& workflow, const OutboxPorts& ports);

}  // namespace hapax::workflows
