#include "digest/seal.h"

#include <gtest/gtest.h>

namespace hapax::digest {
namespace {

const std::string kKey(kSealKeyBytes, 'k');
const std::string kNonce(kSealNonceBytes, 'n');

TEST(Seal, HidesTheTextAndGivesItBack) {
  const std::string sealed = seal(kKey, kNonce, "acme/ERP", "t0k-secret");
  EXPECT_EQ(sealed.find("t0k"), std::string::npos);
  EXPECT_EQ(unseal(kKey, kNonce, "acme/ERP", sealed), "t0k-secret");
  EXPECT_EQ(unseal(kKey, kNonce, "", seal(kKey, kNonce, "", "")), "");
}

TEST(Seal, IsBrokenByAnyChange) {
  const std::string sealed = seal(kKey, kNonce, "acme/ERP", "t0k-secret");
  for (std::size_t at = 0; at < sealed.size(); ++at) {
    std::string other = sealed;
    other[at] = static_cast<char>(other[at] ^ 1);
    EXPECT_EQ(unseal(kKey, kNonce, "acme/ERP", other), std::nullopt) << at;
    EXPECT_EQ(unseal(kKey, kNonce, "acme/ERP", sealed.substr(0, at)), std::nullopt) << at;
  }
  EXPECT_EQ(unseal(kKey, kNonce, "acme/CRM", sealed), std::nullopt);
  EXPECT_EQ(unseal(kKey, std::string(kSealNonceBytes, 'm'), "acme/ERP", sealed), std::nullopt);
  EXPECT_EQ(unseal(std::string(kSealKeyBytes, 'l'), kNonce, "acme/ERP", sealed), std::nullopt);
  EXPECT_EQ(unseal("short", kNonce, "acme/ERP", sealed), std::nullopt);
}

}  // namespace
}  // namespace hapax::digest
