// Streams that belong to workflows. Their names begin with that of the workflow, so that all that
// one workflow has in the store can lie together.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "delivery/blocked_keys.h"
#include "delivery/source_keeping.h"
#include "delivery/workflow.h"
#include "delivery/workflow_streams.h"

namespace hapax::workflows {

// What is posted to the workflow is kept there. Ids are known for as long as the workflow remembers
// keys. An event stays until it was given up at the latest, and as long after that as delivered
// records and dead letters are kept.
[[nodiscard]] std::string events_stream_of(const delivery::WorkflowId& id);
[[nodiscard]] delivery::OwnStream events_of(const delivery::Workflow& workflow);

// Rows of the outbox that the workflow takes from, as they came. A row comes again as long as its
// database does not know that it was stored, so ids are known for as long as the workflow knows
// anything else of a record.
[[nodiscard]] delivery::OwnStream rows_of(const delivery::Workflow& workflow);

// The stream that the workflow reads, and whether it is its own. Nothing: it is a draft, or it
// delivers from the database.
struct SourceStream {
  std::string name;
  bool own = false;
};
[[nodiscard]] std::optional<SourceStream> source_stream(const delivery::Workflow& workflow);

// The log of its attempts.
[[nodiscard]] std::string attempts_stream_of(std::string_view workflow);

// What waits for the endpoints of a workflow in two steps. Ids are known for as long as the
// workflow remembers keys, and as long as records are there.
[[nodiscard]] delivery::OwnStream outbox_of(const delivery::Workflow& workflow);

// How the names of the registers begin that say what blocks a key.
[[nodiscard]] std::string blocked_registers_of(const delivery::WorkflowId& id);
// How long later records of a key wait: as the workflow says, and at most as long as a record waits
// for its delivery. None: they do not wait.
[[nodiscard]] std::optional<Duration> hold_of(const delivery::Workflow& workflow);
// What is owed of the streams that the workflow reads.
[[nodiscard]] delivery::Keeping keeping_of(const delivery::Workflow& workflow);
// Of each stream in which a record of the workflow can block its key. None: it has no such stream.
[[nodiscard]] std::vector<delivery::BlockTerms> block_terms_of(const delivery::Workflow& workflow);

}  // namespace hapax::workflows
