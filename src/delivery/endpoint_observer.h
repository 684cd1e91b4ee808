// Who wants to know how an endpoint does: figures, and what people are shown.
#pragma once

#include <cstddef>
#include <string_view>

#include <hapax/time.h>

#include "delivery/source.h"

namespace hapax::delivery {

// Told on the thread of the engine, while it happens, so it must be brief.
class EndpointObserver {
 public:
  EndpointObserver() = default;
  EndpointObserver(const EndpointObserver&) = delete;
  EndpointObserver& operator=(const EndpointObserver&) = delete;
  virtual ~EndpointObserver() = default;

  // Attempts to send as many records begin; so many of these were sent under their key before.
  virtual void began(std::size_t records, std::size_t repeated) = 0;
  // What is said of a record to its source. `age`: since it was published; 0 if nobody knows.
  virtual void settled(Settlement::Kind kind, Duration age, std::string_view reason) = 0;
  // Nothing is sent for a while, because the endpoint fails.
  virtual void paused() = 0;
  // The endpoint wants nothing any more: nothing is sent until it is enabled().
  virtual void disabled(std::string_view reason) = 0;
  virtual void enabled() = 0;
};

}  // namespace hapax::delivery
