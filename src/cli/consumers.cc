// consumer, receive, ack, nack, extend, redrive.
#include <algorithm>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "base/format.h"
#include "cli/op_options.h"
#include "cli/show.h"
#include "cli/span.h"
#include "cli/store_commands.h"
#include "wire/json_text.h"

namespace hapax::cli {

namespace {

using wire::JsonValue;

constexpr std::string_view kConsumerPath = "/streams/{stream}/consumers/{consumer}";
constexpr Duration kReceiveWaitMax{60'000};

constexpr OpSubcommand kConsumerCommands[] = {
    {"create", "create_consumer", "PUT", kConsumerPath, "Create a consumer",
     "hapax consumer create orders mail --attempts-max 5"},
    {"seek", "seek", "POST", "/streams/{stream}/consumers/{consumer}/seek",
     "Let it go on from elsewhere", "hapax consumer seek orders mail 1"},
    {"delete", "delete_consumer", "DELETE", kConsumerPath, "Delete a consumer",
     "hapax consumer delete orders mail"},
};

// --- receive

struct ReceiveOptions {
  Target target;
  OpOptions fields;
  std::string wait;
  bool ack = false;
};

void print_deliveries(const JsonValue& verdict) {
  Table table({"sequence", "receipt", "attempt", "lease until", "id", "group", "payload"});
  for (const JsonValue& one : list_in(verdict, "records")) {
    const auto text = [&](const std::string& name) { return printable(bytes_in(one, name)); };
    table.add({std::to_string(number_in(one, "sequence")), text("receipt"),
               std::to_string(number_in(one, "attempt")),
               instant_text(number_in(one, "lease_until_ms")), text("id"), text("group"),
               one.find("gone") == nullptr ? text("payload") : "(gone from the stream)"});
  }
  base::print("{}", table.empty() ? "nothing to hand out\n" : table.text());
}

std::string path_of(const std::string& stream, const std::string& consumer, std::string_view act) {
  return base::format("/api/v1/streams/{}/consumers/{}/{}", client::encoded(stream),
                      client::encoded(consumer), act);
}

int ack_all(Way& way, const std::string& path, const JsonValue& received) {
  wire::JsonArray acks;
  for (const JsonValue& one : list_in(received, "records")) {
    acks.add(wire::JsonObject().add("receipt", text_in(one, "receipt")).text());
  }
  const auto told = way.ask_good({.method = "POST",
                                  .path = path,
                                  .body = wire::JsonObject().raw("acks", acks.text()).text(),
                                  .key = fresh_key()});
  if (!told) return way.exit_code();
  const int exit_code = exit_of(*told);
  if (exit_code != kExitOk) {
    way.fail(exit_code, "not all of them could be acked; they will be handed out again");
  }
  return exit_code;
}

int receive(Way& way, const ReceiveOptions& options, const std::vector<Member>& members) {
  client::ApiCall call = call_of("POST", "/streams/{stream}/consumers/{consumer}/receive", members);
  if (!options.wait.empty()) {
    const auto wait = span_of(options.wait);
    if (!wait || *wait > kReceiveWaitMax) {
      return way.fail(kExitUsage,
                      "--wait '" + options.wait + "' is no span of time up to 60s, such as 5s");
    }
    base::append_format(call.path, "?wait_ms={}", wait->count());
    call.waits = *wait;
  }
  const auto told = way.ask_good(call);
  if (!told) return way.exit_code();
  if (way.json()) {
    base::print("{}\n", told->reply.body);
  } else {
    print_deliveries(told->json);
  }
  if (!options.ack || list_in(told->json, "records").empty()) return kExitOk;
  return ack_all(way, path_of(members[0].text(), members[1].text(), "ack"), told->json);
}

void declare_receive(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<ReceiveOptions>();
  CLI::App* sub = app.add_subcommand("receive", "Take records of a consumer under a lease");
  options->fields.declare(*sub, "receive");
  sub->add_option("--wait", options->wait, "Wait so long for a first record, up to 60s");
  sub->add_flag("--ack", options->ack, "Ack them once they are printed");
  add_target(*sub, options->target);
  sub->footer(
      "Example: hapax receive orders mail --max 10 --lease 30s --wait 5s\n"
      "         hapax receive orders mail --ack --json");
  sub->callback([options, &exit_code] {
    const auto members = options->fields.members();
    exit_code = members ? on_way(options->target,
                                 [&](Way& way) { return receive(way, *options, *members); })
                        : report(members.error());
  });
}

// --- acts on receipts

struct ReceiptOptions {
  Target target;
  OpOptions fields;
  std::vector<std::string> receipts;
};

std::string receipts_body(const std::string& list, const std::vector<std::string>& receipts,
                          const std::vector<Member>& members) {
  wire::JsonArray all;
  for (const std::string& receipt : receipts) {
    wire::JsonObject one;
    one.add("receipt", receipt);
    for (const Member& member : members) {
      if (member.name != "stream" && member.name != "consumer") one.raw(member.name, member.json);
    }
    all.add(one.text());
  }
  return wire::JsonObject().raw(list, all.text()).text();
}

// Each on its own; one that is stale makes the command fail.
int print_each(const Way& way, const Told& told, const std::vector<std::string>& receipts) {
  int exit_code = kExitOk;
  std::size_t at = 0;
  for (const JsonValue& verdict : list_in(told.json, "verdicts")) {
    if (!way.json()) base::print("{}  {}\n", printable(receipts[at]), verdict_line(verdict));
    exit_code = std::max(exit_code, exit_of_verdict(verdict));
    ++at;
  }
  if (way.json()) base::print("{}\n", told.reply.body);
  return exit_code;
}

int act_on_receipts(Way& way, const std::string& op, const ReceiptOptions& options,
                    const std::vector<Member>& members) {
  client::ApiCall call{.method = "POST",
                       .path = path_of(members[0].text(), members[1].text(), op),
                       .body = receipts_body(op + "s", options.receipts, members)};
  call.key = fresh_key();
  const auto told = way.ask(call);
  if (!told) return way.exit_code();
  if (told->json.find("verdicts") != nullptr) return print_each(way, *told, options.receipts);
  way.fail(*told);
  return way.exit_code();
}

void declare_receipts(CLI::App& app, const std::string& op, const std::string& help,
                      const std::string& example, int& exit_code) {
  const auto options = std::make_shared<ReceiptOptions>();
  CLI::App* sub = app.add_subcommand(op, help);
  options->fields.declare(*sub, op, {"receipt"});
  sub->add_option("receipts", options->receipts, "As they were handed out")->required();
  add_target(*sub, options->target);
  sub->footer("Example: " + example);
  sub->callback([options, op, &exit_code] {
    const auto members = options->fields.members();
    exit_code = members
                    ? on_way(options->target,
                             [&](Way& way) { return act_on_receipts(way, op, *options, *members); })
                    : report(members.error());
  });
}

}  // namespace

void declare_consumers(CLI::App& app, int& exit_code) {
  CLI::App* consumer = app.add_subcommand("consumer", "Create, seek, delete (stream show lists)");
  consumer->require_subcommand(1);
  consumer->footer(
      "Example: hapax consumer create orders mail --attempts-max 5\n"
      "         hapax consumer seek orders mail 1");
  for (const OpSubcommand& command : kConsumerCommands) declare_op(*consumer, command, exit_code);
  declare_receive(app, exit_code);
  declare_receipts(app, "ack", "Say that records are done", "hapax ack orders mail 1-7 2-8",
                   exit_code);
  declare_receipts(app, "nack", "Give records back",
                   "hapax nack orders mail 1-7 --delay 30s --reason 'mail is down'", exit_code);
  declare_receipts(app, "extend", "Extend the leases of records",
                   "hapax extend orders mail 1-7 --lease 60s", exit_code);
  declare_op(app,
             {"redrive", "redrive", "POST", "/streams/{dead_letters}/redrive",
              "Put a dead letter back", "hapax redrive orders.dead 1"},
             exit_code);
}

}  // namespace hapax::cli
