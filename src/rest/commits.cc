#include "rest/commits.h"

#include <algorithm>
#include <string>
#include <utility>

#include "access/admission.h"
#include "access/audit.h"
#include "access/gatherer.h"
#include "access/left_out.h"
#include "base/only_frees.h"
#include "base/words.h"
#include "rest/problem.h"
#include "rest/replies.h"
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

// An operation that goes to the store with those of other connections of its loop.
class GatheredCall final : public access::Asker, public std::enable_shared_from_this<GatheredCall> {
 public:
  GatheredCall(access::Entry& entry, SharedCall call, wire::SharedRequest request)
      : entry_(entry), call_(std::move(call)), request_(std::move(request)) {}

  [[nodiscard]] Status start() {
    access::Gatherer& gatherer = entry_.gatherer(call_->exchange->loop());
    const std::size_t bytes = call_->request().body.size() + call_->request().target.size();
    gatherer.make_room(bytes);
    gatherer.count(bytes);
    const access::TenantNames names(call_->caller());
    return gatherer.add(call_->caller(), names, request_->ops.front(), *this, 0);
  }

  void told(std::uint64_t, const Op& op, Verdict& verdict, Time when) override {
    if (access::lacks_something(verdict)) {
      return read_rest(access::LeftOut(op, std::move(verdict), when));
    }
    respond(std::move(verdict), when);
  }
  void failed(std::uint64_t, const Error& error) override { respond_one(call_, error); }
  void told_all() override {}
  [[nodiscard]] std::shared_ptr<access::Asker> keep() override { return shared_from_this(); }
  [[nodiscard]] std::string_view reference() const override { return call_->exchange->reference(); }

 private:
  void respond(Verdict verdict, Time when) {
    Answer answer{.committed = true, .time = when};
    answer.verdicts.push_back(std::move(verdict));
    respond_one(call_, std::move(answer));
  }
  void read_rest(access::LeftOut lacking) {
    const Time when = lacking.when;
    entry_.ask(
        call_->from(), call_->caller(),
        [lacking = std::move(lacking)](Store& store) mutable {
          return access::read_left_out(store, std::move(lacking));
        },
        [self = shared_from_this(), when](Result<Verdict> whole) {
          if (!whole) return respond_one(self->call_, whole.error());
          self->respond(*std::move(whole), when);
        });
  }

  access::Entry& entry_;
  const SharedCall call_;
  const wire::SharedRequest request_;
};

// Whether it is one operation, and nothing that only a commit of its own has. L18: so has what
// frees space the reserve of a full disk, which is for nobody's records.
bool can_be_gathered(const access::Caller& caller, const wire::Request& request) {
  if (request.ops.size() != 1 || request.id || request.transaction) return false;
  const Op& op = request.ops.front();
  if (std::holds_alternative<End>(op) || base::only_frees(op)) return false;
  return !access::is_audited(caller, op);
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
  if (tell == respond_one && can_be_gathered(call->caller(), **request)) {
    const auto gathered = std::make_shared<GatheredCall>(entry, call, *std::move(request));
    const Status started = gathered->start();
    if (!started) respond_one(call, started.error());
    return;
  }
  entry.commit(call->from(), call->caller(), *std::move(request),
               [call, tell](const Result<Answer>& answer) { tell(call, answer); });
}

bool understands(const SharedCall& call, std::initializer_list<std::string_view> others) {
  Status known = check_media(call->request(), others);
  if (known) return true;
  respond_error(call, std::move(known).error());
  return false;
}

Act many_ops(access::Entry& entry, std::string op, std::string list, Complete complete) {
  return [&entry, op = std::move(op), list = std::move(list),
          complete = std::move(complete)](const SharedCall& call) {
    const http::Request& http = call->request();
    const wire::Usual usual = usual_of(call->caller());
    auto request = http::same_name(http::media_type(http), kLines)
                       ? wire::read_op_lines(op, http.body, call->fields(), usual)
                       : wire::read_ops(op, list, http.body, call->fields(), usual);
    if (request && complete) {
      if (Status completed = complete(call, **request); !completed) request = completed.error();
    }
    const bool alone = request && (*request)->alone;
    carry_out(entry, call, std::move(request), alone ? respond_one : respond_list);
  };
}

}  // namespace hapax::rest
