#include "delivery/endpoint_settings.h"

#include <algorithm>

#include "base/format.h"
#include "base/words.h"

namespace hapax::delivery {

namespace {

using Place = SecretReference::Place;

constexpr std::array<std::pair<std::string_view, Place>, 3> kPlaces{
    {{"env", Place::kEnvironment}, {"file", Place::kFile}, {"secret", Place::kStored}}};

Error bad_text(std::string what) { return {Errc::kInvalidArgument, std::move(what)}; }

std::string_view word_of_place(Place place) {
  for (const auto& [word, known] : kPlaces) {
    if (known == place) return word;
  }
  return {};
}

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

bool is_variable_name(std::string_view name) {
  const auto fits = [](char c) {
    return (base::to_lower(c) >= 'a' && base::to_lower(c) <= 'z') || c == '_' ||
           (c >= '0' && c <= '9');
  };
  return !name.empty() && std::all_of(name.begin(), name.end(), fits);
}

// Of what stands between "${" and "}".
Result<SecretReference> reference_of(std::string_view inside) {
  const std::size_t colon = inside.find(':');
  const std::string_view word = inside.substr(0, colon);
  for (const auto& [known, place] : kPlaces) {
    if (known != word || colon == std::string_view::npos) continue;
    const std::string_view name = inside.substr(colon + 1);
    const bool good = place == Place::kFile
                          ? !name.empty() && std::none_of(name.begin(), name.end(), is_control)
                          : is_variable_name(name);
    if (good) return SecretReference{place, std::string(name)};
    return bad_text(base::format("has a reference ${{{}:…}} without a name", known));
  }
  // What stands there instead may be a secret: it is not repeated.
  return bad_text(
      "has a reference that is not known; known are ${env:NAME}, ${file:PATH} and "
      "${secret:NAME}");
}

std::string text_of(const SecretReference& reference) {
  return base::format("${{{}:{}}}", word_of_place(reference.place), reference.name);
}

std::string escaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i).starts_with("${")) out += '$';
    out += text[i];
  }
  return out;
}

// "Bearer ", "Basic ": how an authorization header begins.
bool is_scheme(std::string_view text) {
  for (const std::string_view word : {"Bearer ", "Basic ", "Token ", "ApiKey ", "Digest "}) {
    if (base::same_word(text, word)) return true;
  }
  return false;
}

void add_text(std::vector<SecretText::Piece>& pieces, std::string_view text) {
  if (text.empty()) return;
  if (!pieces.empty()) {
    if (auto* last = std::get_if<std::string>(&pieces.back())) {
      *last += text;
      return;
    }
  }
  pieces.emplace_back(std::string(text));
}

}  // namespace

Result<SecretText> SecretText::parse(std::string_view text) {
  SecretText out;
  if (std::any_of(text.begin(), text.end(), is_control)) {
    return bad_text("must not hold control characters");
  }
  while (!text.empty()) {
    const std::size_t dollar = text.find("${");
    if (dollar == std::string_view::npos) {
      add_text(out.pieces_, text);
      break;
    }
    if (dollar > 0 && text[dollar - 1] == '$') {
      add_text(out.pieces_, text.substr(0, dollar - 1));
      add_text(out.pieces_, "${");
      text.remove_prefix(dollar + 2);
      continue;
    }
    add_text(out.pieces_, text.substr(0, dollar));
    const std::size_t end = text.find('}', dollar);
    if (end == std::string_view::npos)
      return bad_text("has a reference that does not end with '}'");
    HAPAX_TRY(SecretReference reference, reference_of(text.substr(dollar + 2, end - dollar - 2)));
    out.pieces_.emplace_back(std::move(reference));
    text.remove_prefix(end + 1);
  }
  return out;
}

bool SecretText::has_clear_text() const {
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    const auto* text = std::get_if<std::string>(&pieces_[i]);
    if (text == nullptr) continue;
    const bool only_scheme = i == 0 && pieces_.size() > 1 && is_scheme(*text);
    if (!only_scheme) return true;
  }
  return false;
}

bool SecretText::refers_to(SecretReference::Place place) const {
  return std::any_of(pieces_.begin(), pieces_.end(), [&](const Piece& piece) {
    const auto* reference = std::get_if<SecretReference>(&piece);
    return reference != nullptr && reference->place == place;
  });
}

std::string SecretText::written() const {
  std::string out;
  for (const Piece& piece : pieces_) {
    const auto* text = std::get_if<std::string>(&piece);
    out += text != nullptr ? escaped(*text) : text_of(std::get<SecretReference>(piece));
  }
  return out;
}

std::string SecretText::hidden() const {
  std::string out;
  for (const Piece& piece : pieces_) {
    const auto* text = std::get_if<std::string>(&piece);
    if (text == nullptr) {
      out += text_of(std::get<SecretReference>(piece));
    } else {
      out += is_scheme(*text) ? *text : "(hidden)";
    }
  }
  return out;
}

bool is_secret_header(std::string_view name) {
  const std::string lower = base::lower(name);
  for (const std::string_view part : {"auth", "cookie", "key", "token", "secret", "password",
                                      "signature", "credential", "session"}) {
    if (lower.find(part) != std::string::npos) return true;
  }
  return false;
}

bool has_clear_password(const SecretText& database) {
  const std::string text = database.written();
  const auto clear = [](std::string_view value) {
    return !value.empty() && !value.starts_with("${");
  };
  if (const std::size_t at = text.find("password="); at != std::string::npos) {
    return clear(std::string_view(text).substr(at + 9));
  }
  const std::size_t start = text.find("://");
  const std::size_t end = text.find('@', start);
  if (start == std::string::npos || end == std::string::npos) return false;
  const std::string_view user = std::string_view(text).substr(start + 3, end - start - 3);
  // A colon inside of a reference does not belong to the address.
  const std::size_t reference = user.find("${");
  const std::size_t colon = user.find(':');
  return colon != std::string_view::npos && colon < reference && clear(user.substr(colon + 1));
}

Result<WebUrl> WebUrl::parse(std::string_view text) {
  const auto not_in_url = [](char c) { return is_control(c) || c == ' '; };
  WebUrl url;
  std::string_view rest = text;
  if (base::lower(text.substr(0, 8)) == "https://") {
    url.encrypted_ = true;
    rest.remove_prefix(8);
  } else if (base::lower(text.substr(0, 7)) == "http://") {
    rest.remove_prefix(7);
  } else {
    return bad_text("must be a URL such as https://host/path");
  }
  const std::string_view authority = rest.substr(0, rest.find_first_of("/?#"));
  if (authority.find('@') != std::string_view::npos) {
    return bad_text("must not hold a user or a password; use auth");
  }
  if (std::any_of(text.begin(), text.end(), not_in_url) || text.find('#') != std::string::npos) {
    return bad_text("must be a URL without spaces and without a fragment (#)");
  }
  std::string_view host = authority;
  if (host.starts_with('[')) {
    host = host.substr(1, host.find(']') - 1);
  } else {
    host = host.substr(0, host.find(':'));
  }
  if (host.empty()) return bad_text("must be a URL with a host, such as https://host/path");
  url.text_ = text;
  url.host_ = base::lower(host);
  return url;
}

bool WebUrl::loopback() const {
  // A name such as 127.example.com is somebody else's.
  const bool numeric = host_.find_first_not_of("0123456789.") == std::string::npos;
  return host_ == "localhost" || host_.ends_with(".localhost") || host_ == "::1" ||
         (numeric && host_.starts_with("127."));
}

std::optional<StatusRule> StatusRule::parse(std::string_view statuses, StatusWord becomes) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (statuses.size() != 3 || statuses[0] < '2' || statuses[0] > '5') return std::nullopt;
  const auto hundred = static_cast<std::uint16_t>((statuses[0] - '0') * 100);
  if (statuses.substr(1) == "xx") {
    return StatusRule{hundred, static_cast<std::uint16_t>(hundred + 99), becomes};
  }
  if (!is_digit(statuses[1]) || !is_digit(statuses[2])) return std::nullopt;
  const auto one =
      static_cast<std::uint16_t>(hundred + (statuses[1] - '0') * 10 + (statuses[2] - '0'));
  return StatusRule{one, one, becomes};
}

std::string StatusRule::statuses() const {
  return first == last ? base::format("{}", first) : base::format("{}xx", first / 100);
}

std::optional<StatusWord> word_for_status(std::span<const StatusRule> rules, int status) {
  constexpr int kGone = 410;
  const StatusRule* found = nullptr;
  for (const StatusRule& rule : rules) {
    if (status < rule.first || status > rule.last) continue;
    if (found == nullptr || rule.first == rule.last) found = &rule;
  }
  if (found != nullptr) return found->becomes;
  return status == kGone ? std::optional(StatusWord::kDisable) : std::nullopt;
}

bool EndpointSettings::takes(std::string_view event_type) const {
  if (event_types.empty()) return true;
  return std::any_of(event_types.begin(), event_types.end(), [&](std::string_view pattern) {
    if (!pattern.ends_with('*')) return pattern == event_type;
    return event_type.starts_with(pattern.substr(0, pattern.size() - 1));
  });
}

std::vector<const SecretText*> secret_texts_of(const HttpTarget& target) {
  std::vector<const SecretText*> all;
  for (const EndpointHeader& header : target.headers) all.push_back(&header.value);
  for (const SigningTerm& term : target.signing) all.push_back(&term.key);
  if (const auto* basic = std::get_if<BasicAuth>(&target.auth)) {
    all.insert(all.end(), {&basic->user, &basic->password});
  } else if (const auto* bearer = std::get_if<BearerAuth>(&target.auth)) {
    all.push_back(&bearer->token);
  } else if (const auto* oauth = std::get_if<OAuth2Auth>(&target.auth)) {
    all.insert(all.end(), {&oauth->client_id, &oauth->client_secret});
  }
  return all;
}

bool needs_stored_secret(const HttpTarget& target) {
  const auto all = secret_texts_of(target);
  return std::any_of(all.begin(), all.end(), [](const SecretText* text) {
    return text->refers_to(SecretReference::Place::kStored);
  });
}

}  // namespace hapax::delivery
