#include "access/audit.h"

#include <gtest/gtest.h>

#include "access/admission.h"
#include "access/entry.h"

namespace hapax::access {
namespace {

const Caller kAdmin{{"acme", "root", Rights::all()}};
const Caller kWorker{{"acme", "w", {Right::kProduce, Right::kConsume}}};

TEST(Audit, IsOfAdministrativeActsOfTenants) {
  EXPECT_TRUE(is_audited(kAdmin, DeleteStream{"s"}));
  EXPECT_TRUE(is_audited(kAdmin, Forget{}));
  EXPECT_FALSE(is_audited(kAdmin, Append{}));
  EXPECT_FALSE(is_audited(Caller{{"", "anybody", Rights::all()}}, DeleteStream{"s"}));
}

TEST(Audit, SaysWhoDidWhatToWhat) {
  EXPECT_EQ(audit_line(kAdmin, DeleteStream{"s"}),
            R"({"act":"delete_stream","subject":"s","actor":"root"})");
  const Forget forget{.scope = "pay", .key = "o\"1", .actor = "ann", .reason = "asked"};
  EXPECT_EQ(audit_line(kAdmin, forget),
            R"({"act":"forget","subject":"pay/o\"1","actor":"root","on_behalf_of":"ann",)"
            R"("reason":"asked"})");
  EXPECT_EQ(name_of(OpenProducer{}), "open_producer");
}

// A8: written by the server and read by administrators only.
TEST(Audit, IsReadByAdministratorsAndWrittenByNobody) {
  EXPECT_TRUE(check(kAdmin, Receive{.stream = "$audit"}));
  EXPECT_TRUE(check(kAdmin, Trim{"$audit"}));
  EXPECT_FALSE(check(kWorker, Receive{.stream = "$audit"}));
  for (const Op& op :
       {Op{Append{.stream = "$audit"}}, Op{DeleteStream{"$audit"}}, Op{CreateStream{"$audit"}},
        Op{CreateStream{"$mine"}}, Op{OpenProducer{"$audit", "p"}},
        Op{CreateConsumer{"s", "c", {.dead_letters = "$audit"}}}}) {
    EXPECT_FALSE(check(kAdmin, op)) << name_of(op);
  }
}

}  // namespace
}  // namespace hapax::access
