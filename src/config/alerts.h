// Rules of alerts: from what was written to what is watched.
#pragma once

#include "config/config.h"
#include "config/finding.h"
#include "config/keys.h"
#include "config/written_alert.h"

namespace hapax::config {

void describe_alert(Keys& keys, WrittenAlert& alert);

// Makes config.alerts of config.written_alerts. Whatever is wrong is told at its place in the file.
void apply_alerts(Config& config, const Given& given, ConfigFindings& findings);

}  // namespace hapax::config
