// Stores records in a stream, under their ids: the first step of a workflow that takes rows of a
// database.
//
// Z30: a record is told as delivered only when its append is durable, or was before. Whoever gave
// it
//     settles after that, so a row that is settled is stored; one that comes again, because its
//     sender died in between, is a duplicate by its id.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include <hapax/store.h>

#include "delivery/sink.h"
#include "ports/clock.h"

namespace hapax::delivery {

struct StoreSinkPorts {
  std::function<void(const Commit&, Store::Done)> submit;  // as Store::submit()
  ports::Clock& clock;
  // Why nothing can be stored; empty: it can again. On any thread.
  std::function<void(std::string_view)> told{};
};

class StoreSink final : public Sink {
 public:
  // The clock, and what `submit` submits to, outlive every answer.
  StoreSink(StoreSinkPorts ports, std::string stream);
  ~StoreSink() override;

  [[nodiscard]] std::size_t batch_max() const override { return 500; }
  void start(std::span<const Outgoing* const> records, std::int64_t not_after_ms,
             Done done) override;
  void wind_down() override { *winding_down_ = true; }

 private:
  class Call;

  const StoreSinkPorts ports_;
  const std::string stream_;
  const std::shared_ptr<std::atomic<bool>> winding_down_;
};

}  // namespace hapax::delivery
