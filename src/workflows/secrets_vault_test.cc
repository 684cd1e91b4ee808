// Stored secrets over a real store, and what is made of them.
#include "workflows/secrets_vault.h"

#include <fstream>
#include <iterator>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <hapax/embedded.h>

#include "digest/base64.h"
#include "host/entropy.h"
#include "host/temporary_folder_test.h"
#include "workflows/made_of_secrets.h"
#include "workflows/secrets.h"
#include "workflows/secrets_book.h"

namespace hapax::workflows {
namespace {

using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::Not;

const std::string kFirstKey = digest::encode_base64(std::string(32, 'a'));
const std::string kSecondKey = digest::encode_base64(std::string(32, 'b'));

class TestClock final : public ports::Clock {
 public:
  std::int64_t wall_ms() override { return 1'700'000'000'000 + now_ms; }
  std::int64_t steady_ms() override { return now_ms; }
  void pass(Duration span) { now_ms += span.count(); }
  std::int64_t now_ms = 0;
};

class Secrets : public testing::Test {
 protected:
  Secrets() {
    EmbeddedOptions options;
    options.log = [](const std::string&) {};
    store_ = open_embedded(folder_.path(), options).value();
  }
  SecretVault vault(const std::string& keys) {
    std::optional<SecretKeys> parsed;
    if (!keys.empty()) parsed = SecretKeys::parse(keys).value();
    return SecretVault({*store_, clock_, entropy_}, std::move(parsed));
  }
  // Every byte of the data folder.
  std::string on_disk() const {
    std::string all;
    for (const auto& one : std::filesystem::recursive_directory_iterator(folder_.path())) {
      if (!one.is_regular_file()) continue;
      std::ifstream file(one.path(), std::ios::binary);
      all.append(std::istreambuf_iterator<char>(file), {});
    }
    return all;
  }

  host::TemporaryFolder folder_;
  TestClock clock_;
  host::HostEntropy entropy_;
  std::unique_ptr<Store> store_;
};

TEST_F(Secrets, AreReadAsTheyWereStoredAndAreNowhereInClearText) {
  SecretVault kept = vault(kFirstKey);
  ASSERT_TRUE(kept.put("acme", "ERP", "t0k-secret"));
  ASSERT_TRUE(kept.put("acme", "CRM", "other-t0ken"));
  EXPECT_EQ(kept.value_of("acme", "ERP").value(), "t0k-secret");
  EXPECT_THAT(kept.list("acme").value().names,
              ElementsAre(Field(&SecretName::name, "CRM"), Field(&SecretName::name, "ERP")));
  EXPECT_EQ(kept.value_of("globex", "ERP").error().code, Errc::kNotFound);
  EXPECT_TRUE(kept.list("globex").value().names.empty());
  const std::string bytes = on_disk();
  EXPECT_THAT(bytes, HasSubstr("secrets/acme"));
  EXPECT_THAT(bytes, Not(HasSubstr("t0k-secret")));
  EXPECT_THAT(bytes, Not(HasSubstr("other-t0ken")));
}

TEST_F(Secrets, OutliveTheProcess) {
  ASSERT_TRUE(vault(kFirstKey).put("", "ERP", "t0k"));
  store_.reset();
  store_ = open_embedded(folder_.path(), {}).value();
  EXPECT_EQ(vault(kFirstKey).value_of("", "ERP").value(), "t0k");
}

TEST_F(Secrets, AreRemovedAndStoredAgain) {
  SecretVault kept = vault(kFirstKey);
  ASSERT_TRUE(kept.put("acme", "ERP", "one"));
  ASSERT_TRUE(kept.put("acme", "ERP", "two"));
  EXPECT_EQ(kept.list("acme").value().names.size(), 1U);
  EXPECT_EQ(kept.value_of("acme", "ERP").value(), "two");
  EXPECT_TRUE(kept.remove("acme", "ERP"));
  EXPECT_EQ(kept.value_of("acme", "ERP").error().code, Errc::kNotFound);
  EXPECT_EQ(kept.remove("acme", "ERP").error().code, Errc::kNotFound);
}

TEST_F(Secrets, WithABadNameOrValueAreRefused) {
  SecretVault kept = vault(kFirstKey);
  EXPECT_EQ(kept.put("a", "E-RP", "x").error().code, Errc::kInvalidArgument);
  EXPECT_EQ(kept.put("a", "", "x").error().code, Errc::kInvalidArgument);
  EXPECT_EQ(kept.put("a", std::string(101, 'E'), "x").error().code, Errc::kInvalidArgument);
  EXPECT_EQ(kept.put("a", "ERP", "").error().code, Errc::kInvalidArgument);
  EXPECT_EQ(kept.put("a", "ERP", "line\nbreak").error().code, Errc::kInvalidArgument);
  EXPECT_EQ(kept.put("a", "ERP", std::string(4097, 'x')).error().code, Errc::kLimitExceeded);
}

TEST_F(Secrets, OfATenantAreNotMoreThanTheLimit) {
  SecretVault kept = vault(kFirstKey);
  for (std::size_t i = 0; i < SecretVault::kSecretsMax; ++i) {
    ASSERT_TRUE(kept.put("acme", "S" + std::to_string(i), "x"));
  }
  EXPECT_EQ(kept.put("acme", "ONE_MORE", "x").error().code, Errc::kLimitExceeded);
  EXPECT_TRUE(kept.put("acme", "S7", "y"));  // It is there already.
}

// U1: without a key nothing is kept, rather than in clear text.
TEST_F(Secrets, WithoutAKeyAreNotKept) {
  const auto refused = vault("").put("acme", "ERP", "t0k-secret");
  EXPECT_EQ(refused.error().code, Errc::kPreconditionFailed);
  EXPECT_THAT(refused.error().detail, HasSubstr("server.secrets_key"));
  ASSERT_TRUE(vault(kFirstKey).put("acme", "ERP", "t0k-secret"));
  EXPECT_EQ(vault("").value_of("acme", "ERP").error().code, Errc::kPreconditionFailed);
  EXPECT_EQ(vault("").list("acme").value().names.size(), 1U);
}

TEST_F(Secrets, AreReadWithAnOlderKeyWhileANewOneSeals) {
  ASSERT_TRUE(vault(kFirstKey).put("acme", "OLD", "one"));
  SecretVault both = vault(kSecondKey + "\n" + kFirstKey + "\n");
  EXPECT_EQ(both.value_of("acme", "OLD").value(), "one");
  ASSERT_TRUE(both.put("acme", "NEW", "two"));
  EXPECT_EQ(vault(kSecondKey).value_of("acme", "NEW").value(), "two");
  const auto lost = vault(kSecondKey).value_of("acme", "OLD");
  EXPECT_EQ(lost.error().code, Errc::kPreconditionFailed);
  EXPECT_THAT(lost.error().detail, HasSubstr("sealed under another key"));
}

// What somebody with a hand in the store copies to another place is worth nothing there.
TEST_F(Secrets, AreSealedForTheirTenantAndName) {
  const SecretKeys keys = SecretKeys::parse(kFirstKey).value();
  const std::string sealed = keys.sealed("acme/ERP", "t0k", entropy_);
  EXPECT_EQ(keys.unsealed("acme/ERP", sealed), "t0k");
  EXPECT_EQ(keys.unsealed("globex/ERP", sealed), std::nullopt);
  EXPECT_NE(keys.sealed("acme/ERP", "t0k", entropy_), sealed);
}

TEST(SecretKeysText, IsBase64Of32BytesEach) {
  EXPECT_TRUE(SecretKeys::parse(" " + kFirstKey + "\n"));
  for (const std::string& bad : {std::string(" \n"), std::string("c2hvcnQ="), kFirstKey + "x y"}) {
    const auto refused = SecretKeys::parse(bad);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().detail, HasSubstr("openssl rand -base64 32"));
    EXPECT_THAT(refused.error().detail, Not(HasSubstr("c2hvcnQ")));
  }
}

TEST_F(Secrets, AreKnownToTheirBookWithinASecond) {
  SecretVault kept = vault(kFirstKey);
  SecretBook book(kept, clock_, "acme");
  EXPECT_EQ(book.value_of("ERP").error().code, Errc::kNotFound);
  ASSERT_TRUE(kept.put("acme", "ERP", "one"));
  EXPECT_EQ(book.value_of("ERP").error().code, Errc::kNotFound);  // It has just looked.
  clock_.pass(SecretBook::kLookEvery);
  EXPECT_EQ(book.value_of("ERP").value(), "one");
  const auto before = book.version();
  ASSERT_TRUE(kept.put("acme", "ERP", "two"));
  clock_.pass(SecretBook::kLookEvery);
  EXPECT_NE(book.version(), before);
  EXPECT_EQ(book.value_of("ERP").value(), "two");
}

struct Greeting {
  std::string text;
  std::shared_ptr<bool> gone = std::make_shared<bool>(false);
  void let_go() const { *gone = true; }
};

TEST_F(Secrets, ChangedAreTakenIntoUse) {
  SecretVault kept = vault(kFirstKey);
  SecretBook book(kept, clock_, "acme");
  const SecretScope scope{delivery::DeclaredIn::kApi, &book};
  const auto text = delivery::SecretText::parse("Bearer ${secret:ERP}").value();
  MadeOfSecrets<Greeting> greeting(
      [&]() -> Result<std::shared_ptr<const Greeting>> {
        HAPAX_TRY(const std::string made, reveal(text, scope));
        return std::make_shared<const Greeting>(Greeting{made});
      },
      &book);
  const auto missing = greeting.get();
  EXPECT_THAT(missing.error().detail, HasSubstr("hapax secrets set ERP"));
  ASSERT_TRUE(kept.put("acme", "ERP", "one"));
  clock_.pass(SecretBook::kLookEvery);
  const auto first = greeting.get().value();
  EXPECT_EQ(first->text, "Bearer one");
  EXPECT_EQ(greeting.get().value(), first);
  ASSERT_TRUE(kept.put("acme", "ERP", "two"));
  clock_.pass(SecretBook::kLookEvery);
  EXPECT_EQ(greeting.get().value()->text, "Bearer two");
  EXPECT_TRUE(*first->gone);
  ASSERT_TRUE(kept.remove("acme", "ERP"));
  clock_.pass(SecretBook::kLookEvery);
  EXPECT_FALSE(greeting.get());
}

// U2: a tenant must not read the environment or the files of the server.
TEST(SecretScopes, KeepWhatCameOverTheApiFromTheServersOwnSecrets) {
  const SecretScope api{delivery::DeclaredIn::kApi, nullptr};
  for (const char* reference : {"${env:PATH}", "${file:/etc/hostname}"}) {
    const auto text = delivery::SecretText::parse(reference).value();
    EXPECT_EQ(reveal(text, api).error().code, Errc::kForbidden);
    EXPECT_TRUE(reveal(text));
  }
}

}  // namespace
}  // namespace hapax::workflows
