#include "serve/streams.h"

#include <string>

#include "access/tenant_store.h"
#include "delivery/workflow_streams.h"

namespace hapax::serve {

Status make_streams(Store& store, std::span<const config::Stream> streams) {
  for (const config::Stream& stream : streams) {
    access::TenantStore own(store, stream.tenant);
    Status made = delivery::ensure_stream(own, {stream.stream, stream.settings});
    if (!made) {
      return std::move(made).error().within("stream '" + stream.stream + "'");
    }
  }
  return Ok{};
}

}  // namespace hapax::serve
