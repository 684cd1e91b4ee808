// What the parts of `hapax relay` share.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <hapax/result.h>

#include "cli/commands.h"
#include "delivery/relay_settings.h"
#include "relay/source.h"

namespace hapax::cli {

struct RelayOptions {
  std::vector<std::string> from;
  std::string to;
  std::string schema = "hapax";
  std::string prefix = "hapax_";
  std::string retention = "30d";
  std::string name;
  std::string lease = "15s";
  std::string token_file;
  std::string authorities;
  std::uint32_t batch = delivery::RelaySettings{}.batch;
  std::uint32_t concurrency = 16;
  std::uint32_t attempts = delivery::RelaySettings{}.attempts_max;
  std::vector<std::string> redrive;  // ids
  bool redrive_all = false;
  std::string rate;   // of a redrive; empty = at once
  std::string since;  // a redrive's, span or time; empty = whenever they died
  bool dry_run = false;
  std::string metrics;       // address; empty: nobody is told how it does
  std::string log = "text";  // or json
  bool once = false;
  bool status = false;
  bool dead_letters = false;
  Output output = Output::kText;

  [[nodiscard]] bool redrives() const { return redrive_all || !redrive.empty(); }
  [[nodiscard]] bool sends() const { return !status && !dead_letters && !redrives(); }
};

// One line per event, from any thread. What others wrote does not get to the terminal as it is.
void say(std::string_view text);
// From now on as JSON objects.
void say_as_json();

// `owner` holds the lanes: no two sources have the same, for they may be one database.
[[nodiscard]] Result<std::unique_ptr<relay::Source>> open_source(const RelayOptions& options,
                                                                 const std::string& from,
                                                                 const std::string& owner);

// What is asked of outboxes without relaying. They print, and answer the exit code.
[[nodiscard]] Result<int> show_status(const RelayOptions& options);
[[nodiscard]] Result<int> list_dead_letters(const RelayOptions& options);
[[nodiscard]] Result<int> redrive_dead_letters(const RelayOptions& options);

}  // namespace hapax::cli
