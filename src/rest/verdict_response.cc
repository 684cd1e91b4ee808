#include "rest/verdict_response.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "base/words.h"
#include "rest/problem.h"
#include "wire/answer.h"
#include "wire/json_text.h"
#include "wire/verdict_fields.h"

namespace hapax::rest {

namespace {

struct StatusOf {
  unsigned operator()(const Appended&) const { return 201; }
  unsigned operator()(const Conflict&) const { return 422; }
  unsigned operator()(const TooOldToKnow&) const { return 412; }
  unsigned operator()(const ExpectationFailed&) const { return 412; }
  unsigned operator()(const Superseded&) const { return 412; }
  unsigned operator()(const Refused& refused) const {
    return static_cast<unsigned>(http_status_of(refused.error.code));
  }
  unsigned operator()(const Fenced&) const { return 409; }
  unsigned operator()(const Gap&) const { return 409; }
  unsigned operator()(const UnknownProducer&) const { return 409; }
  unsigned operator()(const InProgress&) const { return 409; }
  unsigned operator()(const UnknownOutcome&) const { return 409; }
  unsigned operator()(const Stale&) const { return 409; }
  unsigned operator()(const NotApplied&) const { return 409; }
  template <class Holds>
  unsigned operator()(const Holds&) const {
    return 200;
  }
};

struct DetailOf {
  std::string_view operator()(const Conflict&) const {
    return "the id or key is known with other content; nothing was stored. Use another id, or send "
           "the same content";
  }
  std::string_view operator()(const TooOldToKnow&) const {
    return "it was first sent before the horizon: it may have been stored and forgotten. Look in "
           "the stream before sending it under a new id";
  }
  std::string_view operator()(const ExpectationFailed&) const {
    return "the stream, group or position is not where it was expected; read the actual value and "
           "decide again";
  }
  std::string_view operator()(const Superseded&) const {
    return "the register has another version than was expected; read it and decide again, or set "
           "mode to \"always\" to replace whatever it holds";
  }
  std::string_view operator()(const Fenced& fenced) const {
    if (fenced.received > fenced.current) {
      return "nothing here has this number: what it was given for is forgotten, or it was never "
             "given; stop working under it";
    }
    return "somebody newer has taken over; stop working under this number";
  }
  std::string_view operator()(const Gap&) const {
    return "an earlier record of this producer never arrived; send from the expected sequence on";
  }
  std::string_view operator()(const UnknownProducer&) const {
    return "this producer is not known here and does not start at 0";
  }
  std::string_view operator()(const InProgress&) const {
    return "another worker holds the claim; try again when its lease is over";
  }
  std::string_view operator()(const UnknownOutcome&) const {
    return "it is not known whether it happened; the key is held until somebody resolves it";
  }
  std::string_view operator()(const Stale&) const {
    return "the receipt is not the latest one of the record; receive again";
  }
  template <class Other>
  std::string_view operator()(const Other&) const {
    return "";
  }
};

// The numbers of a verdict as header fields: sequence is Hapax-Sequence, expires_at_ms is
// Hapax-Expires-At-Ms. What holds for ever has no field.
class NumberFields {
 public:
  explicit NumberFields(http::Fields& fields) : fields_(fields) {}

  template <class Value>
  void add(std::string_view key, const Value& value) {
    if constexpr (std::is_integral_v<Value> && !std::is_same_v<Value, bool>) {
      fields_.add(name_of(key), std::to_string(value));
    }
  }
  template <class Tag>
  void add(std::string_view key, Number<Tag> number) {
    add(key, number.value);
  }
  void time(std::string_view key, Time time) {
    if (time != Time::max()) add(key, to_ms(time));
  }
  void bytes(std::string_view, std::string_view) {}
  template <class Pairs>
  void pairs(std::string_view, const Pairs&) {}
  template <class Tell>
  void object(std::string_view, const Tell&) {}
  template <class List, class Tell>
  void list(std::string_view, const List&, const Tell&) {}

 private:
  static std::string name_of(std::string_view key) {
    std::string name = "Hapax-";
    bool first = true;
    for (const char c : key) {
      name.push_back(c == '_' ? '-' : first ? base::to_upper(c) : c);
      first = c == '_';
    }
    return name;
  }

  http::Fields& fields_;
};

}  // namespace

unsigned status_of(const Verdict& verdict) { return std::visit(StatusOf{}, verdict); }

http::Response json_response(unsigned status, std::string json) {
  http::Response response;
  response.status = status;
  response.fields.add("Content-Type", "application/json");
  response.body = std::move(json);
  return response;
}

http::Response verdict_response(const Verdict& verdict) {
  const std::string_view word = word_of(verdict);
  http::Response response;
  if (const auto* refused = std::get_if<Refused>(&verdict)) {
    response = problem_response(refused->error);
  } else if (holds(verdict)) {
    response = json_response(status_of(verdict), wire::json_of(verdict));
  } else {
    const unsigned status = status_of(verdict);
    wire::JsonObject body;
    body.add("type", "urn:hapax:verdict:" + std::string(word)).add("title", word);
    body.add("status", status).add("detail", std::visit(DetailOf{}, verdict));
    response.status = status;
    response.fields.add("Content-Type", "application/problem+json");
    response.fields.add("Cache-Control", "no-store");
    // Both are objects; the verdict's members go behind the problem's.
    const std::string members = wire::json_of(verdict);
    response.body = body.text();
    response.body.pop_back();
    response.body += "," + members.substr(1);
    if (std::holds_alternative<InProgress>(verdict)) response.fields.add("Retry-After", "1");
  }
  response.fields.add("Hapax-Verdict", word);
  NumberFields numbers(response.fields);
  wire::tell_verdict(numbers, verdict);
  return response;
}

http::Response answer_response(const Answer& answer) {
  http::Response response = json_response(answer.committed ? 200 : 409, wire::json_of(answer));
  if (answer.repeated) response.fields.add("Idempotent-Replayed", "true");
  return response;
}

}  // namespace hapax::rest
