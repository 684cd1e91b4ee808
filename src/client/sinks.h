// A stream of a Hapax server as the sink of a relay.
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

}  // namespace hapax::client
