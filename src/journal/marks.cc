#include "journal/marks.h"

#include "base/assert.h"
#include "journal/block.h"
#include "journal/names.h"
#include "journal/new_file.h"

namespace hapax::journal {
namespace {

constexpr std::string_view kMarkMagic = "HXM1";
constexpr std::uint16_t kCleanFlag = 1;

Error damaged(const ports::Folder& folder, const std::string& why) {
  return Error{Errc::kCorruption,
               folder.describe(kMarksName) + ": " + why +
                   ". The journal itself may be intact, but nothing proves where it ended. Restore "
                   "the folder from a backup, or let the marks be made again: hapax repair "
                   "--accept-loss " +
                   folder_path(folder)};
}

}  // namespace

HeaderBytes encode(const Mark& mark) {
  HeaderBytes bytes{};
  put(bytes, 6, mark.kind == MarkKind::kClean ? kCleanFlag : std::uint16_t{0});
  put(bytes, 8, mark.counter);
  put(bytes, 16, mark.durable.value);
  put(bytes, 24, mark.salt);
  put(bytes, 32, mark.end.segment);
  put(bytes, 36, mark.end.offset);
  put(bytes, 40, to_ms(mark.log_time));
  put(bytes, 48, mark.file_bytes);
  close_block(bytes, kMarkMagic, mark.version);
  return bytes;
}

Result<Mark> decode_mark(std::string_view bytes) {
  HAPAX_CHECK(check_block(bytes, kMarkMagic, kHeaderBytes));
  Mark mark;
  mark.version = version_of(bytes, kMarkMagic);
  const bool clean = (get<std::uint16_t>(bytes, 6) & kCleanFlag) != 0;
  mark.kind = clean ? MarkKind::kClean : MarkKind::kRunning;
  mark.counter = get<std::uint64_t>(bytes, 8);
  mark.durable = Lsn{get<std::uint64_t>(bytes, 16)};
  mark.salt = get<std::uint64_t>(bytes, 24);
  mark.end = {get<std::uint32_t>(bytes, 32), get<std::uint32_t>(bytes, 36)};
  mark.log_time = time_from_ms(get<std::int64_t>(bytes, 40));
  mark.file_bytes = get<std::uint32_t>(bytes, 48);
  return mark;
}

Result<Marks> Marks::create(ports::Folder& folder, const Mark& mark) {
  std::string content(2 * kMarkBlockBytes, '\0');
  std::array<std::optional<Mark>, 2> blocks;
  for (std::size_t index = 0; index < blocks.size(); ++index) {
    blocks[index] = mark;
    blocks[index]->counter = index + 1;
    blocks[index]->version = kFormatVersion;
    const HeaderBytes block = encode(*blocks[index]);
    content.replace(index * kMarkBlockBytes, block.size(), block.data(), block.size());
  }
  HAPAX_TRY(auto file, create_whole(folder, std::string(kMarksName), content));
  Marks marks(std::move(file));
  marks.blocks_ = blocks;
  marks.newest_ = 1;
  return marks;
}

Result<Marks> Marks::open(ports::Folder& folder) {
  auto opened = folder.open(kMarksName, ports::OpenMode::kReadWrite);
  if (!opened.ok()) {
    if (opened.error().code == Errc::kNotFound) return damaged(folder, "the file is missing");
    return std::move(opened).error();
  }
  Marks marks(*std::move(opened));
  for (std::size_t index = 0; index < marks.blocks_.size(); ++index) {
    HeaderBytes bytes{};
    HAPAX_TRY(const std::size_t got, marks.file_->read_at(index * kMarkBlockBytes, bytes));
    auto mark = decode_mark({bytes.data(), got});
    if (mark.ok()) {
      marks.blocks_[index] = *mark;
    } else if (mark.error().code == Errc::kFormatVersion) {
      return std::move(mark).error().within(folder.describe(kMarksName));
    }
  }
  const auto& [even, odd] = marks.blocks_;
  if (!even && !odd) return damaged(folder, "neither of its two marks is intact");
  marks.newest_ = !even || (odd && odd->counter > even->counter) ? 1 : 0;
  return marks;
}

// L11: the newest mark may have been written by a process that died before its sync, or whose sync
// failed. Were the other block overwritten now, a power loss could take both. So the newest is
// written again, in place: meanwhile the other one, synced before the newest was begun, stays. A
// power loss at this very moment costs the newest mark, not both.
// A block that is not intact was being written when its process died, so the other one was durable
// by then and must not be touched: its copy goes to the broken block.
Status Marks::settle() {
  const bool other_is_intact = blocks_[1 - newest_].has_value();
  return other_is_intact ? put_block(newest_, newest()) : write(newest());
}

Status Marks::write(Mark mark) {
  const std::size_t older = 1 - newest_;
  mark.counter = newest().counter + 1;
  HAPAX_CHECK(put_block(older, mark));
  blocks_[older] = mark;
  newest_ = older;
  return Ok{};
}

Status Marks::put_block(std::size_t index, const Mark& mark) {
  Mark present = mark;
  present.version = kFormatVersion;
  const HeaderBytes block = encode(present);
  const std::string_view bytes(block.data(), block.size());
  HAPAX_CHECK(write_all(*file_, index * kMarkBlockBytes, bytes));
  return sync_file(*file_);
}

}  // namespace hapax::journal
