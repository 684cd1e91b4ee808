// Routes that look and change nothing.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "rest/api.h"
#include "rest/replies.h"
#include "wire/answer.h"
#include "wire/json_schema.h"
#include "wire/json_text.h"

namespace hapax::rest {

namespace {

using access::Right;

template <class Read, class Then>
void ask(access::Entry& entry, const SharedCall& call, Read read, Then then) {
  entry.ask(call->from(), call->caller(), std::move(read), std::move(then));
}

// --- streams

void list_streams(access::Entry& entry, const SharedCall& call) {
  ask(
      entry, call, [](Store& store) { return store.streams(); },
      [call](const Result<std::vector<std::string>>& streams) {
        respond_read(call, streams, [&](const std::vector<std::string>& own) {
          wire::JsonArray list;
          for (const std::string& stream : own) list.add(wire::json_text(stream));
          return wire::JsonObject().raw("streams", list.text()).text();
        });
      });
}

template <class ToJson>
void describe(access::Entry& entry, const SharedCall& call, ToJson to_json) {
  ask(
      entry, call,
      [stream = std::string(call->name("stream"))](Store& store) { return store.describe(stream); },
      [call, to_json](const Result<StreamStats>& stats) { respond_read(call, stats, to_json); });
}

void describe_stream(access::Entry& entry, const SharedCall& call) {
  describe(entry, call, [](const StreamStats& stats) { return wire::json_of(stats); });
}

void get_horizon(access::Entry& entry, const SharedCall& call) {
  describe(entry, call, [](const StreamStats& stats) {
    return wire::JsonObject()
        .add("stream", stats.stream)
        .add("horizon_ms", to_ms(stats.horizon))
        .text();
  });
}

void list_consumers(access::Entry& entry, const SharedCall& call) {
  describe(entry, call, [](const StreamStats& stats) {
    wire::JsonArray list;
    for (const ConsumerStats& one : stats.consumers) list.add(wire::json_of(one));
    return wire::JsonObject().raw("consumers", list.text()).text();
  });
}

void get_consumer(access::Entry& entry, const SharedCall& call) {
  const auto find = [stream = std::string(call->name("stream")),
                     name = std::string(call->name("consumer"))](
                        Store& store) -> Result<std::optional<ConsumerStats>> {
    HAPAX_TRY(const StreamStats stats, store.describe(stream));
    for (const ConsumerStats& one : stats.consumers) {
      if (one.consumer == name) return std::optional(one);
    }
    return std::optional<ConsumerStats>();
  };
  ask(entry, call, find, [call](const Result<std::optional<ConsumerStats>>& found) {
    respond_found(call, found, "the consumer",
                  [](const ConsumerStats& one) { return wire::json_of(one); });
  });
}

void get_producer(access::Entry& entry, const SharedCall& call) {
  const auto find = [stream = std::string(call->name("stream")),
                     producer = std::string(call->name("producer"))](Store& store) {
    return store.find_producer(stream, producer);
  };
  ask(entry, call, find, [call](const Result<std::optional<ProducerStatus>>& found) {
    respond_found(call, found, "the producer",
                  [](const ProducerStatus& status) { return wire::json_of(status); });
  });
}

std::optional<std::string> text_of(std::optional<std::string_view> given) {
  return given ? std::optional<std::string>(*given) : std::nullopt;
}

void get_id(access::Entry& entry, const SharedCall& call) {
  const auto find = [stream = std::string(call->name("stream")), id = std::string(call->name("id")),
                     group = text_of(call->request().query_value("group"))](Store& store) {
    return store.find_id(stream, id, group);
  };
  ask(entry, call, find, [call](const Result<std::optional<IdStatus>>& found) {
    respond_found(call, found, "the id",
                  [](const IdStatus& status) { return wire::json_of(status); });
  });
}

// Bytes in the query, as they are or in base64 (either alphabet); nothing if there are none.
Result<std::optional<std::string>> query_bytes(const SharedCall& call, std::string_view name) {
  const std::string encoded = std::string(name) + "_base64";
  const auto plain = call->request().query_value(name);
  const auto text = call->request().query_value(encoded);
  if (plain && text) {
    return Error{Errc::kInvalidArgument, std::string(name) + ": " + std::string(name) + " and " +
                                             encoded + " exclude each other"};
  }
  if (plain) return std::optional<std::string>(*plain);
  if (!text) return std::optional<std::string>();
  auto bytes = wire::bytes_of_base64(*text);
  if (!bytes) return Error{Errc::kInvalidArgument, encoded + ": expected bytes in base64"};
  return bytes;
}

// The id in the query: where paths do not reach, because a proxy takes bytes for its own.
void find_id(access::Entry& entry, const SharedCall& call) {
  const auto id = query_bytes(call, "id");
  if (!id) return respond_error(call, id.error());
  const auto group = query_bytes(call, "group");
  if (!group) return respond_error(call, group.error());
  if (!*id) {
    return respond_error(call, {Errc::kInvalidArgument, "id: missing; or send id_base64"});
  }
  const auto find = [stream = std::string(call->name("stream")), id = **id,
                     group = *group](Store& store) { return store.find_id(stream, id, group); };
  ask(entry, call, find, [call](const Result<std::optional<IdStatus>>& found) {
    respond_found(call, found, "the id",
                  [](const IdStatus& status) { return wire::json_of(status); });
  });
}

// --- claims, registers, positions

void get_claim(access::Entry& entry, const SharedCall& call) {
  const auto find = [scope = std::string(call->name("scope")),
                     key = std::string(call->name("key"))](Store& store) {
    return store.find_claim(scope, key);
  };
  ask(entry, call, find, [call](const Result<std::optional<ClaimStatus>>& found) {
    respond_found(call, found, "the key", [&](const ClaimStatus& status) {
      return wire::json_of(status, bodies_for(call->caller()));
    });
  });
}

void get_register(access::Entry& entry, const SharedCall& call) {
  ask(
      entry, call,
      [name = std::string(call->name("name"))](Store& store) { return store.find_register(name); },
      [call](const Result<std::optional<RegisterValue>>& found) {
        respond_found(call, found, "the register",
                      [](const RegisterValue& value) { return wire::json_of(value); });
      });
}

void list_registers(access::Entry& entry, const SharedCall& call) {
  const auto cursor = option<std::uint64_t>(call, "cursor", 0);
  const auto max = option<std::uint32_t>(call, "max", 100);
  if (!cursor) return respond_error(call, cursor.error());
  if (!max) return respond_error(call, max.error());
  ask(
      entry, call,
      [cursor = *cursor, max = *max,
       prefix = std::string(call->request().query_value("prefix").value_or(""))](Store& store) {
        return store.scan_registers({cursor, max, prefix});
      },
      [call](const Result<RegisterPage>& page) {
        respond_read(call, page, [](const RegisterPage& own) { return wire::json_of(own); });
      });
}

void get_position(access::Entry& entry, const SharedCall& call) {
  ask(
      entry, call,
      [source = std::string(call->name("source"))](Store& store) {
        return store.find_position(source);
      },
      [call](const Result<std::optional<Position>>& found) {
        respond_found(call, found, "the source",
                      [](const Position& position) { return wire::json_of(position); });
      });
}

// --- figures

struct TenantFigures {
  std::uint64_t streams = 0;
  std::uint64_t ids = 0;
  std::uint64_t producers = 0;
  std::uint64_t consumers = 0;
  std::uint64_t bytes = 0;
};

Result<TenantFigures> figures_of(Store& store) {
  HAPAX_TRY(const std::vector<std::string> own, store.streams());
  TenantFigures sum;
  for (const std::string& stream : own) {
    const auto stats = store.describe(stream);
    if (!stats) continue;  // Deleted since it was listed.
    ++sum.streams;
    sum.ids += stats->ids;
    sum.producers += stats->producers;
    sum.consumers += stats->consumers.size();
    sum.bytes += stats->bytes;
  }
  return sum;
}

std::string json_of(const TenantFigures& sum) {
  return wire::JsonObject()
      .add("streams", sum.streams)
      .add("ids", sum.ids)
      .add("producers", sum.producers)
      .add("consumers", sum.consumers)
      .add("bytes", sum.bytes)
      .text();
}

// The store's own figures tell of every tenant: a tenant gets the sums over its streams.
void get_statistics(access::Entry& entry, const SharedCall& call) {
  if (call->caller().tenant.empty()) {
    return ask(
        entry, call, [](Store& store) { return store.statistics(); },
        [call](const Result<Statistics>& statistics) {
          respond_read(call, statistics, [](const Statistics& all) { return wire::json_of(all); });
        });
  }
  ask(
      entry, call, [](Store& store) { return figures_of(store); },
      [call](const Result<TenantFigures>& sum) {
        respond_read(call, sum, [](const TenantFigures& all) { return json_of(all); });
      });
}

// --- what the document says of queries

// Of at least one byte, in either alphabet; '+' in a query may be a space.
constexpr std::string_view kBase64 =
    R"({"type":"string","contentEncoding":"base64","minLength":2,"pattern":)"
    R"("^(?:[-A-Za-z0-9+/_ ]{4})*)"
    R"((?:[-A-Za-z0-9+/_ ][AQgw](?:==)?|[-A-Za-z0-9+/_ ]{2}[AEIMQUYcgkosw048]=?)?$"})";
// A place in a table.
constexpr std::string_view kCursor = R"({"type":"string","pattern":"^[0-9]{1,19}$"})";

QueryField group_field() {
  return {"group", wire::text_schema_of(wire::allowed::kKey),
          "Group key, where ids are unique per group"};
}

}  // namespace

void add_read_routes(Router& router, access::Entry& entry) {
  using Look = void (*)(access::Entry&, const SharedCall&);
  const auto add = [&](std::initializer_list<Right> any_of, std::string_view path, Look look,
                       std::string answer, std::string summary) {
    Route route{"GET", std::string(kRoot).append(path),
                guarded(any_of, [&entry, look](const SharedCall& call) { look(entry, call); }),
                std::move(summary), ""};
    route.answer = std::move(answer);
    if (look == get_id) {
      route.query.push_back(group_field());
    }
    if (look == find_id) {
      route.query = {{"id", wire::text_schema_of(wire::allowed::kKey), "Message id"},
                     {"id_base64", std::string(kBase64), "Message id that is not text"},
                     group_field(),
                     {"group_base64", std::string(kBase64), "Group key that is not text"}};
    }
    if (look == list_registers) {
      route.query = {
          {"cursor", std::string(kCursor), "`next` of the page before; 0 or none: from the start"},
          {"max", wire::number_schema_of(wire::allowed::kRead),
           "How many to look at; 100 without it"},
          {"prefix", wire::text_schema_of({}), "Only names that begin with it"}};
    }
    router.add(std::move(route));
  };
  const auto anybody = {Right::kConsume, Right::kProduce, Right::kAdmin};
  const auto workers = {Right::kProduce, Right::kAdmin};
  const auto readers = {Right::kConsume};  // as the operation `get`

  add(anybody, "/streams", list_streams, "Streams", "Names of all streams");
  add(anybody, "/streams/{stream}", describe_stream, "Stream", "Settings and figures of a stream");
  add(anybody, "/streams/{stream}/horizon", get_horizon, "Horizon",
      "Since when every id of a stream is known");
  add(workers, "/streams/{stream}/ids/{id}", get_id, "Id", "What is known of a message id");
  add(workers, "/streams/{stream}/ids", find_id, "Id", "The same, of an id in the query");
  add(workers, "/streams/{stream}/producers/{producer}", get_producer, "Producer",
      "Where a producer stands");
  add(anybody, "/streams/{stream}/consumers", list_consumers, "Consumers", "Consumers of a stream");
  add(anybody, "/streams/{stream}/consumers/{consumer}", get_consumer, "Consumer",
      "Where a consumer stands");
  add(workers, "/claims/{scope}/{key}", get_claim, "Claim",
      "State of a key; its stored result with the right to read bodies");
  add(readers, "/registers", list_registers, "Registers", "Names of registers, a page at a time");
  add(readers, "/registers/{name}", get_register, "Register", "Value and version of a register");
  add(workers, "/positions/{source}", get_position, "Position", "Position of an outside source");
  add({Right::kAdmin}, "/statistics", get_statistics, "Statistics", "Figures of the store");
}

}  // namespace hapax::rest
