// The steps that make our tables, and what is left to do in a database that has some of them. Pure:
// the rooms of the databases read what was applied and run what is pending.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hapax/result.h>

namespace hapax::tables {

struct Migration {
  std::uint32_t version = 0;
  std::string_view name;
  std::string_view text;  // SQL with {schema} or {prefix} in it
};

// As the table of migrations remembers it.
struct Applied {
  std::uint32_t version = 0;
  std::string name;
  std::string checksum;
};

// What `hapax migrate` reports.
struct MigrationReport {
  std::uint32_t before = 0;  // version; 0 = there was nothing
  std::uint32_t after = 0;
  std::vector<std::string> steps;  // done, or to be done: "1 outbox_inbox"
};

// Of the text before names are put into it; 32 hexadecimal digits.
[[nodiscard]] std::string checksum_of(const Migration& migration);

// The SQL with every `{what}` replaced by `name`.
[[nodiscard]] std::string expanded(std::string_view text, std::string_view what,
                                   std::string_view name);

// The known ones that are not applied yet. An applied one that is unknown here, or has another
// text, is refused: a newer or a changed program has been at these tables.
[[nodiscard]] Result<std::vector<Migration>> pending(std::span<const Migration> known,
                                                     std::span<const Applied> applied);

// Whether a program that needs the migrations up to `needs` can work: they are there, and with the
// text that it knows. Newer ones do not matter, for a program that is not upgraded yet has to go
// on: no migration may break what an earlier one promised. `remedy` = the command that helps.
[[nodiscard]] Status check_present(std::span<const Migration> known,
                                   std::span<const Applied> applied, std::uint32_t needs,
                                   std::string_view remedy);

// Names become part of SQL text, so they are of a kind that needs no care: [a-z_][a-z0-9_]{0,39}.
[[nodiscard]] Status check_name(std::string_view what, std::string_view name);

}  // namespace hapax::tables
