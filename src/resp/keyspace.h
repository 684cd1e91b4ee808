// The commands about all keys: DBSIZE, SCAN, INFO.
#pragma once

#include "resp/conversation.h"

namespace hapax::resp {

struct Keyspace {
  static Next dbsize(Conversation& talk, CommandWords arguments);
  static Next scan(Conversation& talk, CommandWords arguments);
  static Next info(Conversation& talk, CommandWords arguments);
};

}  // namespace hapax::resp
