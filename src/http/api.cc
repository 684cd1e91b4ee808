#include "http/api.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "http/problem.h"
#include "http/verdict_response.h"
#include "wire/answer.h"
#include "wire/json_text.h"
#include "wire/text_value.h"

namespace hapax::http {

namespace {

constexpr std::string_view kRoot = "/api/v1";
constexpr std::string_view kLines = "application/x-ndjson";

// --- requests

// The media type without its parameters.
std::string_view media_type(const Request& request) {
  const std::string_view full = request.fields.get("Content-Type");
  return full.substr(0, std::min(full.find(';'), full.size()));
}

// Idempotency-Key, quoted or bare: the commit's id.
Result<std::string> idempotency_key(const Request& request) {
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
      if (!escapes && (raw[i] == '"' || raw[i] == '\\')) return bad("a quote is not escaped");
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

Status give_id(const Request& http, wire::Request& request) {
  HAPAX_TRY(const std::string key, idempotency_key(http));
  if (key.empty()) return Ok{};
  if (!request.id.empty() && request.id != key) {
    return Error{Errc::kInvalidArgument, "id: differs from the Idempotency-Key header"};
  }
  request.id = request.keep(key);
  return Ok{};
}

// A number from the query or the body's options.
template <class Value>
Result<Value> option(const SharedCall& call, std::string_view name, Value otherwise) {
  const auto text = call->request().query_value(name);
  if (!text) return otherwise;
  Value value{};
  if (const auto expected = wire::from_text(*text, value)) {
    return Error{Errc::kInvalidArgument, std::string(name) + ": expected " + *expected + ", got '" +
                                             std::string(*text) + "'"};
  }
  return value;
}

// --- one operation

void respond(const SharedCall& call, const Result<Answer>& answer) {
  if (!answer) return call->exchange->respond(problem_response(answer.error()));
  if (answer->verdicts.size() != 1) return call->exchange->respond(answer_response(*answer));
  Response response = verdict_response(answer->verdicts.front());
  if (answer->repeated) response.fields.add("Idempotent-Replayed", "true");
  call->exchange->respond(response);
}

void carry_out(front::Desk& desk, const SharedCall& call, Result<wire::SharedRequest> request,
               void (*tell)(const SharedCall&, const Result<Answer>&) = respond) {
  if (request) {
    if (Status named = give_id(call->request(), **request); !named) request = named.error();
  }
  if (!request) return call->exchange->respond(problem_response(request.error()));
  desk.commit(call->exchange->loop(), call->caller, *std::move(request),
              [call, tell](const Result<Answer>& answer) { tell(call, answer); });
}

Act one_op(front::Desk& desk, std::string op) {
  return [&desk, op = std::move(op)](const SharedCall& call) {
    carry_out(desk, call, wire::read_op(op, call->request().body, call->fields()));
  };
}

// --- several of one kind

void respond_list(const SharedCall& call, const Result<Answer>& answer) {
  if (!answer) return call->exchange->respond(problem_response(answer.error()));
  call->exchange->respond(answer_response(*answer));
}

// One object is answered with its verdict, a list with a list.
Act many_ops(front::Desk& desk, std::string op, std::string list) {
  return [&desk, op = std::move(op), list = std::move(list)](const SharedCall& call) {
    const Request& http = call->request();
    const bool lines = media_type(http) == kLines;
    const std::size_t first = http.body.find_first_not_of(" \t\r\n");
    const bool one = !lines && first != std::string::npos && http.body[first] == '{' &&
                     http.body.find("\"" + list + "\"") == std::string::npos;
    auto request = lines ? wire::read_op_lines(op, http.body, call->fields())
                         : wire::read_ops(op, list, http.body, call->fields());
    carry_out(desk, call, std::move(request), one ? respond : respond_list);
  };
}

// --- reads

template <class Value, class ToJson>
void respond_read(const SharedCall& call, const Result<Value>& value, const ToJson& to_json) {
  if (!value) {
    Error error = value.error();
    front::TenantNames(call->caller).clean(error.detail);
    return call->exchange->respond(problem_response(error));
  }
  call->exchange->respond(json_response(200, to_json(*value)));
}

// A read that finds something or nothing.
template <class Value, class ToJson>
void respond_found(const SharedCall& call, const Result<std::optional<Value>>& found,
                   std::string what, const ToJson& to_json) {
  if (found && !*found) {
    return call->exchange->respond(problem_response(
        Error{Errc::kNotFound, what + " is not known; it was never there, or is forgotten"}));
  }
  respond_read(call, found, [&](const std::optional<Value>& value) { return to_json(*value); });
}

bool may(const SharedCall& call, front::Right right) {
  const Status allowed = front::check_right(call->caller, right);
  if (!allowed) call->exchange->respond(problem_response(allowed.error()));
  return allowed.ok();
}

std::string inside(const SharedCall& call, std::string_view name) {
  return front::TenantNames(call->caller).inside(call->name(name));
}

void list_streams(front::Desk& desk, const SharedCall& call) {
  if (!may(call, front::Right::kConsume)) return;
  desk.ask(
      call->exchange->loop(), [](Store& store) { return store.streams(); },
      [call](const Result<std::vector<std::string>>& streams) {
        respond_read(call, streams, [&](const std::vector<std::string>& all) {
          const front::TenantNames names(call->caller);
          wire::JsonArray list;
          for (const std::string& stream : all) {
            if (names.is_ours(stream)) list.add(wire::json_text(names.outside(stream)));
          }
          return wire::JsonObject().raw("streams", list.text()).text();
        });
      });
}

void describe_stream(front::Desk& desk, const SharedCall& call) {
  if (!may(call, front::Right::kConsume)) return;
  desk.ask(
      call->exchange->loop(),
      [stream = inside(call, "stream")](Store& store) { return store.describe(stream); },
      [call](Result<StreamStats> stats) {
        if (stats) stats->stream = call->name("stream");
        respond_read(call, stats, [](const StreamStats& one) { return wire::json_of(one); });
      });
}

// --- records, with waiting

// Asks again at every ring and at least this often, until there is an answer or the time is over.
constexpr std::chrono::milliseconds kLookAgain{1'000};
constexpr std::chrono::milliseconds kWaitMax{60'000};

struct Waiting {
  std::chrono::steady_clock::time_point until;
  std::string stream;  // inside
  std::uint64_t ring = 0;
  bool woken = false;
};

// Calls `again` once: at the ring, after a while, or never if the client has gone.
void wait_for_ring(front::Desk& desk, const SharedCall& call,
                   const std::shared_ptr<Waiting>& waiting, std::function<void()> again) {
  net::Loop& loop = call->exchange->loop();
  waiting->woken = false;
  const auto wake = [call, waiting, again = std::move(again)] {
    if (std::exchange(waiting->woken, true) || call->exchange->gone()) return;
    again();
  };
  waiting->ring = desk.bell().wait(waiting->stream, loop, wake);
  const auto next = std::min(waiting->until, std::chrono::steady_clock::now() + kLookAgain);
  loop.at(next, [&desk, waiting, wake] {
    desk.bell().cancel(waiting->stream, waiting->ring);
    wake();
  });
}

Result<std::shared_ptr<Waiting>> begin_waiting(const SharedCall& call) {
  HAPAX_TRY(const Duration wait, option(call, "wait_ms", Duration{0}));
  auto waiting = std::make_shared<Waiting>();
  const auto span = std::clamp<std::chrono::milliseconds>(wait, Duration{0}, kWaitMax);
  waiting->until = std::chrono::steady_clock::now() + span;
  waiting->stream = inside(call, "stream");
  return waiting;
}

bool time_is_over(const Waiting& waiting) {
  return std::chrono::steady_clock::now() >= waiting.until;
}

struct ReadOptions {
  Sequence from{1};
  std::uint32_t max = 100;
};

void read_records(front::Desk& desk, const SharedCall& call, ReadOptions options,
                  const std::shared_ptr<Waiting>& waiting) {
  const auto read = [stream = waiting->stream, options](Store& store) {
    return store.read({.stream = stream, .from = options.from, .max = options.max});
  };
  desk.ask(call->exchange->loop(), read, [&desk, call, options, waiting](Result<Records> records) {
    if (records && records->records.empty() && !time_is_over(*waiting)) {
      return wait_for_ring(desk, call, waiting, [&desk, call, options, waiting] {
        read_records(desk, call, options, waiting);
      });
    }
    const front::TenantNames names(call->caller);
    if (records) {
      for (Record& record : records->records) {
        if (record.lineage) names.clean(record.lineage->stream);
      }
    }
    respond_read(call, records, [](const Records& found) { return wire::json_of(found); });
  });
}

void get_records(front::Desk& desk, const SharedCall& call) {
  if (!may(call, front::Right::kConsume)) return;
  const auto from = option(call, "from", Sequence{1});
  const auto max = option<std::uint32_t>(call, "max", 100);
  const auto waiting = begin_waiting(call);
  if (!from) return call->exchange->respond(problem_response(from.error()));
  if (!max) return call->exchange->respond(problem_response(max.error()));
  if (!waiting) return call->exchange->respond(problem_response(waiting.error()));
  read_records(desk, call, {*from, *max}, *waiting);
}

}  // namespace

void add_store_routes(Router& router, front::Desk& desk) {
  const auto op_route = [&](std::string method, std::string path, std::string op,
                            std::string summary) {
    router.add(
        {std::move(method), std::string(kRoot) + path, one_op(desk, op), std::move(summary), op});
  };
  const auto list_route = [&](std::string path, std::string op, std::string list,
                              std::string summary) {
    router.add({"POST", std::string(kRoot) + path, many_ops(desk, op, std::move(list)),
                std::move(summary), op});
  };
  const auto read_route = [&](std::string path, void (*act)(front::Desk&, const SharedCall&),
                              std::string summary) {
    router.add({"GET", std::string(kRoot) + path,
                [&desk, act](const SharedCall& call) { act(desk, call); }, std::move(summary), ""});
  };

  read_route("/streams", list_streams, "Names of all streams");
  read_route("/streams/{stream}", describe_stream, "Settings and figures of a stream");
  op_route("PUT", "/streams/{stream}", "create_stream", "Create a stream");
  op_route("PATCH", "/streams/{stream}", "configure_stream", "Replace the settings of a stream");
  op_route("DELETE", "/streams/{stream}", "delete_stream", "Delete a stream");
  op_route("POST", "/streams/{stream}/trim", "trim", "Remove the oldest records");
  list_route("/streams/{stream}/records", "append", "records", "Append one record, or many");
  read_route("/streams/{stream}/records", get_records, "Read records; wait_ms waits for some");
  op_route("POST", "/streams/{stream}/producers/{producer}", "open_producer",
           "Become the only writer under a name");
  op_route("DELETE", "/streams/{stream}/producers/{producer}", "retire_producer",
           "Free the place of a producer");
  op_route("PUT", "/streams/{stream}/consumers/{consumer}", "create_consumer", "Create a consumer");
  op_route("DELETE", "/streams/{stream}/consumers/{consumer}", "delete_consumer",
           "Delete a consumer");
  op_route("POST", "/streams/{stream}/consumers/{consumer}/receive", "receive",
           "Hand out records under leases");
  list_route("/streams/{stream}/consumers/{consumer}/ack", "ack", "acks", "Ack records");
  list_route("/streams/{stream}/consumers/{consumer}/nack", "nack", "nacks", "Give records back");
  list_route("/streams/{stream}/consumers/{consumer}/extend", "extend", "extends", "Extend leases");
  op_route("POST", "/streams/{stream}/consumers/{consumer}/seek", "seek", "Go on from elsewhere");
  op_route("POST", "/streams/{dead_letters}/redrive", "redrive", "Put a dead letter back");
  op_route("POST", "/claims/{scope}/{key}", "claim", "Claim the work behind a key");
  op_route("POST", "/claims/{scope}/{key}/renew", "renew", "Renew the lease of a claim");
  op_route("POST", "/claims/{scope}/{key}/settle", "settle", "Finish a claim");
  op_route("POST", "/claims/{scope}/{key}/resolve", "resolve", "Decide an unknown outcome");
  op_route("DELETE", "/claims/{scope}/{key}", "forget", "Forget a key");
  op_route("PUT", "/registers/{name}", "set", "Set a register");
  op_route("PUT", "/positions/{source}", "advance", "Move the position of an outside source");
  op_route("POST", "/transactions/{transaction}", "begin", "Open a transaction");
  op_route("POST", "/transactions/{transaction}/end", "end", "Commit or abort a transaction");
  router.add({"POST", std::string(kRoot) + "/commit",
              [&desk](const SharedCall& call) {
                carry_out(desk, call, wire::read_commit(call->request().body), respond_list);
              },
              "Several operations, all or nothing", ""});
}

}  // namespace hapax::http
