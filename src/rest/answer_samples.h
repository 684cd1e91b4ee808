// One answer of every kind with everything in it, and one with as little as possible: what the
// OpenAPI document says of answers is taken from these texts, which the writers themselves made.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <hapax/verdicts.h>

namespace hapax::rest {

struct Samples {
  std::string name;
  std::vector<std::string> texts;
};

[[nodiscard]] std::vector<Samples> answer_samples();

// Every alternative of Verdict; twice, where members may be missing.
[[nodiscard]] std::vector<std::vector<Verdict>> verdict_samples();

}  // namespace hapax::rest
