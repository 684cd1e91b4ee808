#include "cli/demo_store.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <deque>
#include <iostream>
#include <memory>
#include <utility>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hapax/hapax.h>

#include "base/mutex.h"
#include "cli/commands.h"
#include "host/signals.h"

namespace hapax::cli {

namespace {

constexpr std::string_view kOrders = "orders";

Error failed(const char* call) {
  return Error{Errc::kIo, std::string(call) + ": " + std::strerror(errno)};
}

// An order whose answer is under way; its text lives until then.
struct Order {
  std::string line;
  Op op;
  std::string_view word;  // of the answer
};

// Answers may overtake each other; here they leave in the order of the requests.
class OrderDesk {
 public:
  void submit(Store& store, std::string line);

 private:
  void answered(Order& order, std::string_view word);

  base::Mutex mutex_;
  std::deque<std::shared_ptr<Order>> under_way_ HAPAX_GUARDED_BY(mutex_);
};

void OrderDesk::answered(Order& order, std::string_view word) {
  const base::MutexLock lock(mutex_);
  order.word = word;
  for (; !under_way_.empty() && !under_way_.front()->word.empty(); under_way_.pop_front()) {
    std::cout << under_way_.front()->word << '\n' << std::flush;
  }
}

void OrderDesk::submit(Store& store, std::string line) {
  auto order = std::make_shared<Order>();
  {
    const base::MutexLock lock(mutex_);
    under_way_.push_back(order);
  }
  order->line = std::move(line);
  const std::string_view text = order->line;
  const std::size_t space = text.find(' ');
  order->op =
      Append{.stream = kOrders, .payload = text.substr(space + 1), .id = text.substr(0, space)};
  store.submit({.ops = {&order->op, 1}}, [this, order](const Result<Answer>& answer) {
    answered(*order, answer ? word_of(answer->verdicts.front()) : "error");
  });
}

}  // namespace

int run_demo_store(const std::string& folder) {
  EmbeddedOptions options;
  options.log = [](const std::string&) {};  // A recovery after a kill is what the demo is about.
  auto opened = open_embedded(folder, options);
  if (!opened) return report(opened.error());
  Store& store = **opened;
  const Op create = CreateStream{.stream = kOrders};
  const auto created = store.commit({.ops = {&create, 1}});
  if (!created) return report(created.error());
  OrderDesk entry;
  for (std::string line; std::getline(std::cin, line);) entry.submit(store, std::move(line));
  opened->reset();  // Waits for what is under way.
  return kExitOk;
}

Status StoreProcess::start() {
  std::array<int, 2> in{};
  std::array<int, 2> out{};
  if (::pipe2(in.data(), O_CLOEXEC) != 0 || ::pipe2(out.data(), O_CLOEXEC) != 0)
    return failed("pipe");
  host::fail_writes_instead_of(SIGPIPE);
  pid_ = ::fork();
  if (pid_ < 0) return failed("fork");
  if (pid_ == 0) {
    ::dup2(in[0], STDIN_FILENO);
    ::dup2(out[1], STDOUT_FILENO);
    ::execl("/proc/self/exe", "hapax", "demo-store", folder_.c_str(), static_cast<char*>(nullptr));
    ::_exit(127);
  }
  ::close(in[0]);
  ::close(out[1]);
  to_ = ::fdopen(in[1], "w");
  from_ = ::fdopen(out[0], "r");
  if (to_ == nullptr || from_ == nullptr) return failed("fdopen");
  return Ok{};
}

void StoreProcess::send(std::string_view id, std::string_view payload) {
  std::fprintf(to_, "%.*s %.*s\n", static_cast<int>(id.size()), id.data(),
               static_cast<int>(payload.size()), payload.data());
}

std::optional<std::string> StoreProcess::receive() {
  std::fflush(to_);
  std::array<char, 64> line{};
  if (std::fgets(line.data(), line.size(), from_) == nullptr) return std::nullopt;
  std::string word = line.data();
  if (!word.empty() && word.back() == '\n') word.pop_back();
  return word;
}

void StoreProcess::close_pipes() {
  if (to_ != nullptr) std::fclose(std::exchange(to_, nullptr));
  if (from_ != nullptr) std::fclose(std::exchange(from_, nullptr));
}

void StoreProcess::kill() {
  if (pid_ < 0) return;
  if (to_ != nullptr) std::fflush(to_);
  ::kill(pid_, SIGKILL);
  ::waitpid(std::exchange(pid_, -1), nullptr, 0);
  close_pipes();
}

Status StoreProcess::stop() {
  close_pipes();
  int status = 0;
  if (::waitpid(std::exchange(pid_, -1), &status, 0) < 0) return failed("waitpid");
  if (status != 0) return Error{Errc::kUnavailable, "the store's process did not end in order"};
  return Ok{};
}

Result<std::vector<Record>> read_all_orders(const std::string& folder) {
  HAPAX_TRY(const std::unique_ptr<Store> store, open_embedded(folder));
  std::vector<Record> all;
  for (Sequence from{1};;) {
    HAPAX_TRY(Records read, store->read({.stream = kOrders, .from = from, .max = 1000}));
    if (read.records.empty()) return all;
    from = read.records.back().sequence.next();
    std::move(read.records.begin(), read.records.end(), std::back_inserter(all));
  }
}

}  // namespace hapax::cli
