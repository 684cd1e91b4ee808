// Bodies in chunks, read strictly. Beast's own reader lets pass what other programs do not: a bare
// LF at the end of the last chunk's line, folded trailers, signs of a size that is none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hapax::http {

enum class Chunked : std::uint8_t { kMore, kWhole, kBroken, kTooLarge };

class ChunkReader {
 public:
  explicit ChunkReader(std::size_t body_bytes_max) : body_bytes_max_(body_bytes_max) {}

  // `used` is how many of the bytes it took; bytes it did not take come again. Trailers are checked
  // and thrown away.
  [[nodiscard]] Chunked put(std::string_view bytes, std::size_t& used);

  [[nodiscard]] std::string& body() { return body_; }
  [[nodiscard]] std::string_view problem() const { return problem_; }

 private:
  enum class Part : std::uint8_t { kSize, kData, kDataEnd, kTrailers };

  Chunked step(std::string_view bytes, std::size_t& used);
  Chunked take_size(std::string_view line);
  Chunked take_data(std::string_view bytes, std::size_t& used);
  Chunked take_trailer(std::string_view line);
  Chunked broken(std::string_view problem);

  const std::size_t body_bytes_max_;
  Part part_ = Part::kSize;
  std::uint64_t left_ = 0;  // of the chunk's data
  std::size_t trailer_bytes_ = 0;
  std::string body_;
  std::string_view problem_;
};

}  // namespace hapax::http
