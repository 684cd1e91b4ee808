// Declarations of workflows as the store keeps them, so that they hold over restarts and for every
// process that shares the store.
//
// F1: a declaration is one register of the store's own tenant, which no caller can reach. Its
//      change and a record of the stream of news are one commit: whoever follows the news sees
//      every change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <hapax/result.h>
#include <hapax/store.h>

#include "delivery/workflow.h"
#include "serve/workflow_board.h"

namespace hapax::serve {

struct Declaration {
  delivery::Workflow workflow;
  bool removing = false;          // its names go; then the declaration goes
  bool drop_undelivered = false;  // what waits goes with them
  Time changed{};
  std::string changed_by{};
  friend bool operator==(const Declaration&, const Declaration&) = default;
};

struct StoredDeclaration {
  Version version;
  std::optional<Declaration> declaration{};  // nothing: it cannot be read
  std::string unreadable{};                  // why

  [[nodiscard]] bool is_removing() const { return declaration && declaration->removing; }
};

// What the register holds. Of a workflow of the configuration, secrets are hidden: they are for
// this process to read, and nothing runs by the register.
[[nodiscard]] std::string text_of(const Declaration& declaration);

class Declarations {
 public:
  static constexpr std::size_t kBytesMax = std::size_t{60} << 10;  // of the text
  static constexpr std::uint64_t kNewsKept = 200;

  // The whole store. It outlives this.
  explicit Declarations(Store& store) : store_(store) {}

  [[nodiscard]] Result<std::optional<StoredDeclaration>> find(const WorkflowName& name);
  // The next version. Nothing: it has another version than the expected one by now; 0: there is
  // none yet.
  [[nodiscard]] Result<std::optional<Version>> put(const Declaration& declaration,
                                                   Version expected);
  // The same for these operations on names of its tenant, as the store knows them: they hold only
  // while the declaration is what it was.
  [[nodiscard]] Result<std::optional<Version>> act(const Declaration& declaration, Version expected,
                                                   std::vector<Op> ops);
  // False: it has another version by now.
  [[nodiscard]] Result<bool> forget(const Declaration& declaration, Version expected);

  // Of all that there are.
  [[nodiscard]] Result<std::vector<WorkflowName>> names();

  // How far somebody has followed.
  struct Place {
    std::uint64_t stream_uid = 0;
    Sequence next{1};
  };
  // Behind all that there is.
  [[nodiscard]] Result<Place> newest();
  // What changed since, some of it at a time; empty: that was all. Nothing: the news do not reach
  // back so far.
  [[nodiscard]] Result<std::optional<std::vector<WorkflowName>>> news(Place& place);
  // Calls once, after the next change.
  [[nodiscard]] std::uint64_t watch(Store::Changed changed);
  void unwatch(std::uint64_t number) { store_.unwatch(number); }

 private:
  Store& store_;
};

}  // namespace hapax::serve
