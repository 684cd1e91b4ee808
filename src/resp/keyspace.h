// The commands about all keys: DBSIZE, SCAN, INFO.
#pragma once

#include "resp/act.h"

namespace hapax::resp {

struct Keyspace : Act {
  static Next dbsize(Session& session, Arguments arguments);
  static Next scan(Session& session, Arguments arguments);
  static Next info(Session& session, Arguments arguments);
};

}  // namespace hapax::resp
