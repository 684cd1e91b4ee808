// The product in half a minute: orders with duplicates and conflicts go through an embedded store
// whose process is killed while it works. The client keeps its own book and compares at the end.
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <unistd.h>

#include "base/format.h"
#include "cli/commands.h"
#include "cli/demo_store.h"
#include "host/signals.h"
#include "wire/json_text.h"

namespace hapax::cli {

using wire::JsonObject;

namespace {

// Small, deterministic, the same everywhere.
class DemoDice {
 public:
  explicit DemoDice(std::uint64_t seed) : state_(seed) {}
  std::uint64_t below(std::uint64_t bound) {
    state_ += 0x9e3779b97f4a7c15ULL;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return (z ^ (z >> 31)) % bound;
  }

 private:
  std::uint64_t state_;
};

struct DemoRequest {
  std::uint32_t order = 0;
  bool other_content = false;  // the same id with another amount: must be refused
};

std::string id_of(std::uint32_t order) { return base::format("order-{:06}", order); }
std::string payload_of(const DemoRequest& request) {
  const std::uint32_t amount = request.other_content ? 0 : request.order * 7 % 1000 + 1;
  return base::format("{{\"order\":{},\"amount\":{}}}", request.order, amount);
}

// What the client saw, apart from the store.
struct Book {
  std::uint64_t sent = 0;
  std::uint64_t retried = 0;  // no answer came: sent again after the restart
  std::uint64_t fresh = 0;
  std::uint64_t duplicates = 0;
  std::uint64_t conflicts = 0;
  std::uint64_t kills = 0;
  std::set<std::uint32_t> confirmed;
  std::uint64_t wrong = 0;  // a verdict that contradicts an earlier one
};

std::vector<DemoRequest> plan_requests(const DemoOptions& options) {
  DemoDice dice(options.seed);
  std::vector<DemoRequest> requests;
  for (std::uint32_t order = 1; order <= options.orders; ++order) {
    requests.push_back({order, false});
    if (dice.below(100) < options.duplicates) {
      requests.push_back({static_cast<std::uint32_t>(dice.below(order) + 1), false});
    }
    if (order % 500 == 0) requests.push_back({order, true});
  }
  return requests;
}

void note(Book& book, const DemoRequest& request, std::string_view word) {
  if (word == "conflict") {
    ++book.conflicts;
    if (!request.other_content) ++book.wrong;
    return;
  }
  if (request.other_content) ++book.wrong;
  if (word == "fresh") {
    ++book.fresh;
    if (!book.confirmed.insert(request.order).second) ++book.wrong;
  } else if (word == "duplicate") {
    ++book.duplicates;
    book.confirmed.insert(request.order);
  } else {
    ++book.wrong;
  }
}

void show_progress(std::size_t done, std::size_t all, std::uint64_t kills) {
  if (::isatty(STDERR_FILENO) == 0) return;
  constexpr std::size_t kWidth = 40;
  const std::size_t filled = all == 0 ? kWidth : done * kWidth / all;
  base::print(stderr, "\r[{:<40}] {:>3} %  killed {} times ", std::string(filled, '='),
              done * 100 / std::max<std::size_t>(all, 1), kills);
  if (done == all) base::print(stderr, "\n");
  std::fflush(stderr);
}

// So many requests are under way at once; few enough that every kill falls between two windows.
std::size_t window_for(const DemoOptions& options, std::size_t requests) {
  constexpr std::size_t kWindowMax = 50;
  return std::clamp<std::size_t>(requests / (options.kills + 1) / 2, 1, kWindowMax);
}

// Sends everything; each batch is repeated until all of it is answered.
Status send_all(StoreProcess& store, const DemoOptions& options,
                const std::vector<DemoRequest>& requests, Book& book) {
  const std::size_t window = window_for(options, requests.size());
  DemoDice dice(options.seed ^ 0x6b696c6cULL);
  std::size_t done = 0;
  while (done < requests.size() && host::interrupted_by() == 0) {
    const std::size_t end = std::min(requests.size(), done + window);
    const bool kill_now = book.kills < options.kills &&
                          done >= requests.size() * (book.kills + 1) / (options.kills + 1);
    for (std::size_t i = done; i < end; ++i) {
      store.send(id_of(requests[i].order), payload_of(requests[i]));
      ++book.sent;
    }
    // The kill falls anywhere among the answers: some orders are stored, some not, nobody knows.
    const std::size_t answers_before_kill = kill_now ? dice.below(end - done) : end - done;
    std::size_t answered = 0;
    for (; answered < answers_before_kill; ++answered) {
      const std::optional<std::string> word = store.receive();
      if (!word) break;
      note(book, requests[done + answered], *word);
    }
    if (host::interrupted_by() != 0) break;
    if (kill_now || answered < end - done) {
      if (!kill_now) return Error{Errc::kUnavailable, "the store's process ended by itself"};
      store.kill();
      ++book.kills;
      HAPAX_CHECK(store.start());
      book.retried += end - done - answered;
    }
    done += answered;
    show_progress(done, requests.size(), book.kills);
  }
  return Ok{};
}

struct DemoOutcome {
  std::uint64_t stored = 0;
  std::uint64_t stored_twice = 0;
  std::uint64_t lost = 0;
  std::uint64_t altered = 0;
};

// Reads the store back, through a process of its own, and compares with the book.
Result<DemoOutcome> compare(const std::string& folder, const Book& book) {
  HAPAX_TRY(const std::vector<Record> records, read_all_orders(folder));
  std::map<std::string, std::uint64_t> times;
  std::map<std::string, std::string> payloads;
  for (const Record& record : records) {
    ++times[record.id];
    payloads[record.id] = record.payload;
  }
  DemoOutcome outcome;
  outcome.stored = times.size();
  for (const auto& [id, count] : times) outcome.stored_twice += count > 1 ? 1 : 0;
  for (const std::uint32_t order : book.confirmed) {
    const auto found = payloads.find(id_of(order));
    if (found == payloads.end()) {
      ++outcome.lost;
    } else if (found->second != payload_of({order, false})) {
      ++outcome.altered;
    }
  }
  return outcome;
}

void print(const DemoOptions& options, const Book& book, const DemoOutcome& outcome, bool good) {
  if (options.output == Output::kJson) {
    base::print("{}\n", JsonObject()
                            .add("orders", options.orders)
                            .add("sent", book.sent)
                            .add("killed", book.kills)
                            .add("retried", book.retried)
                            .add("duplicates_answered", book.duplicates)
                            .add("conflicts_refused", book.conflicts)
                            .add("stored_once", outcome.stored - outcome.stored_twice)
                            .add("stored_twice", outcome.stored_twice)
                            .add("altered", outcome.altered)
                            .add("wrong_verdicts", book.wrong)
                            .add("lost", outcome.lost)
                            .add("ok", good)
                            .text());
    return;
  }
  const auto row = [](std::string_view name, std::uint64_t value, std::string_view what) {
    base::print("  {:<20} {:>8}   {}\n", name, value, what);
  };
  base::print("\n");
  row("sent", book.sent, base::format("{} orders, repeats included", options.orders));
  row("killed", book.kills, "kill -9 of the store's process, each followed by a recovery");
  row("retried", book.retried, "no answer came, so the client sent them again");
  row("duplicates answered", book.duplicates, "with the sequence of the first");
  row("conflicts refused", book.conflicts, "same id, other content");
  row("stored once", outcome.stored - outcome.stored_twice, "");
  row("stored twice", outcome.stored_twice, "");
  row("lost", outcome.lost, "confirmed to the client and not in the store");
  base::print("\n{}\n", good ? "every order, once" : "NOT every order once: this is a bug");
}

}  // namespace

namespace {

namespace fs = std::filesystem;

// Orders of an earlier demo would be counted as this one's.
Status demand_new(const fs::path& folder) {
  std::error_code error;
  if (!fs::exists(folder, error) || fs::is_empty(folder, error)) return Ok{};
  return Error{Errc::kInvalidArgument, "--data " + folder.string() +
                                           " exists and is not an empty folder; the demo counts "
                                           "what is stored, so give it a new one"};
}

Result<fs::path> make_temporary() {
  std::error_code error;
  const fs::path place = fs::temp_directory_path(error);
  if (error) {
    return Error{Errc::kInvalidArgument, "there is no folder for temporary files (" +
                                             error.message() +
                                             "); set TMPDIR to one, or give --data FOLDER"};
  }
  std::string pattern = (place / "hapax-demo-XXXXXX").string();
  if (::mkdtemp(pattern.data()) != nullptr) return fs::path(pattern);
  return Error{Errc::kInvalidArgument, "cannot make a folder like " + pattern + ": " +
                                           std::strerror(errno) +
                                           "; set TMPDIR, or give --data FOLDER"};
}

}  // namespace

int run_demo(const DemoOptions& options) {
  const bool temporary = options.folder.empty();
  const Result<fs::path> made = temporary ? make_temporary() : fs::path(options.folder);
  if (!made) return report(made.error());
  const fs::path& folder = *made;
  if (const Status empty = demand_new(folder); !empty) return report(empty.error());
  // The demo ends, and takes its temporary folder with it.
  host::interrupt_on({SIGINT, SIGTERM, SIGHUP});
  StoreProcess store(folder.string());
  Book book;
  const auto result = [&]() -> Result<DemoOutcome> {
    HAPAX_CHECK(store.start());
    HAPAX_CHECK(send_all(store, options, plan_requests(options), book));
    HAPAX_CHECK(store.stop());
    return compare(folder.string(), book);
  }();
  store.kill();  // In case it did not come to an end.
  std::error_code ignored;
  if (temporary) fs::remove_all(folder, ignored);
  if (host::interrupted_by() != 0) return kExitSignal + host::interrupted_by();
  if (!result) return report(result.error());
  const bool good = result->lost == 0 && result->stored_twice == 0 && result->altered == 0 &&
                    book.wrong == 0 && result->stored == options.orders &&
                    book.confirmed.size() == options.orders;
  print(options, book, *result, good);
  return good ? kExitOk : kExitFailed;
}

}  // namespace hapax::cli
