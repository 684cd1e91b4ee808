#include "http/api.h"

#include "http/openapi.h"

namespace hapax::http {

void add_store_routes(Router& router, front::Desk& desk, const std::string& outbox,
                      wire::Callers callers) {
  add_operation_routes(router, desk);
  add_record_routes(router, desk);
  add_receive_route(router, desk);
  add_read_routes(router, desk);
  add_dedup_routes(router, desk);
  add_outbox_routes(router, desk, outbox);
  add_description_routes(router, callers);
}

}  // namespace hapax::http
