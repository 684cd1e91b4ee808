#include "workflows/trial.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <utility>

#include "base/format.h"
#include "workflows/endpoint_sink.h"
#include "workflows/plan.h"
#include "workflows/staging.h"

namespace hapax::workflows {

namespace {

using delivery::EndpointSettings;
using delivery::HttpTarget;
using delivery::Outgoing;
using delivery::Reshaped;
using delivery::SecretText;
using delivery::Workflow;

constexpr std::size_t kRequestBytes = 1'024;  // at least, with all that is told of it

// Stands for itself, references included.
Result<SecretText> plain_text(std::string_view text) {
  std::string escaped;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i, 2) == "${") escaped += '$';
    escaped += text[i];
  }
  return SecretText::parse(escaped);
}

std::string shown_auth(const delivery::EndpointAuth& auth) {
  if (const auto* basic = std::get_if<delivery::BasicAuth>(&auth)) {
    return base::format("Basic {}:{}", basic->user.hidden(), basic->password.hidden());
  }
  if (const auto* bearer = std::get_if<delivery::BearerAuth>(&auth)) {
    return "Bearer " + bearer->token.hidden();
  }
  if (const auto* oauth = std::get_if<delivery::OAuth2Auth>(&auth)) {
    return base::format("Bearer (a token of {})", oauth->token_url.text());
  }
  return {};
}

// The same without any secret: what it makes can be shown.
Result<HttpTarget> shown_target(HttpTarget target) {
  for (delivery::EndpointHeader& header : target.headers) {
    const bool hide = delivery::is_secret_header(header.name);
    HAPAX_TRY(header.value, plain_text(hide ? header.value.hidden() : header.value.written()));
  }
  if (const std::string auth = shown_auth(target.auth); !auth.empty()) {
    HAPAX_TRY(SecretText value, plain_text(auth));
    target.headers.push_back({"Authorization", std::move(value)});
  }
  target.auth = delivery::NoAuth{};
  target.signing.clear();
  return target;
}

Status show_request(const Workflow& workflow, const HttpTarget& target, const Outgoing& record,
                    const TrialPorts& ports, TrialRequest& out) {
  HAPAX_TRY(const HttpTarget shown, shown_target(target));
  HAPAX_TRY(const auto sink, EndpointSink::make(workflow.delivery, shown, ports.reach));
  HAPAX_TRY(const webhook::SendRequest request, sink->draft(record));
  out.method = request.method;
  out.url = request.url;
  out.headers = request.headers;
  if (!target.signing.empty()) out.headers.emplace_back("webhook-signature", "(of its keys)");
  out.body = request.body;
  return Ok{};
}

Result<delivery::SendResult> send_once(const Workflow& workflow, const HttpTarget& target,
                                       const Outgoing& record, const TrialPorts& ports,
                                       std::int64_t not_after_ms) {
  HAPAX_TRY(const auto sink, EndpointSink::make(workflow.delivery, target, ports.reach));
  const auto answered = std::make_shared<std::promise<delivery::SendResult>>();
  std::future<delivery::SendResult> answer = answered->get_future();
  const Outgoing* const one[] = {&record};
  const std::int64_t its_end_ms =
      ports.reach.clock.steady_ms() + Duration(target.timeouts.request).count();
  sink->start(one, std::min(its_end_ms, not_after_ms),
              [answered](const std::vector<delivery::SendResult>& results) {
                answered->set_value(results.front());
              });
  return answer.get();
}

Result<delivery::ReshapeOutcome> transformed(const Record& sample, delivery::Transforming* by) {
  using delivery::ReshapeOutcome;
  if (by == nullptr) return ReshapeOutcome(std::vector<Reshaped>{{sample.payload}});
  const auto answered = std::make_shared<std::promise<Result<ReshapeOutcome>>>();
  std::future<Result<ReshapeOutcome>> answer = answered->get_future();
  HAPAX_CHECK(by->start(sample.payload, sample.time, [answered](Result<ReshapeOutcome> outcome) {
    answered->set_value(std::move(outcome));
  }));
  return answer.get();
}

// Of an outbox in a database the key is made of its row, which a sample does not have.
Result<std::string> trial_key(const Workflow& workflow, const Record& sample,
                              const TrialPorts& ports, const signing::FanOut& fan_out) {
  if (std::holds_alternative<delivery::FromOutbox>(*workflow.source)) return sample.id;
  return key_maker(workflow, ports.store_id)(sample, sample.payload, ports.stream_uid, fan_out);
}

class Walk {
 public:
  Walk(const Workflow& workflow, const Record& sample, const TrialPorts& ports)
      : workflow_(workflow), sample_(sample), ports_(ports) {}

  Result<Trial> run() {
    HAPAX_TRY(const auto outcome, transformed(sample_, ports_.transform));
    if (const auto* failed = std::get_if<delivery::NotReshaped>(&outcome)) {
      trial_.dead = failed->reason;
      return std::move(trial_);
    }
    trial_.outputs = std::get<std::vector<Reshaped>>(outcome);
    for (std::uint32_t i = 0; i < trial_.outputs.size(); ++i) {
      for (const EndpointSettings& endpoint : workflow_.endpoints) {
        try_endpoint(i, endpoint);
        if (bytes_ > kTrialBytesMax) return too_much();
      }
    }
    send_all();
    return std::move(trial_);
  }

 private:
  void try_endpoint(std::uint32_t index, const EndpointSettings& endpoint) {
    const Reshaped& output = trial_.outputs[index];
    const std::string type(output.type ? *output.type : type_of(sample_));
    if (!endpoint.takes(type)) return;
    TrialRequest& out = trial_.requests.emplace_back();
    out.endpoint = endpoint.name;
    const std::string_view name =
        workflow_.endpoints.size() > 1 ? endpoint.name : std::string_view();
    const signing::FanOut fan_out =
        delivery::is_staged(workflow_) ? signing::FanOut{index, name} : signing::FanOut{};
    auto key = trial_key(workflow_, sample_, ports_, fan_out);
    if (!key) {
      out.flaw = key.error().detail;
      return;
    }
    out.key = *key;
    bytes_ += kRequestBytes + output.payload.size();
    if (const auto* stream = endpoint.stream()) {
      out.stream = stream->stream;
      out.body = output.payload;
      return;
    }
    Outgoing record{.id = *key,
                    .type = type,
                    .key = output.key ? *output.key : sample_.group,
                    .payload = output.payload};
    for (const auto& header : sample_.headers) {
      if (header.first != delivery::kTypeHeader) record.headers.push_back(header);
    }
    record.time = sample_.time;
    prepare(*endpoint.http(), std::move(record), out);
  }

  void prepare(const HttpTarget& target, Outgoing record, TrialRequest& out) {
    const Status shown = show_request(workflow_, target, record, ports_, out);
    if (!shown) {
      out.flaw = shown.error().detail;
      return;
    }
    bytes_ += out.url.size();
    for (const auto& [name, value] : out.headers) bytes_ += name.size() + value.size();
    if (ports_.send) to_send_.push_back({&target, std::move(record), trial_.requests.size() - 1});
  }

  // Nothing is sent before all of it is known.
  void send_all() {
    const std::int64_t end_ms = ports_.reach.clock.steady_ms() + kTrialSpan.count();
    for (const ToSend& one : to_send_) {
      TrialRequest& out = trial_.requests[one.place];
      if (ports_.reach.clock.steady_ms() >= end_ms) {
        out.flaw = base::format("it was not sent: the trial took longer than {} s",
                                kTrialSpan / std::chrono::seconds{1});
        continue;
      }
      auto sent = send_once(workflow_, *one.target, one.record, ports_, end_ms);
      if (sent) {
        out.result = *std::move(sent);
      } else {
        out.flaw = sent.error().detail;
      }
    }
  }

  static Error too_much() {
    return {Errc::kLimitExceeded,
            base::format("what would go to all endpoints is larger than {} MiB; nothing was sent; "
                         "try a smaller sample",
                         kTrialBytesMax >> 20)};
  }

  struct ToSend {
    const HttpTarget* target;
    Outgoing record;
    std::size_t place;  // of its request
  };

  const Workflow& workflow_;
  const Record& sample_;
  const TrialPorts& ports_;
  Trial trial_;
  std::size_t bytes_ = 0;  // of all requests
  std::vector<ToSend> to_send_;
};

}  // namespace

Result<Trial> try_workflow(const Workflow& workflow, const Record& sample,
                           const TrialPorts& ports) {
  return Walk(workflow, sample, ports).run();
}

}  // namespace hapax::workflows
