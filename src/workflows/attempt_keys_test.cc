#include "workflows/attempt_keys.h"

#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <hapax/embedded.h>

#include "host/temporary_folder_test.h"
#include "workflows/staging.h"

namespace hapax::workflows {
namespace {

using delivery::Reshaped;
using testing::Contains;
using testing::IsEmpty;
using testing::SizeIs;

class AttemptKeys : public testing::Test {
 protected:
  AttemptKeys() {
    EmbeddedOptions options;
    options.log = [](const std::string&) {};
    store_ = open_embedded(folder_.path(), options).value();
    workflow_.source = delivery::FromStream{"orders"};
    workflow_.endpoints = {web("")};
  }
  static delivery::EndpointSettings web(std::string name) {
    const auto url = delivery::WebUrl::parse("https://erp.example/in").value();
    return {.name = std::move(name), .target = delivery::HttpTarget{.url = url}};
  }
  [[nodiscard]] Record append() {
    const Op ops[] = {CreateStream{"orders", {}},
                      Append{.stream = "orders", .payload = "{}", .id = "order-17"}};
    const auto answer = store_->commit({.ops = ops});
    EXPECT_TRUE(answer.ok());
    const auto found = store_->read({.stream = "orders"}).value();
    stream_uid_ = found.stream_uid;
    return found.records.front();
  }
  [[nodiscard]] std::set<std::string> found() {
    return delivery_keys_of(workflow_, "order-17", *store_).value();
  }

  host::TemporaryFolder folder_;
  std::unique_ptr<Store> store_;
  delivery::Workflow workflow_{.id = delivery::WorkflowId::parse("to-erp").value()};
  std::uint64_t stream_uid_ = 0;
};

TEST_F(AttemptKeys, AreThoseThatAreSent) {
  const Record record = append();
  workflow_.transform = delivery::TransformSettings{.jq = "."};
  workflow_.endpoints = {web("crm"), web("search")};
  const auto staged = compose_of(workflow_, store_->id())(
      record, stream_uid_, {Reshaped{.payload = "1"}, Reshaped{.payload = "2"}});
  ASSERT_THAT(*staged, SizeIs(4));
  for (const auto& each : *staged) EXPECT_THAT(found(), Contains(each.id));
}

TEST_F(AttemptKeys, OfOneEndpointIsOne) {
  const Record record = append();
  EXPECT_THAT(found(), SizeIs(1));
  const auto staged = compose_of(workflow_, store_->id())(record, stream_uid_, {Reshaped{}});
  EXPECT_THAT(found(), Contains(staged->front().id));
}

TEST_F(AttemptKeys, AreNoneOfWhatIsNotThere) {
  EXPECT_THAT(found(), IsEmpty());
  workflow_.source = delivery::FromOutbox{};
  EXPECT_THAT(found(), IsEmpty());
  EXPECT_EQ(attempted_stream_of(workflow_), std::nullopt);
}

}  // namespace
}  // namespace hapax::workflows
