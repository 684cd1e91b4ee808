#include "cli/op_options.h"

#include <gtest/gtest.h>

#include "cli/span.h"

namespace hapax::cli {
namespace {

const OpField& field(const std::vector<OpField>& fields, std::string_view name) {
  for (const OpField& one : fields) {
    if (one.name == name) return one;
  }
  ADD_FAILURE() << "no field " << name;
  return fields.front();
}

TEST(Span, NeedsAUnit) {
  EXPECT_EQ(span_of("500ms"), Duration{500});
  EXPECT_EQ(span_of("30s"), Duration{30'000});
  EXPECT_EQ(span_of("2w"), Duration{14LL * 86'400'000});
  EXPECT_EQ(span_of("P7D"), Duration{7LL * 86'400'000});
  EXPECT_EQ(span_of("PT1H"), Duration{3'600'000});
  EXPECT_EQ(span_of("P1W2DT3H4M5S"), Duration{9LL * 86'400'000 + 11'045'000});
  for (const char* text : {"P", "PT", "P1", "P1DT", "P1M", "P1Y", "PT1D", "PT1M1H", "P1D1D", "P-1D",
                           "p7d", "P1W T1H", "P99999999W", "PT99999999999999999999S"}) {
    EXPECT_FALSE(span_of(text)) << text;
  }
  for (const char* text :
       {"", "5", "s", "-1s", "1.5s", "1 s", "1S", "99999999999999999999s", "36501d"}) {
    EXPECT_FALSE(span_of(text)) << text;
  }
}

TEST(OpOptions, ComeFromTheFieldsOfTheOperation) {
  const auto claim = op_fields("claim");
  EXPECT_TRUE(field(claim, "scope").required);
  EXPECT_EQ(field(claim, "lease_ms").option(), "--lease");
  EXPECT_EQ(field(claim, "retention_s").option(), "--retention");
  EXPECT_EQ(field(claim, "content").kind, FieldKind::kBytes);
  const auto stream = op_fields("create_stream");
  EXPECT_EQ(field(stream, "track_groups").option(), "--track-groups");
  EXPECT_EQ(field(stream, "id_scope").words, (std::vector<std::string>{"stream", "group"}));
  EXPECT_EQ(field(op_fields("append"), "headers").option(), "--header");
}

TEST(OpOptions, ValuesBecomeWhatTheWireHas) {
  const auto json = [](std::string_view op, std::string_view name,
                       const std::vector<std::string>& given) {
    const auto fields = op_fields(op);
    const auto member = member_of(field(fields, name), given);
    return member ? member->name + "=" + member->json : "refused";
  };
  EXPECT_EQ(json("claim", "lease_ms", {"30s"}), "lease_ms=30000");
  EXPECT_EQ(json("claim", "retention_s", {"2m"}), "retention_s=120");
  EXPECT_EQ(json("claim", "retention_s", {"forever"}), "retention_s=\"forever\"");
  EXPECT_EQ(json("claim", "retention_s", {"1500ms"}), "refused");
  EXPECT_EQ(json("claim", "lease_ms", {"30"}), "refused");
  EXPECT_EQ(json("claim", "content", {"a\"b"}), "content=\"a\\\"b\"");
  EXPECT_EQ(json("claim", "content", {"\xff"}), "content_base64=\"/w==\"");
  EXPECT_EQ(json("claim", "key", {"\xff"}), "refused");
  EXPECT_EQ(json("settle", "fence", {"7"}), "fence=7");
  EXPECT_EQ(json("settle", "fence", {"7x"}), "refused");
  EXPECT_EQ(json("append", "headers", {"a=b", "c=d=e"}), R"(headers=[["a","b"],["c","d=e"]])");
  EXPECT_EQ(json("append", "headers", {"a"}), "refused");
}

TEST(OpOptions, NamesStandInThePathAndTheRestInTheBodyOrTheQuery) {
  const std::vector<Member> members = {
      {"scope", "\"pay/ments\""}, {"key", "\"o 1\""}, {"lease_ms", "5"}};
  const client::ApiCall post = call_of("POST", "/claims/{scope}/{key}", members);
  EXPECT_EQ(post.path, "/api/v1/claims/pay%2Fments/o%201");
  EXPECT_EQ(post.body, R"({"lease_ms":5})");
  EXPECT_FALSE(post.key.empty());
  const client::ApiCall gone = call_of("DELETE", "/claims/{scope}/{key}", members);
  EXPECT_EQ(gone.path, "/api/v1/claims/pay%2Fments/o%201?lease_ms=5");
  EXPECT_EQ(gone.body, "");
}

}  // namespace
}  // namespace hapax::cli
