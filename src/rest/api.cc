#include "rest/api.h"

#include "rest/openapi.h"

namespace hapax::rest {

void add_store_routes(Router& router, access::Entry& entry, const std::string& outbox,
                      wire::Callers callers, const OutboxDirectory& databases) {
  add_operation_routes(router, entry);
  add_record_routes(router, entry);
  add_receive_route(router, entry);
  add_read_routes(router, entry);
  add_dedup_routes(router, entry);
  add_outbox_routes(router, entry, outbox, databases);
  add_description_routes(router, callers);
}

}  // namespace hapax::rest
