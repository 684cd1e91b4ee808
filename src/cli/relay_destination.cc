#include "cli/relay_destination.h"

#include <utility>

#include <hapax/embedded.h>

#include "base/format.h"
#include "cli/show.h"
#include "cli/way.h"
#include "client/sink_thread.h"
#include "client/sinks.h"
#include "client/url.h"
#include "client/webhook_sink.h"
#include "relay/stream_sink.h"
#include "wire/strict_json.h"

namespace hapax::cli {

namespace {

constexpr std::chrono::milliseconds kAskTime{5'000};

// Records that are handed to the sink of a stream at once; with two starts under way, half of what
// is held is sent while the other half is settled and taken.
constexpr std::size_t kStreamBatch = 4'000;

std::int64_t seconds_of(Duration span) {
  return std::chrono::ceil<std::chrono::seconds>(span).count();
}

}  // namespace

Status RelayDestination::open(const RelayOptions& options) {
  const bool is_url = options.to.starts_with("http://") || options.to.starts_with("https://");
  const bool has_query = is_url && options.to.find('?') != std::string::npos;
  const std::size_t streams = has_query ? std::string::npos : options.to.rfind("/streams/");
  std::string where = options.to;
  if (streams != std::string::npos) {
    where = options.to.substr(0, streams);
    stream_ = options.to.substr(streams + 9);
    if (where.ends_with("/api/v1")) where.resize(where.size() - 7);
  }
  if (is_url) return open_url(options, where);
  if (stream_.empty()) {
    return Error{Errc::kInvalidArgument, "unknown destination '" + options.to +
                                             "'; expected a URL or FOLDER/streams/NAME, such as "
                                             "http://127.0.0.1:7171/streams/orders"};
  }
  HAPAX_CHECK(check_is_store(where));
  HAPAX_TRY(store_, open_embedded(where));
  return Ok{};
}

Status RelayDestination::open_url(const RelayOptions& options, const std::string& where) {
  // HAPAX_TOKEN is for a Hapax server; an endpoint belongs to somebody else.
  if (stream_.empty()) return open_endpoint(options, where);
  HAPAX_TRY(client_.url, client::parse_url(where));
  client_.authorities = options.authorities;
  HAPAX_TRY(client_.token, token_of(options.token_file));
  return Ok{};
}

Status RelayDestination::open_endpoint(const RelayOptions& options, const std::string& url) {
  HAPAX_CHECK(client::parse_endpoint_url(url));
  endpoint_ = {.url = url, .authorities = options.authorities};
  if (!options.token_file.empty()) {
    HAPAX_TRY(endpoint_.token, token_of(options.token_file));
  }
  webhook::SenderSettings settings;
  settings.limits.per_origin = options.concurrency * options.from.size();
  HAPAX_TRY(sender_, webhook::Sender::open(settings));
  return Ok{};
}

std::unique_ptr<delivery::Sink> RelayDestination::make_sink(ports::Clock& clock) {
  if (sender_) return std::make_unique<client::WebhookSink>(*sender_, clock, endpoint_);
  std::unique_ptr<relay::Sink> sink;
  if (store_) {
    sink = std::make_unique<relay::StoreSink>(*store_, stream_);
  } else {
    sink = std::make_unique<client::StreamSink>(client_, stream_);
  }
  return std::make_unique<client::SinkThread>(std::move(sink), clock, kStreamBatch);
}

Status RelayDestination::check_window(const delivery::RelaySettings& settings) {
  if (stream_.empty()) return Ok{};
  const Result<Window> window = ask_for_window();
  if (!window) {
    say(
        base::format("for how long stream {} remembers ids is not known, and was not compared with "
                     "the attempts of this relay: {}",
                     stream_, window.error().text()));
    return Ok{};
  }
  const Duration horizon = settings.retry_horizon();
  if (window->is_forever() || std::chrono::seconds{window->raw()} >= horizon) return Ok{};
  const std::uint32_t waits = settings.attempts_max - 1;
  const std::string sum =
      waits == 0 ? "a lease"
                 : base::format("{} waits between {} attempts, of {} s to {} s, and a lease", waits,
                                settings.attempts_max, seconds_of(settings.retry_after(1)),
                                seconds_of(settings.retry_after(waits)));
  return Error{
      Errc::kInvalidArgument,
      base::format("stream {} remembers ids for {} s, but this relay may send a record again {} s "
                   "after it was stored ({} = {} s + {} s), and then it is stored twice. "
                   "`hapax stream configure {} --window {}s` mends it, or fewer --attempts",
                   printable(stream_), window->raw(), seconds_of(horizon), sum,
                   seconds_of(horizon - settings.lease), seconds_of(settings.lease),
                   printable(stream_), seconds_of(horizon))};
}

Result<Window> RelayDestination::ask_for_window() {
  if (store_) {
    HAPAX_TRY(const StreamStats stats, store_->describe(stream_));
    return stats.settings.window;
  }
  client::ClientOptions once = client_;
  once.attempts_max = 1;
  HAPAX_TRY(const client::Reply reply,
            client::Client(once).call(
                {.path = "/api/v1/streams/" + client::encoded(stream_), .time = kAskTime}));
  if (!reply.good()) {
    return Error{Errc::kUnavailable, base::format("HTTP {}", reply.status)};
  }
  HAPAX_TRY(const wire::JsonValue told, wire::read_strict_json(reply.body));
  const wire::JsonValue* settings = told.find("settings");
  const wire::JsonValue* window = settings ? settings->find("window_s") : nullptr;
  if (window == nullptr) return Error{Errc::kUnavailable, "the answer names no window"};
  if (window->get<std::string>() != nullptr) return Window::forever();
  return Window{std::chrono::seconds{number_in(*settings, "window_s")}};
}

}  // namespace hapax::cli
