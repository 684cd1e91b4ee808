// What failed behind the store is told in the log, with its paths and addresses. A caller is told
// what it means for its call, and under which reference the log has the rest.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include <hapax/result.h>
#include <hapax/verdicts.h>

namespace hapax::front {

// Used from every thread.
class Discretion {
 public:
  using NewReference = std::function<std::string()>;
  // What really failed, and the reference that the caller was given.
  using Note = std::function<void(const Error& error, std::string_view reference)>;

  Discretion(NewReference new_reference, Note note)
      : new_reference_(std::move(new_reference)), note_(std::move(note)) {}

  // A12: as a caller may know it. `reference` names the request; empty: a new one is made.
  [[nodiscard]] Error outside(Error error, std::string_view reference) const;
  void clean(Verdict& verdict, std::string_view reference) const;

 private:
  const NewReference new_reference_;
  const Note note_;
};

}  // namespace hapax::front
