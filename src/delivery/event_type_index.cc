#include "delivery/event_type_index.h"

#include <algorithm>

namespace hapax::delivery {

EventTypeIndex::EventTypeIndex(const std::vector<EndpointSettings>& endpoints) {
  for (std::size_t place = 0; place < endpoints.size(); ++place) {
    const std::vector<std::string>& patterns = endpoints[place].event_types;
    if (patterns.empty()) of_all_.push_back(place);
    for (const std::string& pattern : patterns) {
      const bool open = pattern.ends_with('*');
      Table& table = open ? of_prefix_ : of_type_;
      table[pattern.substr(0, pattern.size() - (open ? 1 : 0))].push_back(place);
    }
  }
}

std::vector<std::size_t> EventTypeIndex::takers_of(std::string_view event_type) const {
  Places takers = of_all_;
  const auto add = [&](const Table& table, std::string_view text) {
    const auto found = table.find(text);
    if (found == table.end()) return;
    takers.insert(takers.end(), found->second.begin(), found->second.end());
  };
  add(of_type_, event_type);
  if (!of_prefix_.empty()) {
    for (std::size_t size = 0; size <= event_type.size(); ++size) {
      add(of_prefix_, event_type.substr(0, size));
    }
  }
  std::sort(takers.begin(), takers.end());
  takers.erase(std::unique(takers.begin(), takers.end()), takers.end());
  return takers;
}

}  // namespace hapax::delivery
