#include "journal/identity.h"

#include <algorithm>
#include <optional>

#include "base/format.h"
#include "journal/names.h"
#include "journal/new_file.h"

namespace hapax::journal {
namespace {

constexpr std::string_view kMagic = "HAPAXSTO";
constexpr std::size_t kBlockBytes = 72;
constexpr std::uint64_t kSecondBlock = 4096;

Result<Identity> decode_identity(std::string_view bytes) {
  HAPAX_CHECK(check_block(bytes, kMagic, kBlockBytes));
  Identity identity;
  identity.version = version_of(bytes, kMagic);
  bytes.copy(identity.store_id.data(), identity.store_id.size(), 16);
  bytes.copy(identity.hash_key.data(), identity.hash_key.size(), 32);
  identity.history = get<std::uint64_t>(bytes, 48);
  identity.created_ms = get<std::int64_t>(bytes, 56);
  return identity;
}

Result<Identity> read_block(const ports::File& file, std::uint64_t offset) {
  std::array<char, kBlockBytes> bytes{};
  HAPAX_TRY(const std::size_t got, file.read_at(offset, bytes));
  return decode_identity({bytes.data(), got});
}

std::string block_text(const ports::Folder& folder, std::uint64_t offset) {
  return base::format("{} offset {}", folder.describe(kStoreName), offset);
}

Error damaged(const ports::Folder& folder, std::uint64_t offset, const Error& why) {
  return Error{Errc::kCorruption,
               block_text(folder, offset) + ": the store's identity is damaged: " + why.detail +
                   ". The journal is untouched. If the other block is intact, this loses nothing: "
                   "hapax repair --accept-loss " +
                   folder_path(folder)};
}

}  // namespace

std::uint64_t Identity::store() const {
  return get<std::uint64_t>({store_id.data(), store_id.size()}, 0);
}

Identity draw_identity(ports::Entropy& entropy, std::int64_t wall_ms) {
  Identity identity;
  entropy.fill(std::as_writable_bytes(std::span{identity.store_id}));
  entropy.fill(std::as_writable_bytes(std::span{identity.hash_key}));
  identity.created_ms = wall_ms;
  return identity;
}

std::string encode(const Identity& identity) {
  std::array<char, kBlockBytes> block{};
  std::copy(identity.store_id.begin(), identity.store_id.end(), block.begin() + 16);
  std::copy(identity.hash_key.begin(), identity.hash_key.end(), block.begin() + 32);
  put(block, 48, identity.history);
  put(block, 56, identity.created_ms);
  close_block(block, kMagic, identity.version);
  std::string content(kSecondBlock, '\0');
  content.replace(0, block.size(), block.data(), block.size());
  content.append(block.data(), block.size());
  return content;
}

Result<Identity> read_identity(ports::Folder& folder) {
  HAPAX_TRY(const auto file, folder.open(kStoreName, ports::OpenMode::kRead));
  std::optional<Identity> first;
  for (const std::uint64_t offset : {std::uint64_t{0}, kSecondBlock}) {
    auto identity = read_block(*file, offset);
    if (!identity.ok()) {
      const Error& why = identity.error();
      if (why.code == Errc::kCorruption) return damaged(folder, offset, why);
      return std::move(identity).error().within(block_text(folder, offset));
    }
    if (first && *first != *identity) {
      return damaged(folder, offset, Error{Errc::kCorruption, "its two blocks differ"});
    }
    first = *identity;
  }
  return *first;
}

Result<Identity> salvage_identity(ports::Folder& folder) {
  HAPAX_TRY(const auto file, folder.open(kStoreName, ports::OpenMode::kRead));
  auto identity = read_block(*file, 0);
  if (!identity.ok() && identity.error().code == Errc::kCorruption) {
    identity = read_block(*file, kSecondBlock);
  }
  if (identity.ok()) return identity;
  return std::move(identity).error().within(folder.describe(kStoreName));
}

Status write_identity(ports::Folder& folder, const Identity& identity) {
  Identity present = identity;
  present.version = kFormatVersion;
  HAPAX_TRY(const auto file, create_whole(folder, std::string(kStoreName), encode(present)));
  return Ok{};
}

}  // namespace hapax::journal
