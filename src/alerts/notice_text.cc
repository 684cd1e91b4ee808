#include "alerts/notice_text.h"

#include <cstdint>
#include <optional>

#include "base/format.h"
#include "base/time_text.h"
#include "wire/json_text.h"
#include "wire/strict_json.h"

namespace hapax::alerts {

namespace {

using wire::JsonObject;
using wire::JsonValue;

std::string number(double value) { return base::format("{:.6g}", value); }

std::string_view kind_word(Notice::Kind kind) {
  return event_type_of(kind).substr(std::string_view("alert.").size());
}

// The member under which the name of a subject is told.
std::string_view name_word(Condition condition) {
  if (condition == Condition::kDuplicateRate) return "queue";
  return condition == Condition::kQuota ? "limit" : "workflow";
}

std::string amount(Unit unit, double value) {
  switch (unit) {
    case Unit::kSeconds:
      return base::format("{:.6g} s", value);
    case Unit::kShare:
      return base::format("{:.3g} %", value * 100);
    default:
      return number(value);
  }
}

std::string_view what_is_counted(Condition condition) {
  switch (condition) {
    case Condition::kDeadLetters:
      return "dead letters";
    case Condition::kLag:
      return "behind";
    case Condition::kRetryRate:
      return "of the attempts failed and are repeated";
    case Condition::kRepeatRate:
      return "of the attempts are under a key that was sent before";
    case Condition::kDuplicateRate:
      return "are duplicates";
    default:
      return "used";
  }
}

std::string subject_text(const Rule& rule, const Subject& subject) {
  std::string text;
  if (!subject.tenant.empty()) text = base::format("tenant {}, ", subject.tenant);
  base::append_format(text, "{} {}", name_word(rule.when), subject.name);
  if (!subject.part.empty()) base::append_format(text, ", endpoint {}", subject.part);
  return text;
}

std::optional<std::int64_t> whole(const JsonValue& object, std::string_view name) {
  const JsonValue* const found = object.find(name);
  const auto* number = found == nullptr ? nullptr : found->get<std::int64_t>();
  return number == nullptr ? std::nullopt : std::optional(*number);
}
std::string text(const JsonValue& object, std::string_view name) {
  const JsonValue* const found = object.find(name);
  const auto* is = found == nullptr ? nullptr : found->get<std::string>();
  return is == nullptr ? std::string() : *is;
}
double real(const JsonValue& object, std::string_view name) {
  if (const auto is_whole = whole(object, name)) return static_cast<double>(*is_whole);
  const JsonValue* const found = object.find(name);
  const auto* is = found == nullptr ? nullptr : found->get<double>();
  return is == nullptr ? 0 : *is;
}

std::optional<Firing> firing_of(const JsonValue& json) {
  const auto since = whole(json, "since");
  const auto told = whole(json, "told");
  if (!since || !told) return std::nullopt;
  Firing firing{.since = time_from_ms(*since), .told = time_from_ms(*told)};
  firing.reminders = static_cast<std::uint32_t>(whole(json, "reminders").value_or(0));
  firing.value = real(json, "value");
  const JsonValue* const seen = json.find("seen_by");
  const auto* processes = seen == nullptr ? nullptr : seen->get<JsonValue::Object>();
  if (processes == nullptr) return std::nullopt;
  for (const wire::JsonMember& one : *processes) {
    const auto* at = one.value.get<std::int64_t>();
    if (at == nullptr) return std::nullopt;
    firing.seen_by[one.name] = time_from_ms(*at);
  }
  return firing;
}

}  // namespace

std::string_view event_type_of(Notice::Kind kind) {
  switch (kind) {
    case Notice::Kind::kBegins:
      return "alert.begins";
    case Notice::Kind::kContinues:
      return "alert.continues";
    case Notice::Kind::kEnds:
      break;
  }
  return "alert.ends";
}

std::string json_of(const Rule& rule, const Notice& notice) {
  JsonObject out;
  out.add("alert", rule.id).add("state", kind_word(notice.kind));
  out.add("when", delivery::word_for(rule.when));
  if (!notice.subject.tenant.empty()) out.bytes("tenant", notice.subject.tenant);
  out.bytes(name_word(rule.when), notice.subject.name);
  if (!notice.subject.part.empty()) out.bytes("endpoint", notice.subject.part);
  if (unit_of(rule.when) != Unit::kNothing) {
    out.raw("value", number(notice.value)).raw("above", number(rule.above));
  }
  out.add("since", base::rfc3339_ms(notice.since)).add("at", base::rfc3339_ms(notice.at));
  return out.add("text", sentence_of(rule, notice)).text();
}

std::string sentence_of(const Rule& rule, const Notice& notice) {
  const std::string subject = subject_text(rule, notice.subject);
  const Unit unit = unit_of(rule.when);
  if (unit == Unit::kNothing) {
    return notice.kind == Notice::Kind::kEnds ? subject + ": enabled again"
                                              : subject + ": disabled, nothing is sent to it";
  }
  const std::string limit = amount(unit, rule.above);
  if (notice.kind == Notice::Kind::kEnds) {
    return base::format("{}: not more than {} {} any more", subject, limit,
                        what_is_counted(rule.when));
  }
  return base::format("{}: {} {}, more than {}", subject, amount(unit, notice.value),
                      what_is_counted(rule.when), limit);
}

std::string text_of(const Firings& firings) {
  JsonObject out;
  out.list("firing", firings, [](JsonObject& one, const auto& each) {
    const auto& [subject, firing] = each;
    one.bytes("tenant", subject.tenant).bytes("name", subject.name).bytes("part", subject.part);
    one.add("since", to_ms(firing.since)).add("told", to_ms(firing.told));
    one.add("reminders", firing.reminders).raw("value", base::format("{:.17g}", firing.value));
    one.object("seen_by", [&seen_by = firing.seen_by](JsonObject& seen) {
      for (const auto& [process, at] : seen_by) seen.add(process, to_ms(at));
    });
  });
  return out.text();
}

Result<Firings> firings_of(std::string_view json) {
  HAPAX_TRY(const JsonValue value, wire::read_strict_json(json));
  const JsonValue* const list = value.find("firing");
  const auto* all = list == nullptr ? nullptr : list->get<JsonValue::Array>();
  if (all == nullptr) return Error{Errc::kInvalidArgument, "it has no list 'firing'"};
  Firings firings;
  for (const JsonValue& one : *all) {
    auto firing = firing_of(one);
    if (!firing) return Error{Errc::kInvalidArgument, "an alert in it has no times"};
    firings.emplace(Subject{text(one, "tenant"), text(one, "name"), text(one, "part")},
                    *std::move(firing));
  }
  return firings;
}

}  // namespace hapax::alerts
