// One worker process: how it is started, and how it ended.
#pragma once

#include <string>

#include <sys/types.h>

#include <hapax/result.h>

#include "transform/transform.h"

namespace hapax::transform {

// How a process ended: by a signal, or with an exit code. Both 0: nobody knows, because the program
// that we are part of lets the kernel forget its children.
struct WorkerEnd {
  int signal = 0;
  int exit_code = 0;
};

// "signal 11 (Segmentation fault)", "exit code 70".
[[nodiscard]] std::string text_of(const WorkerEnd& end);

class WorkerProcess {
 public:
  // The worker gets one end of a socket as descriptors 0 and 1, /dev/null as 2, no other
  // descriptor, and no environment but TZ and LC_ALL. It dies with the thread that calls this.
  [[nodiscard]] static Result<WorkerProcess> start(const TransformSettings& settings);

  WorkerProcess(WorkerProcess&& other) noexcept;
  WorkerProcess& operator=(WorkerProcess&& other) noexcept;
  ~WorkerProcess();  // kills it

  [[nodiscard]] int socket() const { return socket_; }
  [[nodiscard]] pid_t pid() const { return pid_; }

  // Kills it unless it has ended already, and says how it ended. Call it once.
  [[nodiscard]] WorkerEnd end();

 private:
  WorkerProcess(pid_t pid, int socket) : pid_(pid), socket_(socket) {}

  pid_t pid_ = -1;
  int socket_ = -1;  // never blocks
};

// The program that settings name, or hapax-jq in the folder of the program that runs.
[[nodiscard]] Result<std::string> worker_program(const TransformSettings& settings);

}  // namespace hapax::transform
