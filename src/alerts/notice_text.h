// Notices and what is remembered of them, as JSON.
#pragma once

#include <string>
#include <string_view>

#include <hapax/result.h>

#include "alerts/rule.h"
#include "alerts/rule_watch.h"

namespace hapax::alerts {

// What an endpoint is sent: docs/reference/alerts.md.
[[nodiscard]] std::string json_of(const Rule& rule, const Notice& notice);
[[nodiscard]] std::string_view event_type_of(Notice::Kind kind);  // "alert.begins"
// For the log, in one line: "workflow erp: 3 dead letters, more than 0".
[[nodiscard]] std::string sentence_of(const Rule& rule, const Notice& notice);

// What the register of a rule holds.
[[nodiscard]] std::string text_of(const Firings& firings);
[[nodiscard]] Result<Firings> firings_of(std::string_view text);

}  // namespace hapax::alerts
