// Routes whose body is operations.
#include <optional>
#include <string>
#include <utility>

#include "rest/api.h"
#include "rest/commits.h"
#include "rest/record_frames.h"
#include "rest/replies.h"

namespace hapax::rest {

namespace {

Act one_op(access::Entry& entry, std::string op) {
  return [&entry, op = std::move(op)](const SharedCall& call) {
    if (!understands(call)) return;
    carry_out(entry, call,
              wire::read_op(op, call->request().body, call->fields(), usual_of(call->caller())));
  };
}

Act append(access::Entry& entry) {
  return [&entry, json = many_ops(entry, "append", "records")](const SharedCall& call) {
    if (!understands(call, {kLines, kRecordFrames})) return;
    if (!http::same_name(http::media_type(call->request()), kRecordFrames)) return json(call);
    carry_out(entry, call, read_frames(call->name("stream"), call->request().body), respond_list);
  };
}

}  // namespace

void add_operation_routes(Router& router, access::Entry& entry) {
  const auto op_route = [&](std::string method, std::string_view path, const std::string& op,
                            std::string summary) {
    router.add({std::move(method), std::string(kRoot).append(path), one_op(entry, op),
                std::move(summary), op});
  };
  const auto list_route = [&](std::string_view path, const std::string& op, std::string list,
                              std::string summary) {
    Route route{"POST", std::string(kRoot).append(path),
                [act = many_ops(entry, op, list)](const SharedCall& call) {
                  if (understands(call, {kLines})) act(call);
                },
                std::move(summary), op};
    route.list = std::move(list);
    router.add(std::move(route));
  };

  op_route("PUT", "/streams/{stream}", "create_stream", "Create a stream");
  op_route("PATCH", "/streams/{stream}", "configure_stream", "Replace the settings of a stream");
  op_route("DELETE", "/streams/{stream}", "delete_stream", "Delete a stream");
  op_route("POST", "/streams/{stream}/trim", "trim", "Remove the oldest records");
  Route appends{"POST", std::string(kRoot) + "/streams/{stream}/records", append(entry),
                "Append one record, or many", "append"};
  appends.list = "records";
  router.add(std::move(appends));
  op_route("POST", "/streams/{stream}/producers/{producer}", "open_producer",
           "Become the only writer under a name");
  op_route("DELETE", "/streams/{stream}/producers/{producer}", "retire_producer",
           "Free the place of a producer");
  op_route("PUT", "/streams/{stream}/consumers/{consumer}", "create_consumer", "Create a consumer");
  op_route("DELETE", "/streams/{stream}/consumers/{consumer}", "delete_consumer",
           "Delete a consumer");
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
  op_route("DELETE", "/registers/{name}", "unset", "Remove a register");
  op_route("POST", "/registers/{name}/expire", "expire",
           "Say when a register goes, or that it stays");
  op_route("POST", "/registers/{name}/add", "add", "Add to a register that holds a number");
  op_route("PUT", "/positions/{source}", "advance", "Move the position of an outside source");
  op_route("POST", "/transactions/{transaction}", "begin", "Open a transaction");
  op_route("POST", "/transactions/{transaction}/end", "end", "Commit or abort a transaction");
  router.add({"POST", std::string(kRoot) + "/commit",
              [&entry](const SharedCall& call) {
                if (!understands(call)) return;
                const wire::Usual usual = usual_of(call->caller());
                carry_out(entry, call, wire::read_commit(call->request().body, usual),
                          respond_list);
              },
              "Several operations, all or nothing", "commit"});
}

}  // namespace hapax::rest
