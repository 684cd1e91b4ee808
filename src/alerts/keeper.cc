#include "alerts/keeper.h"

#include <array>
#include <deque>
#include <utility>
#include <variant>
#include <vector>

#include "alerts/notice_text.h"
#include "base/format.h"
#include "base/hex.h"
#include "digest/hash.h"
#include "wire/event_fields.h"

namespace hapax::alerts {

namespace {

constexpr int kTriesMax = 5;  // while other processes are faster

// Names can be longer than an id may be.
std::string short_id(std::string text) {
  constexpr std::size_t kShortMax = 150;
  if (text.size() <= kShortMax) return text;
  return base::hex(digest::sha256(text));
}

// Records of one alert; the commit looks at them.
struct Told {
  std::string key;
  std::string group;
  std::string payload;
  std::array<Header, 2> headers;
};

Told record_of(const Rule& rule, const Notice& notice) {
  const Subject& subject = notice.subject;
  return {.key = short_id(notice.key()),
          .group = short_id(base::format("{}/{}/{}", subject.tenant, subject.name, subject.part)),
          .payload = json_of(rule, notice),
          .headers = {Header{wire::kEventTypeHeader, event_type_of(notice.kind)},
                      Header{"content-type", "application/json"}}};
}

}  // namespace

std::string register_of(const Rule& rule) {
  return base::format("{}{}.firing", kWorkflowPrefix, rule.id);
}

Status Keeper::look(std::span<const Observation> all, Time now) {
  watch_.see(all, now);
  for (int i = 0; i < kTriesMax; ++i) {
    HAPAX_TRY(const Written written, look_once(now));
    if (written == Written::kDone) return Ok{};
  }
  return Error{Errc::kUnavailable, base::format("register '{}' changed {} times in a row",
                                                register_of(rule_), kTriesMax)};
}

Result<Keeper::Written> Keeper::look_once(Time now) {
  HAPAX_TRY(const auto found, ports_.store.find_register(register_of(rule_)));
  Firings firings;
  if (found && !found->value.empty()) {
    auto read = firings_of(found->value);
    if (!read) {
      return Error{read.error().code,
                   base::format("register '{}' was written by somebody else: {}; remove it",
                                register_of(rule_), read.error().detail)};
    }
    firings = *std::move(read);
  }
  const RuleWatch::Turn turn = watch_.judge(firings, now);
  if (std::exchange(left_out_, turn.left_out) < turn.left_out) ports_.left_out(turn.left_out);
  if (!turn.changed) return Written::kDone;
  return write(turn, found ? found->version : Version{});
}

Result<Keeper::Written> Keeper::write(const RuleWatch::Turn& turn, Version expected) {
  const std::string name = register_of(rule_);
  const std::string value = text_of(turn.firings);
  std::deque<Told> records;
  std::vector<Op> ops{Set{.name = name, .value = value, .expected = expected}};
  for (const Notice& notice : turn.notices) {
    if (ports_.stream.empty()) break;
    const Told& told = records.emplace_back(record_of(rule_, notice));
    ops.push_back(Append{.stream = ports_.stream,
                         .payload = told.payload,
                         .id = told.key,
                         .group = told.group,
                         .headers = told.headers});
  }
  HAPAX_TRY(const Answer answer, ports_.store.commit({ops}));
  for (const Verdict& verdict : answer.verdicts) {
    if (const auto* refused = std::get_if<Refused>(&verdict)) return refused->error;
  }
  if (!answer.committed) {
    if (std::holds_alternative<Superseded>(answer.verdicts.front())) return Written::kOvertaken;
    return Error{Errc::kPreconditionFailed,
                 base::format("stream '{}' did not take an alert: {}", ports_.stream,
                              word_of(answer.verdicts.back()))};
  }
  for (const Notice& notice : turn.notices) ports_.told(notice);
  return Written::kDone;
}

}  // namespace hapax::alerts
