#include "tables/migration.h"

#include <algorithm>

#include "base/format.h"
#include "base/hex.h"
#include "digest/hash.h"

namespace hapax::tables {

namespace {

std::string step_of(std::uint32_t version, std::string_view name) {
  return base::format("{} ({})", version, name);
}

Status check_applied(std::span<const Migration> known, const Applied& applied) {
  const auto found = std::ranges::find(known, applied.version, &Migration::version);
  if (found == known.end()) {
    const std::uint32_t newest = known.empty() ? 0 : known.back().version;
    return Error{
        Errc::kFormatVersion,
        base::format(
            "the tables have migration {}, this program knows them up to {}; use a newer Hapax",
            step_of(applied.version, applied.name), newest)};
  }
  if (checksum_of(*found) != applied.checksum) {
    return Error{
        Errc::kFormatVersion,
        "migration " + step_of(applied.version, applied.name) + " was applied with checksum " +
            applied.checksum + ", this program's has " + checksum_of(*found) +
            "; an unreleased build of Hapax made the tables: go on with that build, or move "
            "the data to a schema made by this one"};
  }
  return Ok{};
}

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || c == '_' || (c >= '0' && c <= '9');
}

}  // namespace

std::string checksum_of(const Migration& migration) {
  return base::hex(digest::sha256(migration.text).substr(0, 16));
}

std::string expanded(std::string_view text, std::string_view what, std::string_view name) {
  const std::string mark = "{" + std::string(what) + "}";
  std::string out;
  for (;;) {
    const std::size_t at = text.find(mark);
    out += text.substr(0, at);
    if (at == std::string_view::npos) return out;
    out += name;
    text.remove_prefix(at + mark.size());
  }
}

Result<std::vector<Migration>> pending(std::span<const Migration> known,
                                       std::span<const Applied> applied) {
  for (const Applied& one : applied) HAPAX_CHECK(check_applied(known, one));
  std::vector<Migration> left;
  for (const Migration& one : known) {
    if (std::ranges::find(applied, one.version, &Applied::version) == applied.end()) {
      left.push_back(one);
    }
  }
  return left;
}

Status check_present(std::span<const Migration> known, std::span<const Applied> applied,
                     std::uint32_t needs, std::string_view remedy) {
  std::uint32_t newest = 0;
  for (const Applied& one : applied) newest = std::max(newest, one.version);
  for (const Migration& one : known) {
    if (one.version > needs) continue;
    const auto found = std::ranges::find(applied, one.version, &Applied::version);
    if (found == applied.end()) {
      return Error{
          Errc::kFormatVersion,
          base::format("{}, this program needs version {}; run: {}",
                       newest == 0 ? "the tables of Hapax are not there"
                                   : base::format("the tables of Hapax have version {}", newest),
                       needs, remedy)};
    }
    HAPAX_CHECK(check_applied(known, *found));
  }
  return Ok{};
}

Status check_name(std::string_view what, std::string_view name) {
  const bool fits = !name.empty() && name.size() <= 40 && !(name[0] >= '0' && name[0] <= '9') &&
                    std::ranges::all_of(name, is_name_character);
  if (fits) return Ok{};
  return Error{Errc::kInvalidArgument, "the " + std::string(what) + " '" + std::string(name) +
                                           "' is not of 1 to 40 characters a-z, 0-9 and _ that "
                                           "begin with a letter or _"};
}

}  // namespace hapax::tables
