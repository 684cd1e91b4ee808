#include "sim/journal_dump.h"

#include <array>
#include <vector>

#include "base/format.h"

namespace hapax::sim {

namespace {

constexpr std::size_t kHeader = 64;

std::uint32_t crc(std::string_view bytes, std::uint32_t value) {
  static const std::array<std::uint32_t, 256> kTable = [] {
    std::array<std::uint32_t, 256> made{};
    for (std::uint32_t i = 0; i < made.size(); ++i) {
      std::uint32_t rest = i;
      for (int bit = 0; bit < 8; ++bit) rest = (rest >> 1) ^ ((rest & 1) != 0 ? 0x82f63b78U : 0);
      made[i] = rest;
    }
    return made;
  }();
  value = ~value;
  for (const char letter : bytes) {
    value = (value >> 8) ^ kTable[(value ^ static_cast<unsigned char>(letter)) & 0xff];
  }
  return ~value;
}

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  std::uint64_t fixed(std::size_t size) {
    if (size > rest_.size()) return fail();
    std::uint64_t value = 0;
    for (std::size_t i = size; i-- > 0;) {
      value = value << 8 | static_cast<unsigned char>(rest_[i]);
    }
    rest_.remove_prefix(size);
    return value;
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    return fail();
  }
  std::string_view text() { return take(varint()); }
  std::string_view take(std::uint64_t size) {
    if (size > rest_.size()) {
      fail();
      return {};
    }
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  [[nodiscard]] std::string_view rest() const { return rest_; }
  [[nodiscard]] bool ok() const { return ok_; }

 private:
  std::uint64_t fail() {
    ok_ = false;
    rest_ = {};
    return 0;
  }

  std::string_view rest_;
  bool ok_ = true;
};

std::uint64_t at(std::string_view bytes, std::size_t offset, std::size_t size) {
  return Reader(bytes.substr(offset)).fixed(size);
}

bool header_holds(std::string_view header) {
  return header.size() == kHeader && at(header, 60, 4) == crc(header.substr(0, 60), 0);
}

struct SegmentBytes {
  std::string name;
  std::string bytes;
  std::uint64_t first = 0;
  std::uint64_t number = 0;
};

class Dumping {
 public:
  explicit Dumping(const SimDisk& disk) {
    for (const std::string& name : disk.names()) {
      const bool segment = name.starts_with("journal-") && name.ends_with(".log");
      if (segment) segments_.push_back({name, *disk.cached(name)});
    }
  }

  JournalDump run() {
    for (SegmentBytes& segment : segments_) {
      const std::string_view header = std::string_view(segment.bytes).substr(0, kHeader);
      if (!header_holds(header) || !header.starts_with("HAPAXSEG")) {
        return trouble(segment, 0, "its header is damaged");
      }
      segment.number = at(header, 12, 4);
      segment.first = at(header, 24, 8);
      ++dump_.segments;
      dump_.newest = segment.number;
    }
    for (std::size_t i = 0; i < segments_.size() && dump_.trouble.empty(); ++i) {
      // Dead segments are removed, also from between others.
      const bool after_hole = i == 0 || segments_[i].number != segments_[i - 1].number + 1;
      const bool before_hole =
          i + 1 == segments_.size() || segments_[i].number + 1 != segments_[i + 1].number;
      followed_by_hole_ = before_hole && i + 1 < segments_.size();
      read_segment(segments_[i], before_hole ? ~std::uint64_t{0} : segments_[i + 1].first,
                   after_hole);
    }
    return std::move(dump_);
  }

 private:
  JournalDump& trouble(const SegmentBytes& segment, std::size_t offset, std::string_view what) {
    dump_.trouble = base::format("{} offset {}: {}", segment.name, offset, what);
    return dump_;
  }

  // Where the segment behind it is gone, nobody knows any more what that superseded.
  void trouble_unless_superseded(const SegmentBytes& segment, std::size_t offset,
                                 std::string_view what) {
    if (!followed_by_hole_) trouble(segment, offset, what);
  }

  // What lies behind the first lsn of the next segment is superseded.
  void read_segment(const SegmentBytes& segment, std::uint64_t end, bool is_first) {
    const std::string_view bytes = segment.bytes;
    const auto chain = static_cast<std::uint32_t>(at(bytes, 48, 4));
    if (is_first) {
      dump_.next_lsn = segment.first;
      chain_ = chain;
    }
    if (segment.first != dump_.next_lsn || chain != chain_) {
      trouble(segment, 0, "it does not follow the segment before it");
      return;
    }
    const std::uint64_t salt = at(bytes, 16, 8);
    std::size_t offset = kHeader;
    while (dump_.next_lsn < end && offset + kHeader <= bytes.size()) {
      const std::string_view header = bytes.substr(offset, kHeader);
      if (header.find_first_not_of('\0') == std::string_view::npos) break;
      const std::size_t size = at(header, 28, 4);
      const bool whole = header_holds(header) && header.starts_with("HXB1") &&
                         at(header, 8, 8) == salt && at(header, 16, 8) == dump_.next_lsn &&
                         at(header, 48, 4) == chain_ && offset + kHeader + size + 4 <= bytes.size();
      if (!whole) {
        trouble_unless_superseded(segment, offset, "no batch that follows");
        return;
      }
      const std::string_view payload = bytes.substr(offset + kHeader, size);
      const auto sum = static_cast<std::uint32_t>(at(bytes, offset + kHeader + size, 4));
      if (crc(payload, static_cast<std::uint32_t>(at(header, 60, 4))) != sum) {
        trouble_unless_superseded(segment, offset, "its payload is damaged");
        return;
      }
      chain_ = sum;
      const std::uint64_t count = at(header, 24, 4);
      if (!read_facts(payload, count)) {
        trouble(segment, offset, "its facts do not parse");
        return;
      }
      dump_.next_lsn += count;
      ++dump_.batches;
      offset += (kHeader + size + 4 + 7) / 8 * 8;
    }
    if (end != ~std::uint64_t{0} && dump_.next_lsn != end) {
      trouble(segment, offset, "it ends too early");
    }
  }

  bool read_facts(std::string_view payload, std::uint64_t count) {
    Reader reader(payload);
    for (std::uint64_t i = 0; i < count; ++i) {
      if (!read_fact(reader.text())) return false;
    }
    return reader.ok() && reader.rest().empty();
  }

  bool read_fact(std::string_view framed) {
    if (framed.size() < 5) return false;
    const std::string_view fact = framed.substr(0, framed.size() - 4);
    if (at(framed, fact.size(), 4) != crc(fact, 0)) return false;
    constexpr char kRecordAppended = 4;
    constexpr char kRunMoved = 7;
    constexpr char kResultMoved = 14;
    if (fact.front() == kRunMoved || fact.front() == kResultMoved) ++dump_.moves;
    Reader reader(fact.substr(1));
    if (fact.front() == kRecordAppended) return read_record(reader);
    if (fact.front() != kRunMoved) return true;
    reader.varint();
    reader.varint();
    return read_facts_from(reader);
  }

  bool read_facts_from(Reader& reader) {
    const std::uint64_t count = reader.varint();
    return read_facts(reader.rest(), count);
  }

  static void skip_lineage(Reader& reader) {
    reader.text();  // stream
    reader.varint();
    reader.text();  // consumer
    reader.text();  // reason
    reader.varint();
    reader.take(16);  // first and last hand-out
    reader.varint();
    for (std::uint64_t attempts = reader.varint(); attempts > 0 && reader.ok(); --attempts) {
      reader.varint();
      reader.varint();
      reader.take(16 + 1);  // hand-out, end, how it ended
      reader.text();        // owner
      reader.text();        // reason
    }
  }

  bool read_record(Reader& reader) {
    reader.varint();  // stream
    const std::uint64_t sequence = reader.varint();
    reader.take(16 + 16 + 4);  // id, fingerprint, window
    reader.varint();           // group
    for (int i = 0; i < 3; ++i) reader.text();
    if (reader.fixed(1) == 1) {
      reader.text();
      reader.varint();
      reader.varint();
    }
    if (reader.fixed(1) != 0) skip_lineage(reader);
    if (reader.ok()) dump_.records.emplace(sequence, reader.rest());
    return reader.ok();
  }

  std::vector<SegmentBytes> segments_;
  std::uint32_t chain_ = 0;
  bool followed_by_hole_ = false;
  JournalDump dump_;
};

}  // namespace

JournalDump dump_journal(const SimDisk& disk) { return Dumping(disk).run(); }

Judgement check_dump(const JournalDump& dump, const Contents& contents) {
  if (!dump.trouble.empty()) return Violation{"I7", "journal", dump.trouble};
  for (const auto& [name, records] : contents.streams) {
    for (const Record& record : records.records) {
      if (dump.records.contains({record.sequence.value, record.payload})) continue;
      return Violation{"I1", base::format("{}/{}", name, record.sequence.value),
                       "the store shows it, the journal does not have it"};
    }
  }
  return std::nullopt;
}

}  // namespace hapax::sim
