// The store of the demo as a process of its own, spoken to through pipes: one line per order in,
// one word per verdict out.
#pragma once

#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include <hapax/result.h>
#include <hapax/verdicts.h>

namespace hapax::cli {

class StoreProcess {
 public:
  explicit StoreProcess(std::string folder) : folder_(std::move(folder)) {}
  ~StoreProcess() { kill(); }
  StoreProcess(const StoreProcess&) = delete;
  StoreProcess& operator=(const StoreProcess&) = delete;

  // Starts it, or starts it again: then the store recovers.
  Status start();
  void send(std::string_view id, std::string_view payload);
  // The next verdict; none: the process is gone.
  [[nodiscard]] std::optional<std::string> receive();
  void kill();    // SIGKILL: the process gets no chance to tidy up
  Status stop();  // end of input: it shuts down in order

 private:
  void close_pipes();

  std::string folder_;
  pid_t pid_ = -1;
  std::FILE* to_ = nullptr;
  std::FILE* from_ = nullptr;
};

[[nodiscard]] Result<std::vector<Record>> read_all_orders(const std::string& folder);

}  // namespace hapax::cli
