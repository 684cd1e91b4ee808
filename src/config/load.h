// A configuration from its sources: defaults, then a file, then the environment.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <hapax/result.h>

#include "config/config.h"
#include "config/document.h"
#include "config/finding.h"
#include "config/keys.h"

namespace hapax::config {

struct ConfigFile {
  std::string name;
  std::string text;
};
[[nodiscard]] Result<ConfigFile> read_file(const std::string& name);

struct Variable {
  std::string name;
  std::string value;
};
// The variables of this process that begin with HAPAX_.
[[nodiscard]] std::vector<Variable> environment();

struct Loaded {
  Config config;  // to be used only if there are no errors
  ConfigFindings findings;
  Given given;
  [[nodiscard]] bool good() const { return findings.errors.empty(); }
};

// Reads the keys that `inside` describes out of a tree.
void read_node(const Node& root, Loaded& loaded, const Keys::Inside& inside);

// A key `a.b_c` is overridden by the variable HAPAX_A_B_C. Lists and what has a chosen name are in
// the file only.
[[nodiscard]] Loaded load(const std::optional<ConfigFile>& file,
                          std::span<const Variable> variables);

}  // namespace hapax::config
