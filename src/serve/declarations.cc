#include "serve/declarations.h"

#include <utility>
#include <variant>

#include <hapax/limits.h>

#include "base/format.h"
#include "base/tenant_frame.h"
#include "config/workflows.h"
#include "wire/json_text.h"
#include "wire/strict_json.h"

namespace hapax::serve {

namespace {

using delivery::DeclaredIn;
using wire::JsonValue;

constexpr std::int64_t kDeclarationForm = 1;
constexpr std::string_view kDeclarations = "workflows/";

std::string news_stream() { return base::StoreName{base::kOwnTenant, "workflows"}.text(); }

// Neither a tenant nor a workflow has a slash in its name.
std::string written_name(const WorkflowName& name) {
  return base::format("{}/{}", name.first, name.second);
}
std::optional<WorkflowName> read_name(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  return WorkflowName{text.substr(0, slash), text.substr(slash + 1)};
}

std::string declaration_prefix() { return base::StoreName{base::kOwnTenant, kDeclarations}.text(); }
std::string declaration_register(const WorkflowName& name) {
  return declaration_prefix() + written_name(name);
}

StreamSettings news_settings() {
  StreamSettings settings;
  settings.track_groups = false;
  settings.retention.count = Declarations::kNewsKept;
  return settings;
}

std::string text_member(const JsonValue& json, std::string_view name) {
  const JsonValue* found = json.find(name);
  const auto* text = found == nullptr ? nullptr : found->get<std::string>();
  return text == nullptr ? std::string() : *text;
}
std::int64_t number_member(const JsonValue& json, std::string_view name) {
  const JsonValue* found = json.find(name);
  const auto* number = found == nullptr ? nullptr : found->get<std::int64_t>();
  return number == nullptr ? 0 : *number;
}
bool flag_member(const JsonValue& json, std::string_view name) {
  const JsonValue* found = json.find(name);
  const auto* flag = found == nullptr ? nullptr : found->get<bool>();
  return flag != nullptr && *flag;
}

Result<Declaration> read_declaration(const WorkflowName& name, std::string_view text) {
  HAPAX_TRY(const JsonValue json, wire::read_strict_json(text));
  if (number_member(json, "form") != kDeclarationForm) {
    return Error{Errc::kFormatVersion, "another version of Hapax wrote it"};
  }
  HAPAX_TRY(delivery::Workflow workflow,
            config::workflow_from_json(text_member(json, "declaration")));
  workflow.tenant = name.first;
  workflow.declared_in = text_member(json, "declared_in") == word_for(DeclaredIn::kFile)
                             ? DeclaredIn::kFile
                             : DeclaredIn::kApi;
  return Declaration{.workflow = std::move(workflow),
                     .removing = flag_member(json, "removing"),
                     .drop_undelivered = flag_member(json, "drop_undelivered"),
                     .changed = time_from_ms(number_member(json, "changed_ms")),
                     .changed_by = text_member(json, "changed_by")};
}

}  // namespace

std::string text_of(const Declaration& declaration) {
  const delivery::Workflow& workflow = declaration.workflow;
  const bool of_file = workflow.declared_in == DeclaredIn::kFile;
  return wire::JsonObject()
      .add("form", kDeclarationForm)
      .add("declared_in", word_for(workflow.declared_in))
      .add("removing", declaration.removing)
      .add("drop_undelivered", declaration.drop_undelivered)
      .add("changed_ms", to_ms(declaration.changed))
      .add("changed_by", declaration.changed_by)
      .add("declaration", config::to_json(workflow, of_file ? config::Secrets::kHidden
                                                            : config::Secrets::kWritten))
      .text();
}

Result<std::optional<StoredDeclaration>> Declarations::find(const WorkflowName& name) {
  HAPAX_TRY(const auto found, store_.find_register(declaration_register(name)));
  if (!found) return std::optional<StoredDeclaration>();
  StoredDeclaration stored{.version = found->version};
  auto read = read_declaration(name, found->value);
  if (read) {
    stored.declaration = *std::move(read);
  } else {
    stored.unreadable = read.error().detail;
  }
  return std::optional(std::move(stored));
}

Result<std::optional<Version>> Declarations::act(const Declaration& declaration, Version expected,
                                                 std::vector<Op> ops) {
  const std::string name = declaration_register(name_of(declaration.workflow));
  const std::string text = text_of(declaration);
  ops.insert(ops.begin(),
             Set{.name = name, .value = text, .mode = SetMode::kVersion, .expected = expected});
  HAPAX_TRY(const Answer answer, store_.commit({.ops = ops}));
  if (answer.committed) return std::optional(std::get<Registered>(answer.verdicts.at(0)).version);
  for (const Verdict& verdict : answer.verdicts) {
    if (std::holds_alternative<Superseded>(verdict)) return std::optional<Version>();
    if (const auto* refused = std::get_if<Refused>(&verdict)) return refused->error;
  }
  return Error{Errc::kUnavailable, "what the workflow keeps was changed meanwhile; try again"};
}

Result<std::optional<Version>> Declarations::put(const Declaration& declaration, Version expected) {
  const std::string news = news_stream();
  const std::string what = written_name(name_of(declaration.workflow));
  return act(declaration, expected,
             {CreateStream{news, news_settings()}, Append{.stream = news, .payload = what}});
}

Result<bool> Declarations::forget(const Declaration& declaration, Version expected) {
  const WorkflowName name = name_of(declaration.workflow);
  const std::string place = declaration_register(name);
  const std::string news = news_stream();
  const std::string what = written_name(name);
  HAPAX_TRY(const auto gone, act(declaration, expected,
                                 {Unset{.name = place}, CreateStream{news, news_settings()},
                                  Append{.stream = news, .payload = what}}));
  return gone.has_value();
}

Result<std::vector<WorkflowName>> Declarations::names() {
  const std::string prefix = declaration_prefix();
  std::vector<WorkflowName> all;
  RegisterScan scan{.max = limits::kReadMax, .prefix = prefix};
  do {
    HAPAX_TRY(const RegisterPage page, store_.scan_registers(scan));
    for (const std::string& one : page.names) {
      if (auto name = read_name(std::string_view(one).substr(prefix.size()))) {
        all.push_back(*std::move(name));
      }
    }
    scan.cursor = page.next;
  } while (scan.cursor != 0);
  return all;
}

Result<Declarations::Place> Declarations::newest() {
  const std::string stream = news_stream();
  const auto found = store_.read({.stream = stream, .max = 1});
  if (!found && found.error().code == Errc::kNotFound) return Place{};
  if (!found) return found.error();
  return Place{.stream_uid = found->stream_uid, .next = found->last.next()};
}

Result<std::optional<std::vector<WorkflowName>>> Declarations::news(Place& place) {
  using Names = std::vector<WorkflowName>;
  const std::string stream = news_stream();
  const auto found = store_.read({.stream = stream, .from = place.next, .max = kNewsKept});
  const bool none = !found && found.error().code == Errc::kNotFound;
  if (!found && !none) return found.error();
  const bool another = place.stream_uid != 0 && (none || found->stream_uid != place.stream_uid);
  if (another) return std::optional<Names>();
  if (none) return std::optional(Names());
  if (found->first > place.next) return std::optional<Names>();
  Names names;
  for (const Record& record : found->records) {
    if (auto name = read_name(record.payload)) names.push_back(*std::move(name));
    place.next = record.sequence.next();
  }
  place.stream_uid = found->stream_uid;
  return std::optional(std::move(names));
}

std::uint64_t Declarations::watch(Store::Changed changed) {
  const std::string stream = news_stream();
  return store_.watch(StreamWatch{.stream = stream}, std::move(changed));
}

}  // namespace hapax::serve
