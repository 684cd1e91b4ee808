// What a workflow is owed of its source: a record waits for its delivery, for a bounded time, and
// never leaves in silence.
//
// Z24: a record that waits for longer than that becomes a dead letter, "expired". Records that were
//     there before the workflow began count from its beginning.
// Z25: what the source stream itself removes before it was ever handed out is counted once, in a
//     register, whichever process notices, and told.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <hapax/store.h>

namespace hapax::delivery {

struct Keeping {
  std::string began{};  // how the names of the registers begin that say since when …
  std::string lost{};   // … and how many were lost
  Duration keep{0};     // a record waits at most so long; 0: forever, and nothing is noticed
};
struct KeepTerms {
  std::string stream;
  std::string consumer;
  Keeping keeping;
};

struct LostRecords {
  std::uint64_t count = 0;
  Sequence through;  // the last one that was counted
};

class SourceKeeping {
 public:
  using Log = std::function<void(std::string_view)>;

  SourceKeeping(Store& store, KeepTerms terms, Log log)
      : store_(store), terms_(std::move(terms)), log_(std::move(log)) {}

  // Once for each stream of that name, before records are received.
  [[nodiscard]] Status open(std::uint64_t stream_uid);
  // Before each receive. A stream that removes nothing by itself is asked from time to time whether
  // it does by now.
  [[nodiscard]] Status notice(Time now);
  // Why a record that was stored then is not sent any more; nothing: it is.
  [[nodiscard]] std::optional<std::string> expired(Time stored, Time now) const;

 private:
  [[nodiscard]] Result<Time> find_beginning(const std::string& name);
  [[nodiscard]] Status count(Sequence next, Sequence first);
  void say(std::string_view text) const {
    if (log_) log_(text);
  }

  Store& store_;
  const KeepTerms terms_;
  const Log log_;
  std::uint64_t stream_uid_ = 0;
  Time began_ = Time::min();
  bool removes_ = false;        // the stream, by itself
  Time look_at_ = Time::min();  // whether it does
};

// What was lost of a stream, for people.
[[nodiscard]] Result<LostRecords> find_lost(Store& store, const KeepTerms& terms);

}  // namespace hapax::delivery
