// token make, list, revoke: the server's file of API tokens.
#include <optional>

#include "auth/tokens.h"
#include "auth/words.h"
#include "base/format.h"
#include "base/time_text.h"
#include "cli/commands.h"
#include "cli/span.h"
#include "host/clock.h"
#include "host/entropy.h"
#include "host/whole_file.h"
#include "wire/json_text.h"
#include "wire/nearest.h"

namespace hapax::cli {

namespace {

Time wall_now() {
  host::HostClock clock;
  return time_from_ms(clock.wall_ms());
}

Result<Duration> expiry_of(const std::string& text) {
  const auto span = span_of(text);
  if (span && *span >= std::chrono::seconds{1}) return *span;
  return Error{Errc::kInvalidArgument,
               "--expires '" + text +
                   "' is no span of time such as 90d, 12h or 30m (s, m, h, d, w; up to 36500d)"};
}

Result<auth::Rights> parse_roles(const std::vector<std::string>& words) {
  constexpr std::string_view kKnown[] = {"produce", "consume", "admin", "read-bodies"};
  auth::Rights rights;
  for (const std::string& word : words) {
    const auto role = auth::role_of(word);
    if (!role) {
      return Error{Errc::kInvalidArgument,
                   "--roles: '" + word + "' is no role" + wire::suggestion(word, kKnown)};
    }
    rights.add(*role);
  }
  return rights;
}

Result<auth::MadeToken> make(const TokenMakeOptions& options) {
  auth::NewToken wanted;
  HAPAX_TRY(wanted.rights, parse_roles(options.roles));
  wanted.tenant = options.tenant;
  wanted.subject = options.subject;
  wanted.note = options.note;
  wanted.created = wall_now();
  if (!options.expires.empty()) {
    HAPAX_TRY(const Duration span, expiry_of(options.expires));
    wanted.expires = wanted.created + span;
  }
  host::HostEntropy entropy;
  HAPAX_TRY(auth::MadeToken made, auth::make_token(wanted, entropy));
  const host::Edit edit = [&](std::string_view before) -> Result<std::string> {
    auto after = auth::with_token(before, made.token);
    if (!after) return std::move(after).error().within(options.file);
    return after;
  };
  HAPAX_CHECK(host::edit_file(options.file, edit));
  return made;
}

std::string_view state_of(const auth::ApiToken& token, Time now) {
  if (token.revoked) return "revoked";
  return token.expires && *token.expires <= now ? "expired" : "valid";
}

wire::JsonObject token_json(const auth::ApiToken& token, Time now) {
  wire::JsonObject out;
  out.add("id", token.id).add("tenant", token.identity.tenant);
  out.raw("roles", "[\"" + auth::words_of(token.identity.rights, "\",\"") + "\"]");
  out.add("subject", token.identity.subject).add("state", state_of(token, now));
  out.add("created_ms", to_ms(token.created));
  if (token.expires) out.add("expires_ms", to_ms(*token.expires));
  if (token.revoked) out.add("revoked_ms", to_ms(*token.revoked));
  if (!token.note.empty()) out.add("note", token.note);
  return out;
}

void print_tokens(const std::vector<auth::ApiToken>& tokens, Time now) {
  base::print("{:<16}  {:<8} {:<16} {:<36} {:<20} {:<20} {}\n", "id", "state", "tenant", "roles",
              "expires", "subject", "note");
  for (const auth::ApiToken& token : tokens) {
    base::print("{:<16}  {:<8} {:<16} {:<36} {:<20} {:<20} {}\n", token.id, state_of(token, now),
                token.identity.tenant, auth::words_of(token.identity.rights, ","),
                token.expires ? base::rfc3339_seconds(*token.expires) : "never",
                token.identity.subject, token.note);
  }
}

Result<std::vector<auth::ApiToken>> read_tokens(const std::string& file) {
  HAPAX_TRY(const std::string bytes, host::read_file(file));
  auto tokens = auth::parse_tokens(bytes);
  if (!tokens) return std::move(tokens).error().within(file);
  return tokens;
}

}  // namespace

int run_token_make(const TokenMakeOptions& options) {
  const auto made = make(options);
  if (!made) return report(made.error());
  const auth::ApiToken& token = made->token;
  if (options.output == Output::kJson) {
    base::print("{}\n", token_json(token, token.created).add("token", made->text).text());
    return kExitOk;
  }
  base::print("{}\n", made->text);
  base::print(
      stderr,
      "token {} of tenant {} ({}), expires: {}\n"
      "It is shown only now; {} has its hash. A running server learns of it at its next reload.\n",
      token.id, token.identity.tenant, auth::words_of(token.identity.rights, ", "),
      token.expires ? base::rfc3339_seconds(*token.expires) : "never", options.file);
  return kExitOk;
}

int run_token_list(const TokenListOptions& options) {
  const auto tokens = read_tokens(options.file);
  if (!tokens) return report(tokens.error());
  const Time now = wall_now();
  if (options.output == Output::kText) {
    print_tokens(*tokens, now);
    return kExitOk;
  }
  wire::JsonArray list;
  for (const auth::ApiToken& token : *tokens) list.add(token_json(token, now).text());
  base::print("{}\n", wire::JsonObject().raw("tokens", list.text()).text());
  return kExitOk;
}

int run_token_revoke(const TokenRevokeOptions& options) {
  std::string_view id = options.id;
  if (id.starts_with(auth::kTokenPrefix)) {
    id = id.substr(auth::kTokenPrefix.size(),
                   id.find('_', auth::kTokenPrefix.size()) - auth::kTokenPrefix.size());
  }
  const host::Edit edit = [&](std::string_view before) {
    return auth::with_revoked(before, id, wall_now());
  };
  // Read first: an edit would make a missing file.
  if (const auto tokens = read_tokens(options.file); !tokens) return report(tokens.error());
  if (const Status edited = host::edit_file(options.file, edit); !edited) {
    return report(edited.error());
  }
  if (options.output == Output::kJson) {
    base::print("{}\n", wire::JsonObject().add("revoked", id).text());
  } else {
    base::print("revoked {}; a running server refuses it after its next reload\n", id);
  }
  return kExitOk;
}

}  // namespace hapax::cli
