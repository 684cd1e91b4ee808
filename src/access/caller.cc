#include "access/caller.h"

#include <variant>

namespace hapax::access {

void hide_result(Verdict& verdict) {
  auto* const settled = std::get_if<DuplicateClaim>(&verdict);
  if (settled == nullptr) return;
  settled->hidden = settled->hidden || settled->result || settled->left_out;
  settled->result.reset();
  settled->left_out = false;
}

}  // namespace hapax::access
