#include "journal/names.h"

#include <array>
#include <limits>
#include <optional>

#include "journal/block.h"

namespace hapax::journal {
namespace {

constexpr std::string_view kQuarantine = "quarantine-";

struct Pattern {
  FileName::Kind kind;
  std::string_view prefix;
  std::string_view suffix;
  std::uint64_t number_max;
};

constexpr std::uint64_t kAny = std::numeric_limits<std::uint64_t>::max();
constexpr Pattern kSegment{FileName::Kind::kSegment, "journal-", ".log",
                           std::numeric_limits<std::uint32_t>::max()};
constexpr Pattern kSnapshot{FileName::Kind::kSnapshot, "snapshot-", ".snap", kAny};
constexpr Pattern kPart{FileName::Kind::kPart, "part-", ".part", kAny};

std::string made(const Pattern& pattern, std::uint64_t number) {
  return std::string(pattern.prefix) + hex16(number) + std::string(pattern.suffix);
}

std::optional<std::uint64_t> parse_hex16(std::string_view digits) {
  if (digits.size() != 16) return std::nullopt;
  std::uint64_t number = 0;
  for (const char digit : digits) {
    const std::size_t value = std::string_view("0123456789abcdef").find(digit);
    if (value == std::string_view::npos) return std::nullopt;
    number = number << 4 | value;
  }
  return number;
}

std::optional<FileName> parse(const Pattern& pattern, std::string_view name) {
  if (!name.starts_with(pattern.prefix) || !name.ends_with(pattern.suffix)) return std::nullopt;
  name.remove_prefix(pattern.prefix.size());
  if (name.size() < pattern.suffix.size()) return std::nullopt;
  name.remove_suffix(pattern.suffix.size());
  const auto number = parse_hex16(name);
  if (!number || *number > pattern.number_max) return std::nullopt;
  return FileName{pattern.kind, *number};
}

// A quarantined segment, or a piece of one, keeps its number in use.
std::uint64_t quarantined_number(std::string_view name) {
  const std::string prefix = quarantine_name(kSegment.prefix);
  if (!name.starts_with(prefix)) return 0;
  const std::uint64_t number = parse_hex16(name.substr(prefix.size(), 16)).value_or(0);
  return number <= kSegment.number_max ? number : 0;
}

bool is_torn_tail(std::string_view name) {
  const std::string pattern = torn_tail_name(0, 0);
  if (name.size() != pattern.size()) return false;
  const auto offset = parse_hex16(name.substr(name.size() - 16));
  const auto segment = static_cast<std::uint32_t>(quarantined_number(name));
  return offset && name == torn_tail_name(segment, *offset);
}

// Nothing refers to a file before it has its name.
bool is_unfinished(std::string_view name) {
  if (!name.ends_with(kUnfinishedSuffix)) return false;
  name.remove_suffix(kUnfinishedSuffix.size());
  using Kind = FileName::Kind;
  const Kind kind = parse_name(name).kind;
  if (kind == Kind::kQuarantine) return is_torn_tail(name);
  return kind != Kind::kUnknown && kind != Kind::kUnfinished;
}

bool is_renewed(std::string_view name) {
  if (!name.ends_with(kRenewedSuffix)) return false;
  name.remove_suffix(kRenewedSuffix.size());
  return parse(kSnapshot, name) || parse(kPart, name);
}

}  // namespace

std::string segment_name(std::uint32_t number) { return made(kSegment, number); }
std::string snapshot_name(std::uint64_t lsn) { return made(kSnapshot, lsn); }
std::string part_name(std::uint64_t number) { return made(kPart, number); }

std::string torn_tail_name(std::uint32_t segment, std::uint64_t offset) {
  return std::string(kQuarantine) + std::string(kSegment.prefix) + hex16(segment) + "-at-" +
         hex16(offset);
}

std::string quarantine_name(std::string_view name) {
  return std::string(kQuarantine) + std::string(name);
}

FileName parse_name(std::string_view name) {
  using Kind = FileName::Kind;
  if (name == kStoreName) return {Kind::kStore};
  if (name == kLockName) return {Kind::kLock};
  if (name == kMarksName) return {Kind::kMarks};
  if (name == kReserveName) return {Kind::kReserve};
  if (name == kCopyingName) return {Kind::kCopying};
  if (name == kMovedName) return {Kind::kMoved};
  for (const Pattern& pattern : {kSegment, kSnapshot, kPart}) {
    if (const auto parsed = parse(pattern, name)) return *parsed;
  }
  if (is_unfinished(name)) return {Kind::kUnfinished};
  if (is_renewed(name)) return {Kind::kRenewed};
  if (name.starts_with(kQuarantine)) return {Kind::kQuarantine, quarantined_number(name)};
  return {};
}

std::string folder_path(const ports::Folder& folder) {
  std::string path = folder.describe(kStoreName);
  const std::size_t tail = kStoreName.size() + 1;
  if (path.size() > tail) path.resize(path.size() - tail);
  return path;
}

}  // namespace hapax::journal
