#include "journal/moving.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "journal/block.h"
#include "journal/names.h"
#include "journal/new_file.h"

namespace hapax::journal {
namespace {

constexpr std::string_view kTitle = "hapax copy 1\n";

std::string hex_bytes(std::string_view bytes) {
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += 8) {
    std::uint64_t number = 0;
    for (const char byte : bytes.substr(at, 8)) {
      number = number << 8 | static_cast<unsigned char>(byte);
    }
    text += hex16(number);
  }
  return text;
}

std::string first_line(std::string_view text) {
  return std::string(text.substr(0, text.find('\n')));
}

// "from …\n" at the front of the rest; it is taken off.
Result<std::string> take_line(std::string_view& rest, std::string_view name) {
  const std::size_t end = rest.find('\n');
  if (!rest.starts_with(name) || end == std::string_view::npos) {
    return Error{Errc::kCorruption, "its line '" + std::string(name) + "' is missing"};
  }
  std::string value(rest.substr(name.size(), end - name.size()));
  rest.remove_prefix(end + 1);
  return value;
}

Result<MoveNote> parse_note(std::string_view text) {
  const std::size_t ticket = text.find("\nticket ");
  if (!text.starts_with(kTitle) || ticket == std::string_view::npos) {
    return Error{Errc::kCorruption, "it is no note of hapax copy, or of a newer one"};
  }
  MoveNote note;
  note.cargo = text.substr(kTitle.size(), ticket + 1 - kTitle.size());
  std::string_view rest = text.substr(ticket + 1);
  HAPAX_TRY(note.ticket, take_line(rest, "ticket "));
  HAPAX_TRY(note.journey.from, take_line(rest, "from "));
  HAPAX_TRY(note.journey.to, take_line(rest, "to "));
  HAPAX_TRY(note.journey.command, take_line(rest, "command "));
  return note;
}

Result<std::string> read_text(const ports::File& file) {
  constexpr std::size_t kNoteBytesMax = 64 << 10;
  HAPAX_TRY(const std::uint64_t size, file.size());
  std::string text(std::min<std::uint64_t>(size, kNoteBytesMax), '\0');
  HAPAX_TRY(const std::size_t got, file.read_at(0, text));
  text.resize(got);
  return text;
}

}  // namespace

MoveNote note_of(const Cargo& cargo, std::string ticket, Journey journey) {
  const Identity& identity = cargo.identity;
  std::string text =
      "store " + hex_bytes({identity.store_id.data(), identity.store_id.size()}) + "\n";
  base::append_format(text, "history {}\n", identity.history);
  base::append_format(text, "facts {}\n", cargo.last.value);
  text += "checksum " + hex(cargo.checksum) + "\n";
  base::append_format(text, "snapshot {}\n", cargo.snapshot.value);
  return {std::move(text), std::move(ticket), std::move(journey)};
}

bool same_store(const MoveNote& a, const MoveNote& b) {
  return first_line(a.cargo) == first_line(b.cargo);
}

Result<std::optional<MoveNote>> read_note(ports::Folder& folder, std::string_view name) {
  const auto file = folder.open(name, ports::OpenMode::kRead);
  if (!file && file.error().code == Errc::kNotFound) return std::optional<MoveNote>{};
  if (!file) return file.error();
  HAPAX_TRY(const std::string text, read_text(**file));
  auto note = parse_note(text);
  if (!note) return std::move(note).error().within(folder.describe(name));
  return std::optional<MoveNote>(*std::move(note));
}

Status write_note(ports::Folder& folder, std::string_view name, const MoveNote& note) {
  const std::string text = std::string(kTitle) + note.cargo + "ticket " + note.ticket + "\nfrom " +
                           note.journey.from + "\nto " + note.journey.to + "\ncommand " +
                           note.journey.command + "\n";
  HAPAX_TRY(const auto file, create_whole(folder, std::string(name), text));
  return sync_names(folder);
}

Status remove_note(ports::Folder& folder, std::string_view name) {
  HAPAX_CHECK(folder.remove(name));
  return sync_names(folder);
}

Status check_copied(ports::Folder& folder) {
  HAPAX_TRY(const std::optional<MoveNote> note, read_note(folder, kCopyingName));
  if (!note) return Ok{};
  return Error{Errc::kPreconditionFailed,
               folder.describe(kCopyingName) + ": the copy of " + note->journey.from +
                   " into this place was not finished, so this is no store yet. Run it again, it "
                   "goes on where it ended: " +
                   note->journey.command};
}

Status check_not_moved(ports::Folder& folder) {
  HAPAX_TRY(const std::optional<MoveNote> note, read_note(folder, kMovedName));
  if (!note) return Ok{};
  return Error{Errc::kPreconditionFailed,
               folder.describe(kMovedName) + ": this store was moved to " + note->journey.to +
                   ". Were both used, they would give out the same sequences, fences and epochs "
                   "for different things. Use that one. Only if it is gone for good, remove MOVED "
                   "here."};
}

}  // namespace hapax::journal
