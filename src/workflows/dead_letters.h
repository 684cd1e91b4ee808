// Dead letters of a workflow in the store: found by filters, and put back. Each call is bounded in
// what it looks at.
//
// Z31: a dead letter is put back once, however many people replay it and however often an answer is
//     lost: the commit that puts it back removes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <hapax/store.h>

#include "delivery/endpoint_settings.h"
#include "delivery/transforming.h"
#include "delivery/workflow.h"

namespace hapax::workflows {

[[nodiscard]] std::string dead_letters_of(std::string_view workflow);

// The status of the answer that a reason tells of: the first "HTTP 422" in it; 0: none came.
[[nodiscard]] int status_in(std::string_view reason);

// Which dead letters are meant. All of what is said must hold.
struct DeadFilter {
  std::set<std::uint64_t> sequences{};  // empty: any
  Time since = Time::min();             // died then or later
  Time until = Time::max();
  std::string type{};  // empty texts: any
  std::string group{};
  std::string id{};
  std::string reason{};    // contains it
  std::string endpoint{};  // by its name
  std::optional<delivery::StatusRule> status{};
  // A jq program over the payload: its first output is neither false nor null. Null: none.
  delivery::Transforming* condition = nullptr;
};

struct DeadLetter {
  Record record;
  std::string endpoint;  // empty: it is not known, or the workflow has one without a name
};

struct DeadPage {
  std::vector<DeadLetter> letters{};
  std::uint64_t last = 0;      // sequence of the newest one that there is
  std::uint64_t unjudged = 0;  // payloads over which the condition failed: they are not meant
  std::string why_unjudged{};  // the first time
  std::optional<std::uint64_t> next{};  // none: there are no more; also behind an empty page
};
struct DeadRange {
  std::uint64_t from = 0;
  std::uint64_t through = ~std::uint64_t{0};
  std::size_t max = 100;
  // So long a condition may run over the letters of one page: whoever asks holds a thread that
  // others need, too.
  Duration judge_max{2'000};
};
// `declared`: null if nobody declares the workflow any more; its dead letters are still there.
[[nodiscard]] Result<DeadPage> find_dead_letters(const delivery::Workflow* declared,
                                                 const std::string& stream,
                                                 const DeadFilter& filter, const DeadRange& range,
                                                 Store& store);

struct DeadReplay {
  struct NotPutBack {
    std::uint64_t sequence = 0;
    std::string reason;
  };
  std::uint64_t replayed = 0;
  std::uint64_t repeated = 0;         // another letter of the same failure was put back before
  std::uint64_t gone = 0;             // somebody else put them back, or removed them
  std::vector<NotPutBack> refused{};  // they stay
};
[[nodiscard]] Result<DeadReplay> put_back(const std::string& stream,
                                          const std::vector<DeadLetter>& letters, Store& store);

// Removes those up to that sequence.
[[nodiscard]] Status drop_dead_letters(const std::string& stream, std::uint64_t through,
                                       Store& store);

}  // namespace hapax::workflows
