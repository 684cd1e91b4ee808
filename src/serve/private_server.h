// A data folder served to this process alone: commands that work without a server speak to it as
// they would to one.
#pragma once

#include <memory>
#include <set>
#include <string>

#include <hapax/result.h>

namespace hapax::serve {

class PrivateServer {
 public:
  // kLocked: another process serves the folder. The visitor is of that tenant; empty: of the one
  // without a name.
  [[nodiscard]] static Result<std::unique_ptr<PrivateServer>> open(const std::string& folder,
                                                                   const std::string& version,
                                                                   const std::string& tenant = "");
  PrivateServer() = default;
  PrivateServer(const PrivateServer&) = delete;
  PrivateServer& operator=(const PrivateServer&) = delete;
  virtual ~PrivateServer() = default;

  [[nodiscard]] virtual std::string url() const = 0;
  // The one credential that is let in, made anew each time.
  [[nodiscard]] virtual const std::string& token() const = 0;
  // Names of tenants that have streams there.
  [[nodiscard]] virtual std::set<std::string> tenants() = 0;
};

}  // namespace hapax::serve
