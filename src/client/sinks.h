// Sinks of a relay that are reached over HTTP: a stream of a Hapax server, and any endpoint that
// takes one record per request.
#pragma once

#include <string>

#include "client/client.h"
#include "relay/stream_sink.h"

namespace hapax::client {

// Appends under the message id, group = key. Duplicates are successes, so a record that is sent
// again is stored once as long as the stream remembers its id (window).
class StreamSink final : public relay::PieceSink {
 public:
  StreamSink(ClientOptions options, std::string stream);

 protected:
  [[nodiscard]] relay::PieceAnswer send(std::span<const relay::Outgoing* const> piece,
                                        const relay::Permit& permit) override;

 private:
  Client client_;
  const std::string stream_;
};

// POST with the payload as the body and Idempotency-Key = the message id. 2xx is accepted; 4xx
// other than 408, 425 and 429 is refused; 5xx is failed; all else means that the endpoint is
// unavailable.
class EndpointSink final : public relay::Sink {
 public:
  EndpointSink(ClientOptions options, std::string path);

  [[nodiscard]] relay::SinkDelivery deliver(std::span<const relay::Outgoing* const> records,
                                            const relay::Permit& permit) override;

 private:
  Client client_;
  const std::string path_;
};

}  // namespace hapax::client
