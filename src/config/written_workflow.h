// A workflow as a file writes it: flat, everything optional. workflows.h makes delivery::Workflow
// of it, in which only what belongs together is together.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <hapax/time.h>

#include "delivery/workflow.h"

namespace hapax::config {

struct WrittenDeduplication {
  std::vector<delivery::KeyField> key_fields;
  std::optional<Duration> ttl;
  friend bool operator==(const WrittenDeduplication&, const WrittenDeduplication&) = default;
};

struct WrittenRetries {
  std::optional<bool> enabled;
  std::optional<std::uint32_t> max_attempts;
  std::optional<std::uint64_t> backoff_ms;  // the first pause, or the list below
  std::vector<std::uint64_t> backoff_list_ms;
  std::optional<std::uint64_t> backoff_max_ms;
  std::optional<Duration> give_up_after;
  friend bool operator==(const WrittenRetries&, const WrittenRetries&) = default;
};

struct WrittenKey {
  std::optional<std::string> format;
  std::optional<delivery::KeyHash> hash_algorithm;
  std::optional<delivery::KeyForm> form;
  std::optional<bool> included_in_payload;
  friend bool operator==(const WrittenKey&, const WrittenKey&) = default;
};

struct WrittenDocumentation {
  std::optional<bool> deduplication_required;
  std::optional<bool> sdk_available;
  std::optional<std::string> example_code;
  friend bool operator==(const WrittenDocumentation&, const WrittenDocumentation&) = default;
};

// Of a workflow, and of all that do not say otherwise.
struct WrittenDelivery {
  std::optional<delivery::Guarantee> guarantee;
  std::optional<delivery::Mechanism> mechanism;
  WrittenDeduplication deduplication;
  WrittenRetries retries;
  WrittenKey idempotency_key;
  std::optional<bool> client_guidance;
  WrittenDocumentation documentation;
  friend bool operator==(const WrittenDelivery&, const WrittenDelivery&) = default;
};

struct WrittenSourceKey {
  std::string key;
  friend bool operator==(const WrittenSourceKey&, const WrittenSourceKey&) = default;
};

struct WrittenSource {
  std::optional<delivery::SourceType> type;
  std::optional<std::string> stream;
  std::optional<std::string> database;
  std::optional<std::string> schema;
  std::optional<std::string> prefix;
  std::optional<std::string> table;
  delivery::OutboxColumns columns;
  std::vector<WrittenSourceKey> signature_keys;
  friend bool operator==(const WrittenSource&, const WrittenSource&) = default;
};

struct WrittenTransform {
  std::optional<std::string> jq;
  std::optional<delivery::TransformNumbers> numbers;
  friend bool operator==(const WrittenTransform&, const WrittenTransform&) = default;
};

struct WrittenAuth {
  std::optional<delivery::AuthType> type;
  std::optional<std::string> user;
  std::optional<std::string> password;
  std::optional<std::string> token;
  std::optional<std::string> token_url;
  std::optional<std::string> client_id;
  std::optional<std::string> client_secret;
  std::optional<std::string> scope;
  std::optional<std::string> certificate;
  std::optional<std::string> key;
  friend bool operator==(const WrittenAuth&, const WrittenAuth&) = default;
};

struct WrittenTls {
  std::optional<bool> verify;
  std::optional<std::string> ca_file;
  std::optional<std::string> server_name;
  friend bool operator==(const WrittenTls&, const WrittenTls&) = default;
};

struct WrittenTimeouts {
  std::optional<Duration> connect;
  std::optional<Duration> request;
  friend bool operator==(const WrittenTimeouts&, const WrittenTimeouts&) = default;
};

struct WrittenBreaker {
  std::optional<std::uint32_t> failures;
  std::optional<Duration> pause;
  std::optional<Duration> pause_max;
  std::optional<std::uint32_t> probes;
  friend bool operator==(const WrittenBreaker&, const WrittenBreaker&) = default;
};

struct WrittenSigningKey {
  std::string key;
  std::optional<std::string> from;
  std::optional<std::string> until;
  friend bool operator==(const WrittenSigningKey&, const WrittenSigningKey&) = default;
};

struct WrittenCloudEvent {
  std::optional<std::string> source;
  std::optional<delivery::EventSubject> subject;
  friend bool operator==(const WrittenCloudEvent&, const WrittenCloudEvent&) = default;
};

// The fields of one section of the file, all of them: hence so many.
struct WrittenEndpoint {
  std::optional<std::string> name;
  std::optional<std::string> url;
  std::optional<std::string> stream;
  std::optional<delivery::SendMethod> method;
  std::map<std::string, std::string> headers;
  std::vector<std::string> event_types;
  std::optional<std::uint32_t> concurrency;
  std::optional<std::uint64_t> rate;
  std::optional<delivery::NatureWord> nature;
  std::optional<std::string> status_url;
  WrittenTimeouts timeouts;
  WrittenBreaker breaker;
  WrittenTls tls;
  WrittenAuth auth;
  std::vector<WrittenSigningKey> signing_keys;
  std::optional<delivery::BodyWord> body;
  WrittenCloudEvent cloud_event;
  std::map<std::string, delivery::StatusWord> on_status;
  friend bool operator==(const WrittenEndpoint&, const WrittenEndpoint&) = default;
};

struct WrittenOrdering {
  std::optional<delivery::OrderingKey> key;
  std::optional<delivery::FailureWord> on_failure;
  std::optional<Duration> block_for;
  friend bool operator==(const WrittenOrdering&, const WrittenOrdering&) = default;
};

struct WrittenRetention {
  std::optional<Duration> delivered;
  std::optional<Duration> attempts;
  std::optional<std::uint64_t> attempt_bytes;
  friend bool operator==(const WrittenRetention&, const WrittenRetention&) = default;
};

struct WrittenWorkflow {
  std::string id;
  std::optional<std::string> tenant;
  std::optional<bool> enabled;
  WrittenSource source;
  WrittenTransform transform;
  WrittenEndpoint endpoint;                // one without a name of its own
  std::vector<WrittenEndpoint> endpoints;  // or several, each with its name
  WrittenDelivery delivery;
  WrittenOrdering ordering;
  std::optional<Duration> dead_letter_keep;
  WrittenRetention retention;
  friend bool operator==(const WrittenWorkflow&, const WrittenWorkflow&) = default;
};

}  // namespace hapax::config
