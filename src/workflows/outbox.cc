#include "workflows/outbox.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/format.h"
#include "delivery/database_outbox.h"
#include "workflows/plan.h"
#include "workflows/record_key.h"
#include "workflows/row_mark.h"
#include "workflows/secrets.h"

namespace hapax::workflows {

namespace {

using delivery::FromOutbox;
using delivery::Outgoing;
using delivery::Workflow;

constexpr Duration kSilenceMax{5'000};  // of a database; half of a lease

Result<relay::OutboxAddress> address_of(const Workflow& workflow, const OutboxPorts& ports) {
  const auto& from = std::get<FromOutbox>(*workflow.source);
  relay::OutboxAddress address;
  HAPAX_TRY(address.database, reveal(from.database));
  const auto begins = [&](std::string_view with) { return address.database.starts_with(with); };
  if (!begins("postgres://") && !begins("postgresql://") && !begins("sqlite:")) {
    // It may hold a password: it is not repeated.
    return Error{
        Errc::kInvalidArgument,
        "source.database stands for no database: it must begin with postgres:// or sqlite:"};
  }
  if (const auto* own = std::get_if<delivery::OwnOutboxTables>(&from.tables)) {
    if (!own->schema.empty()) address.schema = own->schema;
    if (!own->prefix.empty()) address.prefix = own->prefix;
  } else {
    address.table = std::get<delivery::MappedOutboxTable>(from.tables);
  }
  address.owner = base::format("{}{}{}{}@{}#{}", delivery::kWorkflowLabel, workflow.tenant,
                               workflow.tenant.empty() ? "" : "/", workflow.id.text(),
                               ports.store_id, ports.key);
  address.is_named = true;
  address.silence_max = kSilenceMax;
  address.retention = workflow.retention.delivered;
  address.shortens_retention = workflow.retention.shortens_outbox;
  return address;
}

// As the database calls the table.
std::string outbox_name(const relay::OutboxAddress& address) {
  return address.database.starts_with("sqlite:") ? address.prefix + "outbox"
                                                 : address.schema + ".outbox";
}

// The id of a record becomes the key of its delivery. What it was published with beside its headers
// goes the way of headers, as in a stream that a relay fills.
void dress(Outgoing& record, const std::string& uid, const std::string& outbox,
           const delivery::KeySettings& settings, const SharedVerifier& verifier) {
  const SignedEvent event{
      .id = record.id, .type = record.type, .key = record.key, .payload = record.payload};
  const Status as_signed = check_signature(verifier, event, record.headers);
  if (!as_signed && record.flaw.empty()) record.flaw = as_signed.error().detail;
  if (!record.causation_id.empty()) {
    record.headers.emplace(record.headers.begin(), "causation_id", record.causation_id);
  }
  if (!record.correlation_id.empty()) {
    record.headers.emplace(record.headers.begin(), "correlation_id", record.correlation_id);
  }
  auto key = record_key(settings, {.origin = signing::OutboxOrigin{uid, outbox, record.id},
                                   .type = record.type,
                                   .group = record.key,
                                   .headers = record.headers,
                                   .payload = record.payload});
  if (key) {
    record.id = *std::move(key);
  } else if (record.flaw.empty()) {
    record.flaw = key.error().detail;
  }
}

using MakeHooks =
    std::function<delivery::LaneHooks(const std::string& uid, const std::string& outbox)>;

Result<std::unique_ptr<delivery::Source>> make_source(const Workflow& workflow,
                                                      const OutboxPorts& ports,
                                                      const delivery::LaneSettings& lanes,
                                                      MakeHooks make_hooks,
                                                      delivery::LaneSource::Log log) {
  if (!ports.open) {
    return Error{Errc::kPreconditionFailed, "this process opens no outboxes of databases"};
  }
  HAPAX_TRY(relay::OutboxAddress address, address_of(workflow, ports));
  address.notice = log;
  delivery::DatabaseOutboxSettings settings{.lanes = lanes, .owner = address.owner};
  auto hooks = [outbox = outbox_name(address),
                make_hooks = std::move(make_hooks)](const relay::OpenedOutbox& opened) {
    return make_hooks(opened.uid, opened.name.empty() ? outbox : opened.name);
  };
  auto open = [open = ports.open, address = std::move(address)] { return open(address); };
  return std::unique_ptr<delivery::Source>(std::make_unique<delivery::DatabaseOutbox>(
      std::move(open), ports.clock, std::move(settings), std::move(hooks), std::move(log)));
}

}  // namespace

Result<std::unique_ptr<delivery::Source>> make_outbox_source(
    const Workflow& workflow, const OutboxPorts& ports, std::function<bool(const Outgoing&)> wanted,
    delivery::LaneSource::Log log) {
  delivery::LaneSettings lanes;
  // A lane that is slow leaves room to the others.
  lanes.batch = std::min(lanes.batch, engine_settings(workflow).window / 2);
  lanes.attempts_max = workflow.delivery.retries.attempts_max;
  lanes.give_up_after = workflow.delivery.retries.give_up_after;
  MakeHooks hooks = [wanted = std::move(wanted), settings = workflow.delivery.key,
                     verifier = ports.verifier](const std::string& uid, const std::string& outbox) {
    return delivery::LaneHooks{
        .dress = [uid, outbox, settings,
                  verifier](Outgoing& record) { dress(record, uid, outbox, settings, verifier); },
        .wanted = wanted};
  };
  return make_source(workflow, ports, lanes, std::move(hooks), std::move(log));
}

// What becomes of a row is decided when it is in the stream: here every one is stored as it is.
Result<std::unique_ptr<delivery::Source>> make_row_source(const Workflow& workflow,
                                                          const OutboxPorts& ports,
                                                          delivery::LaneSource::Log log) {
  MakeHooks hooks = [](const std::string& uid, const std::string& outbox) {
    return delivery::LaneHooks{.dress = [uid, outbox](Outgoing& row) {
      if (!row.flaw.empty()) return;
      if (const Status marked = mark_row(row, uid, outbox); !marked) {
        row.flaw = marked.error().detail;
      }
    }};
  };
  return make_source(workflow, ports, {}, std::move(hooks), std::move(log));
}

Result<std::unique_ptr<relay::Source>> open_to_report(const Workflow& workflow,
                                                      const OutboxPorts& ports) {
  if (!ports.open) {
    return Error{Errc::kPreconditionFailed, "this process opens no outboxes of databases"};
  }
  HAPAX_TRY(relay::OutboxAddress address, address_of(workflow, ports));
  address.waits = false;
  address.is_named = false;
  HAPAX_TRY(relay::OpenedOutbox opened, ports.open(address));
  return std::move(opened.source);
}

}  // namespace hapax::workflows
