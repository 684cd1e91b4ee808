#include "serve/missing_here.h"

#include "workflows/preflight.h"

namespace hapax::serve {

std::vector<std::string> missing_here(const std::vector<delivery::Workflow>& workflows) {
  return workflows::missing_here(workflows);
}

}  // namespace hapax::serve
