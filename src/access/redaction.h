// What failed behind the store is told in the log, with its paths and addresses. A caller is told
// what it means for its call, and under which reference the log has the rest.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include <hapax/result.h>
#include <hapax/verdicts.h>

namespace hapax::access {

// Used from every thread.
class Redaction {
 public:
  using NewReference = std::function<std::string()>;
  // What really failed, and the reference that the caller was given.
  using Note = std::function<void(const Error& error, std::string_view reference)>;

  // `audit` is for what the audit of a tenant lacks; none: as the others.
  Redaction(NewReference new_reference, Note note, Note audit = {})
      : new_reference_(std::move(new_reference)),
        note_(std::move(note)),
        audit_(audit ? std::move(audit) : note_) {}

  // A12: as a caller may know it. `reference` names the request; empty: a new one is made.
  [[nodiscard]] Error outside(Error error, std::string_view reference) const;
  void clean(Verdict& verdict, std::string_view reference) const;
  // A13: an act holds, and its line could not be written. Its caller is not told.
  void lacks(const Error& error, std::string_view reference) const { audit_(error, reference); }

 private:
  const NewReference new_reference_;
  const Note note_;
  const Note audit_;
};

}  // namespace hapax::access
