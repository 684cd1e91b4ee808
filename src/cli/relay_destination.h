// Where a relay sends to, as --to names it.
#pragma once

#include <memory>
#include <string>

#include <hapax/result.h>
#include <hapax/store.h>

#include "cli/relay.h"
#include "client/client.h"
#include "client/webhook_sink.h"
#include "delivery/relay_settings.h"
#include "delivery/sink.h"
#include "ports/clock.h"

namespace hapax::cli {

// WHERE/streams/NAME is a stream of a server or of a data folder; another URL takes a record per
// request.
class RelayDestination {
 public:
  [[nodiscard]] Status open(const RelayOptions& options);
  [[nodiscard]] bool is_stream() const { return !stream_.empty(); }
  [[nodiscard]] std::unique_ptr<delivery::Sink> make_sink(ports::Clock& clock);
  // A stream that forgets ids before the last attempt of a record would store it twice. If nobody
  // can be asked for its window, that is said, and the relay goes on.
  [[nodiscard]] Status check_window(const delivery::RelaySettings& settings);

 private:
  [[nodiscard]] Status open_url(const RelayOptions& options, const std::string& where);
  [[nodiscard]] Status open_endpoint(const RelayOptions& options, const std::string& url);
  [[nodiscard]] Result<Window> ask_for_window();

  std::string stream_;
  client::ClientOptions client_;
  std::unique_ptr<Store> store_;
  client::EndpointOptions endpoint_;
  std::unique_ptr<webhook::Sender> sender_;  // of an endpoint; the sinks use it
};

}  // namespace hapax::cli
