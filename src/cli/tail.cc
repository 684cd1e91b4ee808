// tail: reads a stream, and goes on with it.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "base/format.h"
#include "cli/show.h"
#include "cli/store_commands.h"
#include "cli/way.h"

namespace hapax::cli {

namespace {

using wire::JsonValue;

constexpr std::int64_t kTailPage = 500;
constexpr std::chrono::milliseconds kTailWait{20'000};

struct TailOptions {
  Target target;
  std::string stream;
  std::int64_t from = 0;  // 0: so that `lines` records are shown
  std::int64_t lines = 10;
  std::int64_t max = 0;  // 0: no end
  bool follow = false;
  bool payload_only = false;
};

class TailCommand {
 public:
  TailCommand(Way& way, const TailOptions& options) : way_(way), options_(options) {}

  int run() {
    next_ = options_.from;
    if (next_ == 0 && !find_start()) return way_.exit_code();
    for (;;) {
      const auto told = way_.ask_good(page());
      if (!told) return way_.exit_code();
      const std::int64_t first = number_in(told->json, "first");
      if (next_ < first) {
        base::print(stderr, "hapax: records {} to {} are gone\n", next_, first - 1);
        next_ = first;
      }
      const auto& records = list_in(told->json, "records");
      for (const JsonValue& record : records) {
        print(record);
        next_ = number_in(record, "sequence") + 1;
        if (options_.max != 0 && ++shown_ >= options_.max) return kExitOk;
      }
      std::fflush(stdout);
      const bool end = records.empty() || next_ > number_in(told->json, "last");
      if (end && !options_.follow) return kExitOk;
    }
  }

 private:
  [[nodiscard]] std::string path() const {
    return "/api/v1/streams/" + client::encoded(options_.stream);
  }

  client::ApiCall page() const {
    client::ApiCall call{
        .method = "GET",
        .path = base::format("{}/records?from={}&max={}", path(), next_, kTailPage)};
    if (options_.follow) {
      call.path += base::format("&wait_ms={}", kTailWait.count());
      call.waits = kTailWait;
    }
    return call;
  }

  bool find_start() {
    const auto told = way_.look(path());
    if (!told) return false;
    const std::int64_t last = number_in(told->json, "last");
    next_ = std::max({number_in(told->json, "first"), last - options_.lines + 1, std::int64_t{1}});
    return true;
  }

  void print(const JsonValue& record) const {
    if (way_.json()) {
      base::print("{}\n", json_of(record));
    } else if (options_.payload_only) {
      const std::string payload = bytes_in(record, "payload");
      std::fwrite(payload.data(), 1, payload.size(), stdout);
      std::fputc('\n', stdout);
    } else {
      base::print("{:>8}  {}  {:<16} {:<12} {}\n", number_in(record, "sequence"),
                  instant_text(number_in(record, "time_ms")), or_dash(record, "id"),
                  or_dash(record, "group"), printable(bytes_in(record, "payload")));
    }
  }
  static std::string or_dash(const JsonValue& record, const std::string& name) {
    const std::string text = printable(bytes_in(record, name));
    return text.empty() ? "-" : text;
  }

  Way& way_;
  const TailOptions& options_;
  std::int64_t next_ = 1;
  std::int64_t shown_ = 0;
};

}  // namespace

void declare_tail(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<TailOptions>();
  CLI::App* tail = app.add_subcommand("tail", "Print records of a stream, and those that follow");
  tail->add_option("stream", options->stream, "Name of the stream")->required();
  CLI::Option* from = tail->add_option("--from", options->from, "First sequence wanted");
  from->check(CLI::PositiveNumber);
  tail->add_option("-n,--lines", options->lines, "Without --from: so many of the newest")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str()
      ->excludes(from);
  tail->add_option("--max", options->max, "Stop after so many")->check(CLI::PositiveNumber);
  tail->add_flag("-f,--follow", options->follow, "Wait for more, until interrupted");
  tail->add_flag("--payload", options->payload_only, "Print payloads only, as they are");
  add_target(*tail, options->target);
  tail->footer(
      "Example: hapax tail orders\n         hapax tail orders --follow --json\n"
      "         hapax tail orders --from 1 --payload");
  tail->callback([options, &exit_code] {
    exit_code = on_way(options->target, [&](Way& way) { return TailCommand(way, *options).run(); });
  });
}

}  // namespace hapax::cli
