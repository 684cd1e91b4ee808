// append: a record from an argument or a file, or one per line of standard input.
#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "base/format.h"
#include "cli/op_options.h"
#include "cli/show.h"
#include "cli/store_commands.h"
#include "wire/json_text.h"

namespace hapax::cli {

namespace {

using wire::JsonValue;

constexpr std::size_t kBatchLines = 1'000;
constexpr std::uint64_t kToldMax = 20;
constexpr std::size_t kBatchBytes = std::size_t{4} << 20;

struct AppendOptions {
  Target target;
  OpOptions fields;
  std::optional<std::string> payload;
  std::string file;
  bool ndjson = false;
};

// Lines of standard input, as they come: what is there now is one batch, so a slow sender's line
// does not wait for the next.
class Lines {
 public:
  // False: there are no more, and none is in `lines`.
  bool next(std::vector<std::string>& lines) {
    lines.clear();
    std::size_t bytes = 0;
    while (lines.size() < kBatchLines && bytes < kBatchBytes) {
      const std::size_t end = buffer_.find('\n', at_);
      if (end == std::string::npos) {
        if (ended_ || !lines.empty()) break;
        read_more();
        continue;
      }
      bytes += end - at_;
      lines.emplace_back(buffer_, at_, end - at_);
      at_ = end + 1;
    }
    if (lines.empty() && ended_ && at_ < buffer_.size()) {
      lines.push_back(buffer_.substr(at_));
      at_ = buffer_.size();
    }
    return !lines.empty();
  }

 private:
  void read_more() {
    buffer_.erase(0, std::exchange(at_, 0));
    std::array<char, std::size_t{256} << 10> bytes{};
    const ssize_t count = ::read(STDIN_FILENO, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) return;
    if (count <= 0) ended_ = true;
    if (count > 0) buffer_.append(bytes.data(), static_cast<std::size_t>(count));
  }

  std::string buffer_;
  std::size_t at_ = 0;
  bool ended_ = false;
};

class Appender {
 public:
  Appender(Way& way, const AppendOptions& options, std::vector<Member> members)
      : way_(way), options_(options), members_(std::move(members)) {}

  int run() {
    // Of lines it would become -1, -2 …, the same ids for every input.
    if (const Member* id = find("id"); id != nullptr && id->text().empty()) {
      return report(Error{Errc::kInvalidArgument, "--id is empty; leave it out for no id"});
    }
    if (!open_producer()) return way_.exit_code();
    if (!options_.file.empty()) {
      auto content = read_all(options_.file);
      return content ? one(*content) : report(content.error());
    }
    return options_.payload ? one(*options_.payload) : all_lines();
  }

 private:
  Member* find(std::string_view name) {
    const auto found = std::find_if(members_.begin(), members_.end(),
                                    [&](const Member& member) { return member.name == name; });
    return found == members_.end() ? nullptr : &*found;
  }
  std::string path(std::string_view what) {
    return "/api/v1/streams/" + client::encoded(members_.front().text()) + std::string(what);
  }

  // A producer without an epoch becomes the only writer under its name, and counts from 0.
  bool open_producer() {
    const Member* producer = find("producer");
    if (producer == nullptr) return true;
    if (find("producer_epoch") == nullptr) {
      const auto told =
          way_.ask_good({.method = "POST",
                         .path = path("/producers/" + client::encoded(producer->text())),
                         .key = fresh_key()});
      if (!told) return false;
      members_.push_back(
          {"producer_epoch", std::to_string(number_in(told->json, "producer_epoch"))});
    }
    if (const Member* sequence = find("producer_sequence")) {
      const std::string& text = sequence->json;
      std::from_chars(text.data(), text.data() + text.size(), counted_);
    } else {
      members_.push_back({"producer_sequence", "0"});
    }
    return true;
  }

  // The members of one record; the stream stands in the path.
  std::string record(const std::string& payload, std::uint64_t line) {
    wire::JsonObject out;
    for (auto member = members_.begin() + 1; member != members_.end(); ++member) {
      if (member->name == "producer_sequence") {
        out.add(member->name, counted_++);
      } else if (member->name == "id" && line != 0) {
        out.add("id", base::format("{}-{}", member->text(), line));
      } else {
        out.raw(member->name, member->json);
      }
    }
    const OpField field{"payload", "", true, FieldKind::kBytes};
    const Member bytes = *member_of(field, {payload});
    return out.raw(bytes.name, bytes.json).text();
  }

  int one(const std::string& payload) {
    const auto told = way_.ask_good({.method = "POST",
                                     .path = path("/records"),
                                     .body = record(payload, 0),
                                     .key = fresh_key()});
    if (!told) return way_.exit_code();
    base::print("{}\n", way_.json() ? told->reply.body : verdict_line(told->json));
    return exit_of(*told);
  }

  int all_lines() {
    Lines lines;
    std::vector<std::string> batch;
    int worst = kExitOk;
    while (lines.next(batch)) {
      const int code = send(batch);
      if (stopped_) return code;
      worst = std::max(worst, code);
    }
    if (!way_.json()) {
      std::string summary;
      for (const auto& [word, count] : counts_) {
        summary += base::format("{}{} {}", summary.empty() ? "" : ", ", count, word);
      }
      base::print("{}\n", summary.empty() ? "no lines" : summary);
    }
    return worst;
  }

  int send(const std::vector<std::string>& batch) {
    const std::uint64_t first = line_ + 1;
    client::ApiCall call{
        .method = "POST", .path = path("/records"), .type = "application/x-ndjson"};
    for (const std::string& text : batch) {
      ++line_;
      call.body += (options_.ndjson ? text : record(text, line_)) + "\n";
    }
    call.key = fresh_key();
    const auto told = way_.ask(call);
    if (!told) return stop(way_.exit_code());
    if (told->json.find("verdicts") == nullptr) {
      way_.fail(*told);
      base::print(stderr, "hapax: nothing of lines {} to {} was appended\n", first, line_);
      return stop(way_.exit_code());
    }
    if (way_.json()) base::print("{}\n", told->reply.body);
    return count(told->json, first);
  }

  int count(const JsonValue& answer, std::uint64_t line) {
    int worst = kExitOk;
    for (const JsonValue& verdict : list_in(answer, "verdicts")) {
      const std::string word = text_in(verdict, "verdict");
      ++counts_[word];
      if (!is_holding(word) && ++told_ <= kToldMax) {
        base::print(stderr, "line {}: {}\n", line, verdict_line(verdict));
      }
      worst = std::max(worst, exit_of_verdict(verdict));
      ++line;
    }
    return worst;
  }

  int stop(int code) {
    stopped_ = true;
    return code;
  }

  Way& way_;
  const AppendOptions& options_;
  std::vector<Member> members_;  // the stream is the first
  std::uint64_t counted_ = 0;
  std::uint64_t line_ = 0;
  std::map<std::string, std::uint64_t> counts_;
  std::uint64_t told_ = 0;  // lines that did not hold
  bool stopped_ = false;
};

}  // namespace

void declare_append(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<AppendOptions>();
  CLI::App* append = app.add_subcommand("append", "Append a record, or one per line of stdin");
  options->fields.declare(*append, "append", {"payload"});
  CLI::Option* payload =
      append->add_option("payload", options->payload, "Content; without it, lines of stdin");
  CLI::Option* file =
      append->add_option("--file", options->file, "Content from a file; - for all of stdin");
  file->excludes(payload);
  append->add_flag("--ndjson", options->ndjson, "Lines of stdin are records as JSON objects")
      ->excludes(payload)
      ->excludes(file);
  add_target(*append, options->target);
  append->footer(
      "Of lines, --id ID is ID-1, ID-2 …: the same input again is told to be duplicates.\n"
      "--producer without its epoch opens the producer, and counts from 0.\n"
      "Example: hapax append orders '{\"total\":12}' --id o-1 --group ann\n"
      "         hapax append orders --id import-7 < orders.txt\n"
      "         hapax append orders --ndjson < records.ndjson");
  append->callback([options, &exit_code] {
    auto members = options->fields.members();
    exit_code =
        members
            ? on_way(options->target,
                     [&](Way& way) { return Appender(way, *options, *std::move(members)).run(); })
            : report(members.error());
  });
}

}  // namespace hapax::cli
