#include "http/chunks.h"

#include <algorithm>

#include "base/words.h"

namespace hapax::http {

namespace {

constexpr std::size_t kLineMax = 1'024;
constexpr std::size_t kTrailerMax = 8'192;
constexpr std::size_t kDigitsMax = 15;  // sizes below 2^60: no sum of them overflows

bool is_text(char c) { return c == '\t' || static_cast<unsigned char>(c) >= 0x20; }

}  // namespace

Chunked ChunkReader::put(std::string_view bytes, std::size_t& used) {
  used = 0;
  for (;;) {
    const std::size_t before = used;
    const Chunked told = step(bytes.substr(used), used);
    if (told != Chunked::kMore || used == before) return told;
  }
}

Chunked ChunkReader::step(std::string_view bytes, std::size_t& used) {
  if (part_ == Part::kData) return take_data(bytes, used);
  const std::size_t lf = bytes.substr(0, kLineMax).find('\n');
  if (lf == std::string_view::npos) {
    return bytes.size() < kLineMax ? Chunked::kMore : broken("a line of the chunks is too long");
  }
  if (lf == 0 || bytes[lf - 1] != '\r') return broken("a line of the chunks ends without CR");
  const std::string_view line = bytes.substr(0, lf - 1);
  used += lf + 1;
  if (!std::all_of(line.begin(), line.end(), is_text)) {
    return broken("a control character in a line of the chunks");
  }
  if (part_ == Part::kSize) return take_size(line);
  if (part_ == Part::kTrailers) return take_trailer(line);
  if (!line.empty()) return broken("a chunk is longer than its size");
  part_ = Part::kSize;
  return Chunked::kMore;
}

Chunked ChunkReader::take_size(std::string_view line) {
  const std::string_view digits = line.substr(0, std::min(line.find(';'), line.size()));
  if (digits.empty() || digits.size() > kDigitsMax) return broken("a chunk's size is none");
  left_ = 0;
  for (const char c : digits) {
    const int digit = base::hex_digit(c);
    if (digit < 0) return broken("a chunk's size is not a hexadecimal number");
    left_ = left_ * 16 + static_cast<std::uint64_t>(digit);
  }
  if (left_ > body_bytes_max_ - body_.size()) return Chunked::kTooLarge;
  part_ = left_ == 0 ? Part::kTrailers : Part::kData;
  return Chunked::kMore;
}

Chunked ChunkReader::take_data(std::string_view bytes, std::size_t& used) {
  const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size()));
  body_.append(bytes.substr(0, count));
  used += count;
  left_ -= count;
  if (left_ == 0) part_ = Part::kDataEnd;
  return Chunked::kMore;
}

Chunked ChunkReader::take_trailer(std::string_view line) {
  if (line.empty()) return Chunked::kWhole;
  trailer_bytes_ += line.size();
  if (trailer_bytes_ > kTrailerMax) return broken("the trailers are too long");
  const std::size_t colon = line.find(':');
  const std::string_view name = line.substr(0, std::min(colon, line.size()));
  const bool named = colon != std::string_view::npos && !name.empty() &&
                     name.find_first_of(" \t") == std::string_view::npos;
  return named ? Chunked::kMore : broken("a trailer is not a header field");
}

Chunked ChunkReader::broken(std::string_view problem) {
  problem_ = problem;
  return Chunked::kBroken;
}

}  // namespace hapax::http
