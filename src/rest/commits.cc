#include "rest/commits.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/words.h"
#include "rest/problem.h"
#include "rest/verdict_response.h"

namespace hapax::rest {

namespace {

// Empty: there is none.
Result<std::string> idempotency_key(const http::Request& request) {
  const auto bad = [](std::string_view why) {
    return Error{Errc::kInvalidArgument, "Idempotency-Key: " + std::string(why) +
                                             "; send 1 to 255 printable ASCII characters, once"};
  };
  if (!request.fields.has("Idempotency-Key")) return std::string();
  if (request.fields.count("Idempotency-Key") > 1) return bad("it is there more than once");
  std::string_view raw = request.fields.get("Idempotency-Key");
  std::string key;
  if (raw.starts_with('"')) {
    if (raw.size() < 2 || !raw.ends_with('"')) return bad("the quotes do not match");
    raw = raw.substr(1, raw.size() - 2);
    for (std::size_t i = 0; i < raw.size(); ++i) {
      const bool escapes = raw[i] == '\\' && i + 1 < raw.size();
      if (escapes) ++i;
      // RFC 9651: only these two are escaped, and always. Else two texts would be one key.
      const bool special = raw[i] == '"' || raw[i] == '\\';
      if (escapes != special) return bad("only \\ and \" are escaped in a quoted key, and always");
      key.push_back(raw[i]);
    }
  } else {
    if (raw.find(',') != std::string_view::npos) return bad("it is a list");
    key = raw;
  }
  if (key.empty()) return bad("it is empty");
  if (key.size() > limits::kMessageIdBytesMax) return bad("it is too long");
  const auto printable = [](char c) { return c >= 0x20 && c <= 0x7e; };
  if (!std::all_of(key.begin(), key.end(), printable)) return bad("it has other characters");
  return key;
}

}  // namespace

Status give_id(const http::Request& http, wire::Request& request) {
  HAPAX_TRY(const std::string key, idempotency_key(http));
  if (key.empty()) return Ok{};
  if (request.id && *request.id != key) {
    return Error{Errc::kInvalidArgument, "id: differs from the Idempotency-Key header"};
  }
  request.id = request.keep(key);
  return Ok{};
}

Status check_media(const http::Request& http, std::initializer_list<std::string_view> others) {
  const std::string_view type = http::media_type(http);
  const bool json = type.empty() || http::same_name(type, "application/json") ||
                    base::lower(type).ends_with("+json") ||
                    http::same_name(type, "application/x-www-form-urlencoded");
  const auto is_it = [&](std::string_view other) { return http::same_name(type, other); };
  if (json || http.body.empty() || std::any_of(others.begin(), others.end(), is_it)) return Ok{};
  std::string known = "application/json";
  for (const std::string_view other : others) known.append(" or ").append(other);
  return Error{Errc::kUnsupportedMedia,
               "Content-Type: expected " + known + ", got '" + std::string(type) + "'"};
}

void respond_one(const SharedCall& call, const Result<Answer>& answer) {
  if (!answer) return call->exchange->respond(problem_response(answer.error()));
  if (answer->verdicts.size() != 1) return call->exchange->respond(answer_response(*answer));
  http::Response response = verdict_response(answer->verdicts.front());
  response.fields.add("Hapax-Time-Ms", std::to_string(to_ms(answer->time)));
  if (answer->repeated) response.fields.add("Idempotent-Replayed", "true");
  call->exchange->respond(response);
}

void respond_list(const SharedCall& call, const Result<Answer>& answer) {
  if (!answer) return call->exchange->respond(problem_response(answer.error()));
  call->exchange->respond(answer_response(*answer));
}

void carry_out(access::Entry& entry, const SharedCall& call, Result<wire::SharedRequest> request,
               Tell tell) {
  if (request) {
    if (Status named = give_id(call->request(), **request); !named) request = named.error();
  }
  if (!request) return call->exchange->respond(problem_response(request.error()));
  entry.commit(call->from(), call->caller(), *std::move(request),
               [call, tell](const Result<Answer>& answer) { tell(call, answer); });
}

}  // namespace hapax::rest
