#include "delivery/event_type_index.h"

#include <gtest/gtest.h>

namespace hapax::delivery {
namespace {

TEST(EventTypeIndex, SaysWhatEachEndpointSaysOfItself) {
  std::vector<EndpointSettings> endpoints;
  const std::vector<std::vector<std::string>> patterns = {{},
                                                          {"Order"},
                                                          {"Order*", "OrderPaid"},
                                                          {"*"},
                                                          {"Invoice", "Order*"},
                                                          {"OrderPai*"},
                                                          {""},
                                                          {"Order", "Order"},
                                                          {"O*", "Or*"}};
  for (const auto& of_one : patterns) {
    EndpointSettings endpoint{.name = "e", .target = StreamTarget{"s"}, .event_types = of_one};
    endpoints.push_back(std::move(endpoint));
  }
  const EventTypeIndex index(endpoints);
  for (const std::string_view type : {"", "O", "Order", "OrderPaid", "Invoice", "order", "Orde"}) {
    std::vector<std::size_t> expected;
    for (std::size_t i = 0; i < endpoints.size(); ++i) {
      if (endpoints[i].takes(type)) expected.push_back(i);
    }
    EXPECT_EQ(index.takers_of(type), expected) << type;
  }
}

}  // namespace
}  // namespace hapax::delivery
