// The families of metrics that tell of deliveries: of workflows of a server, and of outboxes of a
// relay, for which the name of the outbox stands in the place of the workflow's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "metrics/page.h"
#include "serve/backlogs.h"
#include "serve/outbox_survey.h"
#include "workflows/delivery_rows.h"

namespace hapax::serve {

void add_deliveries(metrics::Page& page, const std::vector<workflows::DeliveryRow>& rows);
// Of one tenant, or of all.
void add_backlogs(metrics::Page& page, const BacklogBoard::All& backlogs,
                  const std::optional<std::string>& tenant);
void add_outboxes(metrics::Page& page, const std::vector<OutboxState>& outboxes);

}  // namespace hapax::serve
