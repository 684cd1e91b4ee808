// What a workflow has not confirmed, over HTTP.
#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "base/format.h"
#include "rest/api.h"
#include "rest/replies.h"
#include "wire/json_schema.h"

namespace hapax::rest {

namespace {

Result<UndeliveredWanted> undelivered_wanted(const SharedCall& call) {
  constexpr std::uint64_t kLatest = std::numeric_limits<std::int64_t>::max();
  UndeliveredWanted wanted;
  if (const auto endpoint = call->request().query_value("endpoint")) {
    wanted.endpoint = std::string(*endpoint);
  }
  if (call->request().query_value("since_ms")) {
    HAPAX_TRY(const std::uint64_t since, option<std::uint64_t>(call, "since_ms", 0));
    wanted.since_ms = static_cast<std::int64_t>(std::min(since, kLatest));
  }
  if (const auto from = call->request().query_value("from")) {
    if (from->empty()) return Error{Errc::kInvalidArgument, "from: is empty"};
    wanted.from = *from;
  }
  HAPAX_TRY(wanted.max, option<std::uint32_t>(call, "max", wanted.max));
  if (wanted.max == 0 || wanted.max > kUndeliveredMax) {
    return Error{Errc::kInvalidArgument,
                 base::format("max: expected 1 to {}, got {}", kUndeliveredMax, wanted.max)};
  }
  HAPAX_TRY(wanted.count, option<bool>(call, "count", false));
  return wanted;
}

Act list_undelivered(access::Entry& entry, const RecordDirectory& directory) {
  return [&entry, &directory](const SharedCall& call) {
    const auto wanted = undelivered_wanted(call);
    if (!wanted) return respond_error(call, wanted.error());
    const auto list = [&directory, wanted = *wanted, tenant = call->caller().tenant,
                       workflow = std::string(call->name("workflow"))](Store& store) {
      return directory.undelivered(tenant, workflow, wanted, store);
    };
    entry.ask(call->from(), call->caller(), list, [call](const Result<std::string>& json) {
      respond_read(call, json, [](const std::string& text) { return text; });
    });
  };
}

}  // namespace

void add_undelivered_route(Router& router, access::Entry& entry, const RecordDirectory& directory) {
  Route route{
      "GET", std::string(kRoot) + "/workflows/{workflow}/undelivered",
      guarded({access::Right::kAdmin, access::Right::kConsume}, list_undelivered(entry, directory)),
      "What a workflow has not confirmed, oldest first", ""};
  route.answer = "Undelivered";
  route.query = {
      {"endpoint", R"({"type":"string"})", "For the endpoint of that name"},
      {"since_ms", wire::number_schema_of({}), "Came to where they are then or later"},
      {"max", wire::number_schema_of({1, kUndeliveredMax}), "How many at most; 100 without it"},
      {"from", R"({"type":"string","pattern":"^[0-9]{1,19}\\.[0-9]{1,19}\\.[0-9]{1,19}$"})",
       "`next` of the page before"},
      {"count", R"({"type":"boolean"})", "Only how many there are; also a page at a time"}};
  router.add(std::move(route));
}

}  // namespace hapax::rest
