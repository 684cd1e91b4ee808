// Sinks that take several records at once, all or nothing; and one of them: a stream of a store in
// this process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <hapax/store.h>

#include "relay/sink.h"

namespace hapax::relay {

// What became of a piece. Nothing of it was taken unless all of it was.
struct PieceAnswer {
  enum class Kind : std::uint8_t { kAll, kRefused, kTooLarge, kUnavailable };
  Kind kind = Kind::kAll;
  std::size_t refused = 0;  // which record, of kRefused
  std::string reason{};
};

class PieceSink : public Sink {
 public:
  [[nodiscard]] SinkDelivery deliver(std::span<const Outgoing* const> records,
                                     const Permit& permit) final;

 protected:
  [[nodiscard]] virtual PieceAnswer send(std::span<const Outgoing* const> piece,
                                         const Permit& permit) = 0;
};

// The headers of a record in a stream: event_type, correlation_id, causation_id, and the event's
// own.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> stream_headers(
    const Outgoing& record);

class StoreSink final : public PieceSink {
 public:
  StoreSink(Store& store, std::string stream) : store_(store), stream_(std::move(stream)) {}

 protected:
  [[nodiscard]] PieceAnswer send(std::span<const Outgoing* const> piece,
                                 const Permit& permit) override;

 private:
  Store& store_;
  const std::string stream_;
};

}  // namespace hapax::relay
