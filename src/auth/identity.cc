#include "auth/identity.h"

namespace hapax::auth {

std::string_view word_of(Right right) {
  switch (right) {
    case Right::kProduce:
      return "produce";
    case Right::kConsume:
      return "consume";
    case Right::kAdmin:
      return "admin";
    case Right::kReadBodies:
      return "read-bodies";
  }
  return "";
}

}  // namespace hapax::auth
