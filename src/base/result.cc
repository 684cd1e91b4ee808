#include <algorithm>
#include <array>

#include <hapax/ids.h>
#include <hapax/result.h>
#include <hapax/verdicts.h>

namespace hapax {

namespace {

struct ErrcRow {
  Errc code;
  std::string_view word;
  int http;
  Retry retry;
};

constexpr std::array kRows = {
#define HAPAX_ERROR(symbol, number, word, http, retry) \
  ErrcRow{Errc::symbol, word, http, Retry::retry},
#include <hapax/errors.def>

#include "base/format.h"
#undef HAPAX_ERROR
};

const ErrcRow& row_of(Errc code) {
  for (const ErrcRow& row : kRows) {
    if (row.code == code) return row;
  }
  std::fprintf(stderr, "hapax: error code %d is not in errors.def\n", static_cast<int>(code));
  std::abort();
}

struct VerdictWords {
  std::string_view operator()(const Appended&) const { return "fresh"; }
  std::string_view operator()(const Duplicate&) const { return "duplicate"; }
  std::string_view operator()(const Conflict&) const { return "conflict"; }
  std::string_view operator()(const Fenced&) const { return "fenced"; }
  std::string_view operator()(const Gap&) const { return "gap"; }
  std::string_view operator()(const UnknownProducer&) const { return "unknown_producer"; }
  std::string_view operator()(const TooOldToKnow&) const { return "too_old_to_know"; }
  std::string_view operator()(const ExpectationFailed&) const { return "expectation_failed"; }
  std::string_view operator()(const Claimed&) const { return "fresh"; }
  std::string_view operator()(const DuplicateClaim&) const { return "duplicate"; }
  std::string_view operator()(const InProgress&) const { return "in_progress"; }
  std::string_view operator()(const UnknownOutcome&) const { return "unknown"; }
  std::string_view operator()(const Received&) const { return "records"; }
  std::string_view operator()(const Stale&) const { return "stale"; }
  std::string_view operator()(const Done&) const { return "done"; }
  std::string_view operator()(const Renewed&) const { return "done"; }
  std::string_view operator()(const Registered&) const { return "done"; }
  std::string_view operator()(const Superseded&) const { return "superseded"; }
  std::string_view operator()(const Held& v) const { return v.applied ? "done" : "unchanged"; }
  std::string_view operator()(const Began&) const { return "done"; }
  std::string_view operator()(const Opened&) const { return "done"; }
  std::string_view operator()(const Staged&) const { return "staged"; }
  std::string_view operator()(const NotApplied&) const { return "not_applied"; }
  std::string_view operator()(const Refused&) const { return "refused"; }
};

struct Holds {
  template <class Other>
  bool operator()(const Other&) const {
    return false;
  }
  bool operator()(const Appended&) const { return true; }
  bool operator()(const Duplicate&) const { return true; }
  bool operator()(const Claimed&) const { return true; }
  bool operator()(const DuplicateClaim&) const { return true; }
  bool operator()(const Received&) const { return true; }
  bool operator()(const Done&) const { return true; }
  bool operator()(const Renewed&) const { return true; }
  bool operator()(const Registered&) const { return true; }
  bool operator()(const Held&) const { return true; }
  bool operator()(const Began&) const { return true; }
  bool operator()(const Opened&) const { return true; }
  bool operator()(const Staged&) const { return true; }
};

}  // namespace

bool is_known(Errc code) {
  return std::any_of(kRows.begin(), kRows.end(),
                     [code](const ErrcRow& row) { return row.code == code; });
}
std::string_view word_of(Errc code) { return row_of(code).word; }
Retry retry_of(Errc code) { return row_of(code).retry; }
int http_status_of(Errc code) { return row_of(code).http; }

std::string Error::text() const {
  std::string text = base::format("HX{} ", static_cast<int>(code));
  text += word_of(code);
  text += ": ";
  text += detail;
  return text;
}

Error Error::within(std::string_view where) && {
  detail = std::string(where) + ": " + detail;
  return std::move(*this);
}

std::string Fingerprint::hex() const {
  char buffer[33];
  std::snprintf(buffer, sizeof buffer, "%016llx%016llx", static_cast<unsigned long long>(high),
                static_cast<unsigned long long>(low));
  return buffer;
}

std::string_view word_of(const Verdict& verdict) { return std::visit(VerdictWords{}, verdict); }
bool holds(const Verdict& verdict) { return std::visit(Holds{}, verdict); }

}  // namespace hapax
