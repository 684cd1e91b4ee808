#include "rest/openapi.h"

#include <set>
#include <variant>

#include <gtest/gtest.h>

#include "rest/answer_samples.h"
#include "wire/strict_json.h"

namespace hapax::rest {
namespace {

TEST(OpenApi, KnowsEveryVerdict) {
  std::set<std::size_t> kinds;
  for (const auto& samples : verdict_samples()) {
    for (const Verdict& sample : samples) EXPECT_EQ(sample.index(), samples.front().index());
    kinds.insert(samples.front().index());
  }
  EXPECT_EQ(kinds.size(), std::variant_size_v<Verdict>);
}

TEST(OpenApi, DescribesRoutesThatAreAddedLater) {
  Router router;
  add_description_routes(router, wire::Callers::kAnybody);
  router.add({"GET", "/later/{name}", [](const SharedCall&) {}, "Later", ""});
  const std::string text = openapi_document(router, wire::Callers::kAnybody);
  EXPECT_NE(text.find("\"/later/{name}\""), std::string::npos);
  EXPECT_EQ(text.front(), '{');
}

}  // namespace
}  // namespace hapax::rest
