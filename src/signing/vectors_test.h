// Signatures that others have made. The first two are published with the libraries of Standard
// Webhooks; the others were made by OpenSSL and Python's hmac.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hapax::signing {

inline constexpr std::string_view kSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
inline constexpr std::string_view kSecondSecret = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX";
// RFC 8032, test 1
inline constexpr std::string_view kPrivateKey = "whsk_nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A=";
inline constexpr std::string_view kPublicKey = "whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";

struct SignatureVector {
  std::string_view key;        // signs
  std::string_view verifying;  // verifies
  std::string_view id;
  std::int64_t seconds;
  std::string body;
  std::string_view signature;
};

inline std::string all_bytes() {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  return bytes;
}

inline std::vector<SignatureVector> signature_vectors() {
  constexpr std::string_view kOurs = "msg_hapax_0001";
  constexpr std::string_view kOther = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
  constexpr std::int64_t kThen = 1'700'000'000;
  return {
      {kSecret, kSecret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1'614'265'330, R"({"test": 2432232314})",
       "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="},
      {kOther, kOther, "msg_27UH4WbU6Z5A5EzD8u03UvzRbpk", 1'649'367'553,
       R"({"email":"test@example.com","username":"test_user"})",
       "v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw="},
      {kSecret, kSecret, kOurs, kThen, "", "v1,BphMKu5eIgDidbcc2l7vP9zyTFfNTeU4BgN4p4D0C1A="},
      {kSecret, kSecret, kOurs, kThen, R"({"a":1})",
       "v1,587olfBH5oJsczC9whgbnbTgpisUf6NJxDTxeITJZe4="},
      {kSecret, kSecret, kOurs, kThen, "{\"a\":1}\n",
       "v1,CGPmBzOFQFVl1wirMBOXPGgfTdp0pJOyMePDseiNAKI="},
      {kSecret, kSecret, kOurs, kThen, R"({"a":"é€😀"})",
       "v1,WQYFdaKs255eaclGmlXFODbN+609Z90zut2qfW/X6g8="},
      {kSecret, kSecret, kOurs, kThen, all_bytes(),
       "v1,G9dJpjMcFDc2G5Pj2HMvq0rmOU9DnJkKp+inaPyiJi8="},
      {kSecondSecret, kSecondSecret, kOurs, kThen, R"({"a":1})",
       "v1,pSt7fFSOlvvpqMdu0l2W2aWJN/82IBdpT87KfOzNfjE="},
      {kPrivateKey, kPublicKey, kOurs, kThen, R"({"a":1})",
       "v1a,8p3wrjOqFltbKHVqBEk9FSgBPKcBpbpxGqp5j5szL7chRbjsl2PHfOpvEncbJkUuoIWHXDTdFNJCM7myUqcSBQ="
       "="},
  };
}

}  // namespace hapax::signing
