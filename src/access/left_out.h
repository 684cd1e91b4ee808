// What a brief answer leaves out (Detail::kBrief), to be read when there is room for it. It was
// decided in its turn; what is read later is what was decided, or missing if it is gone since.
#pragma once

#include <string>

#include <hapax/store.h>

namespace hapax::access {

[[nodiscard]] bool lacks_something(const Verdict& verdict);

// A verdict that lacks something, and whose it is.
struct LeftOut {
  // REQUIRES: lacks_something(verdict), which answers `op`.
  LeftOut(const Op& op, Verdict answer, Time decided);

  std::string place;  // scope or stream
  std::string key;    // of a claim
  Verdict verdict;
  Time when;
};

// May wait for the store and the disk.
[[nodiscard]] Result<Verdict> read_left_out(Store& store, LeftOut it);

}  // namespace hapax::access
