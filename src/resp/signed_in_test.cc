#include "resp/signed_in.h"

#include <map>

#include <gtest/gtest.h>

namespace hapax::resp {
namespace {

using access::Right;
using access::Rights;

// Credentials are names of callers; what it was asked for is kept.
class Book final : public access::Authenticator {
 public:
  Result<access::Admission> authenticate(std::string_view credential,
                                         std::string_view peer) override {
    asked.push_back(std::string(credential) + " from " + std::string(peer));
    const auto found = callers.find(credential);
    if (found == callers.end()) return Error{Errc::kUnauthenticated, "unknown"};
    return access::Admission{found->second, Time::max(), edition};
  }
  bool holds(const access::Admission& admission) override { return admission.edition == edition; }
  [[nodiscard]] const std::optional<access::Caller>& anybody() const override { return anyone; }

  std::map<std::string, access::Caller, std::less<>> callers{
      {"ann", {{"acme", "ann", Rights::all()}}}, {"bob", {{"beta", "bob", Rights::all()}}}};
  std::optional<access::Caller> anyone;
  std::uint64_t edition = 1;
  std::vector<std::string> asked;
};

class SignedInTest : public testing::Test {
 protected:
  Book book_;
  SignedIn who_{book_, "peer"};
};

TEST_F(SignedInTest, WhoSaysNothingIsAStrangerOrAnybody) {
  EXPECT_TRUE(who_.stranger());
  EXPECT_TRUE(who_.holds());
  book_.anyone = access::Caller{{"", "anybody", Rights::all()}};
  who_.sign_out();
  ASSERT_FALSE(who_.stranger());
  EXPECT_EQ(who_.caller().subject, "anybody");
  EXPECT_TRUE(who_.names().plain());
}

TEST_F(SignedInTest, ACredentialSaysWhoItIsAndWhatNamesMean) {
  EXPECT_TRUE(who_.sign_in("ann"));
  EXPECT_EQ(who_.caller().tenant, "acme");
  EXPECT_EQ(who_.names().inside("x"), access::TenantNames(who_.caller()).inside("x"));
  EXPECT_EQ(book_.asked, std::vector<std::string>{"ann from peer"});
  who_.sign_out();
  EXPECT_TRUE(who_.stranger());
  EXPECT_TRUE(who_.names().plain());
}

TEST_F(SignedInTest, WhoeverItWasStaysIfACredentialIsRefused) {
  EXPECT_TRUE(who_.sign_in("ann"));
  EXPECT_FALSE(who_.sign_in("eve"));
  ASSERT_FALSE(who_.stranger());
  EXPECT_EQ(who_.caller().subject, "ann");
  EXPECT_TRUE(who_.sign_in("bob"));
  EXPECT_EQ(who_.caller().tenant, "beta");
}

// A5
TEST_F(SignedInTest, AnAdmissionThatIsOverIsAskedForAgain) {
  EXPECT_TRUE(who_.sign_in("ann"));
  ++book_.edition;
  EXPECT_FALSE(who_.holds());
  EXPECT_EQ(who_.sign_in_again(), SignedIn::Became::kSame);
  EXPECT_TRUE(who_.holds());
  EXPECT_EQ(book_.asked.back(), "ann from peer");

  ++book_.edition;
  book_.callers.at("ann").rights = Rights{};
  EXPECT_EQ(who_.sign_in_again(), SignedIn::Became::kOther);
  ++book_.edition;
  book_.callers.at("ann").tenant = "other";
  EXPECT_EQ(who_.sign_in_again(), SignedIn::Became::kOther);

  ++book_.edition;
  book_.callers.clear();
  EXPECT_EQ(who_.sign_in_again(), SignedIn::Became::kNobody);
  EXPECT_TRUE(who_.stranger());
  EXPECT_TRUE(who_.holds());  // There is nothing to ask for.
}

TEST_F(SignedInTest, AConnectionOfTheTenantLastsFromTheFirstCommandToTheEnd) {
  const auto account =
      std::make_shared<access::Account>(access::TenantLimits{.connections_max = 1});
  book_.callers.at("ann").account = account;
  SignedIn second(book_, "peer");
  EXPECT_TRUE(who_.sign_in("ann"));
  EXPECT_TRUE(second.sign_in("ann"));
  EXPECT_FALSE(who_.let_in());
  EXPECT_FALSE(who_.let_in());
  EXPECT_TRUE(second.let_in());
  who_.hang_up();
  EXPECT_FALSE(second.let_in());
}

}  // namespace
}  // namespace hapax::resp
