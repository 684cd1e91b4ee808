// stream and producer.
#include <algorithm>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "base/format.h"
#include "cli/op_options.h"
#include "cli/show.h"
#include "cli/store_commands.h"
#include "wire/json_text.h"

namespace hapax::cli {

namespace {

using wire::JsonValue;

std::string stream_path(const std::string& stream) {
  return "/api/v1/streams/" + client::encoded(stream);
}

std::string count_of(const JsonValue& stream) {
  const std::int64_t last = number_in(stream, "last");
  return std::to_string(last == 0 ? 0 : last - number_in(stream, "first") + 1);
}

std::string window_of(const JsonValue& stream) {
  const JsonValue* settings = stream.find("settings");
  const JsonValue* window = settings == nullptr ? nullptr : settings->find("window_s");
  if (window == nullptr) return "";
  const auto* seconds = window->get<std::int64_t>();
  return seconds == nullptr ? "forever" : base::format("{}s", *seconds);
}

int list_streams(Way& way) {
  const auto names = way.look("/api/v1/streams");
  if (!names) return way.exit_code();
  if (list_in(names->json, "streams").empty()) way.mention_tenants();
  if (way.json()) {
    base::print("{}\n", names->reply.body);
    return kExitOk;
  }
  Table table({"stream", "first", "last", "records", "bytes", "ids", "window", "consumers"});
  for (const JsonValue& name : list_in(names->json, "streams")) {
    const std::string& stream = *name.get<std::string>();
    const auto told = way.ask({.method = "GET", .path = stream_path(stream)});
    if (!told) return way.exit_code();
    if (told->reply.status == 404) continue;  // Deleted since it was listed.
    if (!told->good()) {
      way.fail(*told);
      return way.exit_code();
    }
    const JsonValue& json = told->json;
    const auto number = [&](std::string_view field) {
      return std::to_string(number_in(json, field));
    };
    table.add({printable(stream), number("first"), number("last"), count_of(json), number("bytes"),
               number("ids"), window_of(json), std::to_string(list_in(json, "consumers").size())});
  }
  base::print("{}", table.empty() ? "no streams\n" : table.text());
  return kExitOk;
}

void print_consumers(const JsonValue& stream) {
  Table table({"consumer", "acked to", "next", "in flight", "waiting", "dead letters"});
  for (const JsonValue& one : list_in(stream, "consumers")) {
    const auto number = [&](std::string_view field) {
      return std::to_string(number_in(one, field));
    };
    table.add({printable(text_in(one, "consumer")), number("floor"), number("next"),
               number("in_flight"), number("waiting"), number("dead_lettered")});
  }
  if (!table.empty()) base::print("\n{}", table.text());
}

int show_stream(Way& way, const std::string& stream) {
  const auto told = way.look(stream_path(stream));
  if (!told) return way.exit_code();
  if (way.json()) {
    base::print("{}\n", told->reply.body);
    return kExitOk;
  }
  base::print("{}", member_lines(told->json));
  print_consumers(told->json);
  return kExitOk;
}

// What is not named keeps its value; the server would give it its default.
int configure(Way& way, const std::vector<Member>& given) {
  const std::string path = stream_path(given.front().text());
  const auto told = way.look(path);
  if (!told) return way.exit_code();
  wire::JsonObject body;
  const JsonValue* settings = told->json.find("settings");
  const auto* old = settings == nullptr ? nullptr : settings->get<JsonValue::Object>();
  const auto named = [&](const std::string& name) {
    return std::any_of(given.begin(), given.end(),
                       [&](const Member& member) { return member.name == name; });
  };
  for (const auto& [name, value] : old == nullptr ? JsonValue::Object{} : *old) {
    if (!named(name)) body.raw(name, json_of(value));
  }
  for (auto member = given.begin() + 1; member != given.end(); ++member) {
    body.raw(member->name, member->json);
  }
  const auto done =
      way.ask_good({.method = "PATCH", .path = path, .body = body.text(), .key = fresh_key()});
  if (!done) return way.exit_code();
  base::print("{}\n", way.json() ? done->reply.body : verdict_line(done->json));
  return kExitOk;
}

void declare_configure(CLI::App& stream, int& exit_code) {
  struct State {
    Target target;
    OpOptions options;
  };
  const auto state = std::make_shared<State>();
  CLI::App* sub = stream.add_subcommand("configure", "Change settings; those not named stay");
  state->options.declare(*sub, "configure_stream");
  add_target(*sub, state->target);
  sub->footer("Example: hapax stream configure orders --window 7d --retention-count 1000000");
  sub->callback([state, &exit_code] {
    const auto members = state->options.members();
    exit_code = members ? on_way(state->target, [&](Way& way) { return configure(way, *members); })
                        : report(members.error());
  });
}

void declare_looks(CLI::App& stream, int& exit_code) {
  const auto listed = std::make_shared<Target>();
  CLI::App* list = stream.add_subcommand("list", "Show all streams");
  add_target(*list, *listed);
  list->footer("Example: hapax stream list");
  list->callback([listed, &exit_code] { exit_code = on_way(*listed, list_streams); });

  struct State {
    Target target;
    std::string stream;
  };
  const auto state = std::make_shared<State>();
  CLI::App* show = stream.add_subcommand("show", "Show settings, figures and consumers of one");
  show->add_option("stream", state->stream, "Name of the stream")->required();
  add_target(*show, state->target);
  show->footer("Example: hapax stream show orders --json");
  show->callback([state, &exit_code] {
    exit_code = on_way(state->target, [&](Way& way) { return show_stream(way, state->stream); });
  });
}

}  // namespace

void declare_streams(CLI::App& app, int& exit_code) {
  CLI::App* stream = app.add_subcommand("stream", "Create, list, show, configure, trim, delete");
  stream->require_subcommand(1);
  stream->footer(
      "Example: hapax stream create orders --window 24h\n         hapax stream list\n"
      "         hapax stream show orders");
  declare_op(*stream,
             {"create", "create_stream", "PUT", "/streams/{stream}", "Create a stream",
              "hapax stream create orders --window 24h --track-groups"},
             exit_code);
  declare_looks(*stream, exit_code);
  declare_configure(*stream, exit_code);
  declare_op(*stream,
             {"trim", "trim", "POST", "/streams/{stream}/trim", "Remove the oldest records",
              "hapax stream trim orders 1000"},
             exit_code);
  declare_op(*stream,
             {"delete", "delete_stream", "DELETE", "/streams/{stream}", "Delete a stream",
              "hapax stream delete orders"},
             exit_code);

  CLI::App* producer = app.add_subcommand("producer", "Open or retire a counting writer");
  producer->footer(
      "Example: hapax producer open orders shop\n"
      "         hapax producer retire orders shop --reason moved");
  producer->require_subcommand(1);
  declare_op(*producer,
             {"open", "open_producer", "POST", "/streams/{stream}/producers/{producer}",
              "Become the only writer under a name", "hapax producer open orders shop"},
             exit_code);
  declare_op(*producer,
             {"retire", "retire_producer", "DELETE", "/streams/{stream}/producers/{producer}",
              "Free the place of a writer that will not come back",
              "hapax producer retire orders shop --reason moved"},
             exit_code);
}

}  // namespace hapax::cli
