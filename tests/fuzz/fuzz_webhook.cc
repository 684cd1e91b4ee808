// What a receiver is sent, and the keys that people paste: nothing is verified that was not signed
// with the key, what was signed is verified with the id it was signed for, and no error tells a
// key.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <hapax/webhook.h>

#include "signing/key_ring.h"
#include "signing/signed_content.h"
#include "signing/webhook_key.h"

namespace {

using namespace hapax;

constexpr std::array<std::string_view, 2> kKeys = {
    "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD",
    "whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=",
};
const Time kNow = time_from_ms(1'700'000'000'000);

void must(bool holds) {
  if (!holds) std::abort();
}

const WebhookVerifier& verifier() {
  static const auto kVerifier = WebhookVerifier::make(kKeys);
  return *kVerifier;
}

std::string_view take_line(std::string_view& bytes) {
  const std::size_t end = bytes.find('\n');
  const std::string_view line = bytes.substr(0, end);
  bytes.remove_prefix(end == std::string_view::npos ? bytes.size() : end + 1);
  return line;
}

// Lines "name:value" up to an empty one, then the body.
void try_request(std::string_view bytes) {
  std::vector<Header> header;
  while (!bytes.empty()) {
    const std::string_view line = take_line(bytes);
    if (line.empty()) break;
    const std::size_t colon = std::min(line.find(':'), line.size());
    header.push_back({line.substr(0, colon), line.substr(std::min(colon + 1, line.size()))});
  }
  must(std::holds_alternative<WebhookRefusal>(verifier().verify(header, bytes, kNow)));
}

void try_round(std::string_view bytes) {
  static const std::array kTerms{signing::KeyTerm{.key = kKeys[0]}};
  static const auto kRing = signing::KeyRing::make(kTerms);
  const std::string_view id = take_line(bytes);
  const std::array body{bytes};
  const auto signature = kRing->sign({id, kNow, body});
  must(signature.ok() == signing::is_webhook_id(id));
  if (!signature) return;
  const std::string timestamp = signing::webhook_timestamp(kNow);
  const std::array header{Header{"webhook-signature", *signature}, Header{"webhook-id", id},
                          Header{"webhook-timestamp", timestamp}};
  const auto verdict = verifier().verify(header, bytes, kNow);
  const auto* sent = std::get_if<VerifiedWebhook>(&verdict);
  must(sent != nullptr && sent->id == id && sent->sent == kNow);
}

// Errors differ by the number of bytes in them and by nothing else of the text.
void try_key(std::string_view bytes) {
  static std::set<std::string> sentences;
  const auto key = signing::parse_webhook_key(bytes);
  if (key) return must(key->bytes.size() >= 24 && key->bytes.size() <= 64);
  std::string sentence = key.error().detail;
  std::erase_if(sentence, [](char c) { return c >= '0' && c <= '9'; });
  sentences.insert(sentence);
  must(sentences.size() <= 8);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try_request(bytes);
  try_round(bytes);
  try_key(bytes);
  return 0;
}
