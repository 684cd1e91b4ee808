// Which endpoints of a workflow take a record of an event type. Asked once for each output, of
// workflows with ten thousand endpoints too, so it does not look at each of them.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "delivery/endpoint_settings.h"

namespace hapax::delivery {

class EventTypeIndex {
 public:
  explicit EventTypeIndex(const std::vector<EndpointSettings>& endpoints);

  // Their places in the list, in its order, none twice.
  [[nodiscard]] std::vector<std::size_t> takers_of(std::string_view event_type) const;

 private:
  using Places = std::vector<std::size_t>;
  using Table = std::map<std::string, Places, std::less<>>;

  Places of_all_;    // they name no type
  Table of_type_;    // by the type
  Table of_prefix_;  // by what stands before the asterisk
};

}  // namespace hapax::delivery
