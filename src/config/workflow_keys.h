// The keys of a workflow, and of the terms of delivery that all workflows share.
#pragma once

#include "config/keys.h"
#include "config/written_workflow.h"

namespace hapax::config {

void describe_delivery(Keys& keys, WrittenDelivery& delivery);
void describe_workflow(Keys& keys, WrittenWorkflow& workflow);

}  // namespace hapax::config
