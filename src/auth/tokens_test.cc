#include "auth/tokens.h"

#include <gtest/gtest.h>

#include "host/entropy.h"

namespace hapax::auth {
namespace {

const Time kCreated = time_from_ms(1'700'000'000'000);

MadeToken make(std::optional<Time> expires = std::nullopt) {
  host::HostEntropy entropy;
  const NewToken wanted{"acme",    {Right::kProduce, Right::kReadBodies},
                        "billing", kCreated,
                        expires,   "for the \"billing\" job"};
  auto made = make_token(wanted, entropy);
  EXPECT_TRUE(made) << made.error().text();
  return *std::move(made);
}

std::optional<CredentialFault> fault_of(const Tokens& tokens, std::string_view text,
                                        Time now = kCreated) {
  const auto either = tokens.verify(text, now);
  const auto* refusal = std::get_if<Refusal>(&either);
  return refusal == nullptr ? std::nullopt : std::optional(refusal->fault);
}

Tokens read(const std::string& file) {
  auto tokens = parse_tokens(file);
  EXPECT_TRUE(tokens) << tokens.error().text();
  return Tokens(*std::move(tokens));
}

TEST(ApiToken, ThatWasMadeIsAccepted) {
  const MadeToken made = make();
  EXPECT_EQ(made.text.size(), 69U);
  EXPECT_TRUE(made.text.starts_with("hx_" + made.token.id + "_"));
  const Tokens tokens = read(line_of(made.token) + "\n");
  const auto either = tokens.verify(made.text, kCreated);
  ASSERT_EQ(either.index(), 0U) << std::get<Refusal>(either).reason;
  const auto& verified = std::get<Verified>(either);
  EXPECT_EQ(verified.identity.tenant, "acme");
  EXPECT_EQ(verified.identity.subject, "billing");
  EXPECT_TRUE(verified.identity.rights.has(Right::kProduce));
  EXPECT_TRUE(verified.identity.rights.has(Right::kReadBodies));
  EXPECT_FALSE(verified.identity.rights.has(Right::kConsume));
  EXPECT_FALSE(verified.identity.rights.has(Right::kAdmin));
  EXPECT_EQ(verified.until, Time::max());
}

TEST(ApiToken, NeverStandsInTheFile) {
  const MadeToken made = make();
  const std::string line = line_of(made.token);
  EXPECT_EQ(line.find(made.text.substr(20, 20)), std::string::npos);
  EXPECT_NE(make().text, make().text);
}

TEST(ApiToken, EndsWhenItsTimeIsOver) {
  const Time end = kCreated + std::chrono::hours{1};
  const MadeToken made = make(end);
  const Tokens tokens = read(line_of(made.token));
  EXPECT_FALSE(fault_of(tokens, made.text, end - Duration{1}));
  EXPECT_EQ(fault_of(tokens, made.text, end), CredentialFault::kExpired);
  const auto either = tokens.verify(made.text, kCreated);
  EXPECT_EQ(std::get<Verified>(either).until, end);
}

// A3: nobody learns which ids there are, nor that a token was good once.
TEST(ApiToken, UnknownRevokedAndWrongOnesAreTheSameToTheClient) {
  const MadeToken made = make();
  const MadeToken other = make();
  MadeToken swapped = other;  // the id of one, the secret of another
  swapped.token.id = made.token.id;
  const std::string file = line_of(made.token) + "\n";
  EXPECT_EQ(fault_of(read(file), other.text), CredentialFault::kInvalid);
  EXPECT_EQ(fault_of(read(line_of(swapped.token)), made.text), CredentialFault::kInvalid);
  const auto revoked = with_revoked(file, made.token.id, kCreated);
  ASSERT_TRUE(revoked);
  EXPECT_EQ(fault_of(read(*revoked), made.text), CredentialFault::kInvalid);
  EXPECT_EQ(fault_of(Tokens{}, made.text), CredentialFault::kInvalid);
}

TEST(ApiToken, WithATypingErrorIsToldFromAnUnknownOne) {
  const MadeToken made = make();
  const Tokens tokens = read(line_of(made.token));
  for (std::size_t i = 0; i < made.text.size(); ++i) {
    std::string typo = made.text;
    typo[i] = typo[i] == '7' ? '8' : '7';
    EXPECT_EQ(fault_of(tokens, typo), CredentialFault::kForm) << i;
  }
  EXPECT_EQ(fault_of(tokens, made.text.substr(0, 68)), CredentialFault::kForm);
  EXPECT_EQ(fault_of(tokens, made.text + "\n"), CredentialFault::kForm);
  EXPECT_EQ(fault_of(tokens, "hx_"), CredentialFault::kForm);
  EXPECT_EQ(fault_of(tokens, ""), CredentialFault::kForm);
}

TEST(ApiToken, NeedsATenantARoleAndPrintableText) {
  host::HostEntropy entropy;
  NewToken wanted{"acme", {Right::kAdmin}, "", kCreated, std::nullopt, ""};
  const auto made = make_token(wanted, entropy);
  ASSERT_TRUE(made);
  EXPECT_EQ(made->token.identity.subject, "acme");
  const auto refused = [&](auto change) {
    NewToken bad = wanted;
    change(bad);
    return !make_token(bad, entropy).ok();
  };
  EXPECT_TRUE(refused([](NewToken& bad) { bad.tenant = ""; }));
  EXPECT_TRUE(refused([](NewToken& bad) { bad.tenant = "a/b"; }));
  EXPECT_TRUE(refused([](NewToken& bad) { bad.rights = {}; }));
  EXPECT_TRUE(refused([](NewToken& bad) { bad.subject = "a\nb"; }));
  EXPECT_TRUE(refused([](NewToken& bad) { bad.note = std::string(257, 'n'); }));
}

TEST(TokensFile, IsReadAsItIsWritten) {
  const MadeToken made = make(kCreated + Duration{5});
  const std::string file = "# tokens of the test\n\n" + line_of(made.token) + "\n  \n";
  const auto tokens = parse_tokens(file);
  ASSERT_TRUE(tokens) << tokens.error().text();
  ASSERT_EQ(tokens->size(), 1U);
  EXPECT_EQ(line_of((*tokens)[0]), line_of(made.token));
  EXPECT_EQ((*tokens)[0].note, "for the \"billing\" job");
  EXPECT_TRUE(parse_tokens("")->empty());
}

TEST(TokensFile, NamesTheLineThatIsWrong) {
  const std::string good = line_of(make().token);
  const auto error = [&](const std::string& line) {
    const auto tokens = parse_tokens("# first\n" + good + "\n" + line + "\n");
    EXPECT_FALSE(tokens) << line;
    return tokens ? "" : tokens.error().detail;
  };
  EXPECT_EQ(error("{"), "line 3: it is not JSON (line 1, column 2): incomplete JSON");
  EXPECT_EQ(error(good), "line 3: the id is there twice");
  EXPECT_EQ(error("[]"), "line 3: not an object");
  const auto changed = [&](std::string_view from, std::string_view to) {
    std::string line = line_of(make().token);
    line.replace(line.find(from), from.size(), to);
    return error(line);
  };
  EXPECT_EQ(changed("\"created_ms\":1700000000000", "\"created_ms\":1,\"expire_ms\":5"),
            "line 3: 'expire_ms' is unknown; did you mean 'expires_ms'?");
  EXPECT_EQ(changed("\"created_ms\":1700000000000", "\"created_ms\":\"today\""),
            "line 3: 'created_ms' is no number of milliseconds since 1970");
  EXPECT_EQ(changed("[\"produce\"", "[\"prodce\""), "line 3: 'roles' has a word that is no role");
  EXPECT_EQ(changed("[\"produce\",\"read-bodies\"]", "[]"),
            "line 3: 'roles' is missing, empty or no array");
  EXPECT_EQ(changed("\"sha256\":\"", "\"sha256\":\"A"),
            "line 3: 'sha256' is not 32 bytes in base64url");
  EXPECT_EQ(changed("\"id\":\"", "\"id\":\"x"), "line 3: 'id' is not 16 digits 0-9, a-f");
  EXPECT_EQ(changed("\"tenant\"", "\"note\":\"\",\"tenant\""),
            "line 3: a member stands twice in one object (line 1, column 193)");
}

TEST(TokensFile, GrowsByOneLineAndKeepsTheRest) {
  const MadeToken first = make();
  const MadeToken second = make();
  const std::string before = "# mine\n" + line_of(first.token);  // the newline was forgotten
  const auto after = with_token(before, second.token);
  ASSERT_TRUE(after);
  EXPECT_EQ(*after, before + "\n" + line_of(second.token) + "\n");
  EXPECT_FALSE(with_token("nonsense\n", second.token));
}

TEST(TokensFile, RevokesOneAndKeepsTheRest) {
  const MadeToken first = make();
  const MadeToken second = make();
  const std::string keep = "# mine\n" + line_of(first.token) + "\n\n";
  const std::string before = keep + line_of(second.token) + "\n";
  const auto after = with_revoked(before, second.token.id, kCreated + Duration{7});
  ASSERT_TRUE(after);
  EXPECT_TRUE(after->starts_with(keep));
  EXPECT_EQ((*parse_tokens(*after))[1].revoked, kCreated + Duration{7});
  EXPECT_EQ(*with_revoked(*after, second.token.id, kCreated + Duration{9}), *after);
  const auto missing = with_revoked(before, "0123456789abcdef", kCreated);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Errc::kNotFound);
}

}  // namespace
}  // namespace hapax::auth
