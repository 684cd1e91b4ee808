#include "alerts/rule.h"

#include <algorithm>

namespace hapax::alerts {

bool Rule::watches(std::string_view of_tenant, std::string_view name) const {
  if (!tenant.empty() && of_tenant != tenant) return false;
  return names.empty() || std::any_of(names.begin(), names.end(), [&](std::string_view pattern) {
           if (!pattern.ends_with('*')) return pattern == name;
           return name.starts_with(pattern.substr(0, pattern.size() - 1));
         });
}

}  // namespace hapax::alerts
