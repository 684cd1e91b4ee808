// A PostgreSQL server of the test program's own: in a temporary folder, reached by a unix socket
// only, gone when the program ends, however it ends. Made on first use and shared by the program's
// tests; each test makes a database or a schema of its own in it.
#pragma once

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/temporary_folder_test.h"
#include "postgres/connection.h"

namespace hapax::testing_postgres {

class Cluster {
 public:
  // Made on first use, stopped at the end of the program.
  static Cluster& instance() {
    static Cluster cluster;
    return cluster;
  }

  // `settings` are lines of its configuration.
  explicit Cluster(const std::string& settings = "") {
    if (::geteuid() == 0) {  // PostgreSQL refuses to run as root.
      user_ = {"setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"};
      run({"chown", "postgres", folder_});
    }
    run(as_user({program("initdb"), "-D", folder_ + "/data", "-U", "postgres", "-A", "trust", "-E",
                 "UTF8", "--no-locale", "--no-sync"}));
    std::ofstream(folder_ + "/data/postgresql.auto.conf", std::ios::app)
        << "listen_addresses = ''\nunix_socket_directories = '" << folder_
        << "'\nmax_connections = 40\nshared_buffers = 64MB\nmax_prepared_transactions = 4\n"
           "deadlock_timeout = 50ms\nautovacuum = off\n"
        << settings;
    start();
  }
  ~Cluster() { stop(SIGQUIT); }
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  void start() {
    server_ = spawn(as_user({program("postgres"), "-D", folder_ + "/data"}, "QUIT"));
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{60};
    while (!postgres::Connection::open(uri("postgres"))) {
      if (std::chrono::steady_clock::now() > until) {
        std::fprintf(stderr, "PostgreSQL did not start; see %s/log\n", folder_.c_str());
        std::abort();
      }
      ::poll(nullptr, 0, 20);
    }
  }
  // SIGINT: fast. SIGQUIT: immediate, as if the machine had stopped.
  void stop(int signal = SIGQUIT) {
    ::kill(server_, signal);
    ::waitpid(server_, nullptr, 0);
  }

  [[nodiscard]] std::string uri(const std::string& database,
                                const std::string& user = "postgres") const {
    return "postgres:///" + database + "?host=" + folder_ + "&user=" + user;
  }
  // A new empty database; answers its URI.
  std::string make_database() {
    static std::atomic<int> made{0};
    const std::string name = "test_" + std::to_string(++made);
    auto connection = postgres::Connection::open(uri("postgres"));
    if (!connection || !connection->run("CREATE DATABASE " + name)) std::abort();
    return uri(name);
  }
  [[nodiscard]] const std::string& folder() const { return folder_; }
  [[nodiscard]] static std::string program(const std::string& name) {
    return "/usr/lib/postgresql/15/bin/" + name;
  }

 private:
  // With a signal to die by when this program does.
  [[nodiscard]] std::vector<std::string> as_user(std::vector<std::string> words,
                                                 const std::string& signal = "") const {
    std::vector<std::string> all = user_;
    if (!all.empty() && !signal.empty()) all.insert(all.end(), {"--pdeathsig", signal});
    all.insert(all.end(), words.begin(), words.end());
    return all;
  }
  [[nodiscard]] pid_t spawn(const std::vector<std::string>& words) const {
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    const std::string log = folder_ + "/log";
    const pid_t child = ::fork();
    if (child < 0) std::abort();
    if (child != 0) return child;
    ::prctl(PR_SET_PDEATHSIG, SIGQUIT);
    const int file = ::open(log.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0666);
    ::dup2(file, 1);
    ::dup2(file, 2);
    if (::chdir("/") != 0) ::_exit(126);
    ::execvp(arguments[0], arguments.data());
    ::_exit(127);
  }
  void run(const std::vector<std::string>& words) const {
    int status = 0;
    ::waitpid(spawn(words), &status, 0);
    if (status == 0) return;
    std::fprintf(stderr, "%s failed; see %s/log\n", words.back().c_str(), folder_.c_str());
    std::abort();
  }

  const host::TemporaryFolder place_;
  const std::string folder_ = place_.text();
  std::vector<std::string> user_;  // words before a command that make it run as somebody else
  pid_t server_ = 0;
};

}  // namespace hapax::testing_postgres
