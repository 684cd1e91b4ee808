#include "resp/keyspace.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <vector>

#include "base/format.h"
#include "base/whole_number.h"
#include "base/words.h"
#include "resp/expiry.h"
#include "resp/glob.h"

namespace hapax::resp {

using base::lower;
using base::upper;

namespace {

constexpr std::uint32_t kCountDefault = 10;

struct Scan {
  std::uint64_t cursor = 0;
  std::uint32_t max = kCountDefault;
  std::optional<std::string> pattern;
  bool strings = true;  // TYPE; there is nothing else
};

// What is wrong with the arguments, or "".
std::string read_scan(CommandWords arguments, Scan& scan) {
  const std::string_view cursor = arguments[1];
  const auto [end, failed] =
      std::from_chars(cursor.data(), cursor.data() + cursor.size(), scan.cursor);
  if (failed != std::errc{} || end != cursor.data() + cursor.size()) return "invalid cursor";
  for (std::size_t i = 2; i < arguments.size(); i += 2) {
    if (i + 1 == arguments.size()) return "syntax error";
    const std::string option = upper(arguments[i]);
    const std::string_view value = arguments[i + 1];
    if (option == "COUNT") {
      const auto count = base::whole_number(value);
      if (!count) return std::string(kNotANumber);
      if (*count < 1) return "syntax error";
      const auto most = static_cast<std::int64_t>(limits::kReadMax);
      scan.max = static_cast<std::uint32_t>(std::min(*count, most));
    } else if (option == "MATCH") {
      scan.pattern = value;
    } else if (option == "TYPE") {
      scan.strings = lower(value) == "string";
    } else {
      return "syntax error";
    }
  }
  return "";
}

Result<RegisterPage> find(Store& store, const Scan& scan) {
  HAPAX_TRY(RegisterPage page, store.scan_registers({scan.cursor, scan.max}));
  std::erase_if(page.names, [&](const std::string& name) {
    return !scan.strings || (scan.pattern && !matches(*scan.pattern, name));
  });
  return page;
}

Result<std::int64_t> count(Store& store, const std::string& tenant) {
  HAPAX_TRY(const std::vector<TenantUse> uses, store.tenants());
  for (const TenantUse& use : uses) {
    if (use.tenant == tenant) return static_cast<std::int64_t>(use.registers);
  }
  return std::int64_t{0};
}

// --- INFO ----------------------------------------------------------------------------------------

class InfoText {
 public:
  explicit InfoText(std::vector<std::string> wanted) : wanted_(std::move(wanted)) {}

  void section(const std::string& name) {
    const auto asked = [&](std::string_view word) {
      return std::find(wanted_.begin(), wanted_.end(), word) != wanted_.end();
    };
    shown_ = wanted_.empty() || asked(lower(name)) || asked("all") || asked("everything") ||
             asked("default");
    if (!shown_) return;
    text_ += (text_.empty() ? "# " : "\r\n# ") + name + "\r\n";
  }
  void add(std::string_view name, std::string_view value) {
    if (shown_) text_.append(name).append(":").append(value).append("\r\n");
  }
  void add(std::string_view name, std::uint64_t value) { add(name, std::to_string(value)); }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::vector<std::string> wanted_;
  std::string text_;
  bool shown_ = true;
};

// Figures of the whole store are not for tenants.
void tell_store(InfoText& out, const Statistics& figures) {
  out.section("Memory");
  out.add("used_memory", figures.memory_bytes);
  out.section("Stats");
  out.add("hapax_commits", figures.commits);
  out.add("hapax_batches", figures.batches);
  out.add("hapax_snapshots", figures.snapshots);
  out.add("hapax_journal_bytes", figures.journal_bytes);
  out.section("Keyspace");
  if (figures.registers == 0) return;
  out.add("db0", base::format("keys={},expires={},avg_ttl=0", figures.registers,
                              figures.registers_expiring));
}

}  // namespace

Next Keyspace::dbsize(Conversation& talk, CommandWords) {
  if (const Status allowed = check_right(talk.caller(), access::Right::kConsume); !allowed) {
    return talk.refuse(allowed.error());
  }
  return talk.ask(
      "DBSIZE", [tenant = talk.caller().tenant](Store& store) { return count(store, tenant); },
      [](Replies& replies, std::int64_t number) { replies.integer(number); });
}

Next Keyspace::scan(Conversation& talk, CommandWords arguments) {
  if (const Status allowed = check_right(talk.caller(), access::Right::kConsume); !allowed) {
    return talk.refuse(allowed.error());
  }
  Scan scan;
  if (const std::string wrong = read_scan(arguments, scan); !wrong.empty()) {
    return talk.error("ERR", wrong);
  }
  return talk.ask(
      "SCAN", [scan = std::move(scan)](Store& store) { return find(store, scan); },
      [](Replies& replies, const RegisterPage& found) {
        replies.array(2);
        replies.bulk(std::to_string(found.next));
        replies.array(found.names.size());
        for (const std::string& name : found.names) replies.bulk(name);
      });
}

Next Keyspace::info(Conversation& talk, CommandWords arguments) {
  std::vector<std::string> wanted;
  for (const std::string_view section : arguments.subspan(1)) wanted.push_back(lower(section));
  const access::Caller& who = talk.caller();
  const bool all = who.tenant.empty() && who.rights.has(access::Right::kAdmin);
  return talk.ask(
      "INFO", [](Store& store) { return store.statistics(); },
      [wanted = std::move(wanted), all, version = std::string(talk.version())](
          Replies& replies, const Statistics& figures) {
        InfoText out(wanted);
        out.section("Server");
        out.add("redis_version", "7.0.0");  // whose semantics the plain commands have
        out.add("redis_mode", "standalone");
        out.add("hapax_version", version);
        out.section("Persistence");
        out.add("loading", "0");
        out.add("aof_enabled", "1");
        out.section("Replication");
        out.add("role", "master");
        if (all) tell_store(out, figures);
        replies.bulk(out.text());
      });
}

}  // namespace hapax::resp
