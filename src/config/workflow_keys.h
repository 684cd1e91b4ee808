// The keys of a workflow, and of the terms of delivery that all workflows share.
#pragma once

#include "config/keys.h"
#include "config/written_workflow.h"

namespace hapax::config {

void describe_delivery(Keys& keys, WrittenDelivery& delivery);
// One place that records, or alerts, go to.
void describe_endpoint(Keys& keys, WrittenEndpoint& endpoint);
void describe_workflow(Keys& keys, WrittenWorkflow& workflow);

}  // namespace hapax::config
