#include "inflate/inflate.h"

#include <algorithm>
#include <memory>

#include <zlib.h>
#include <zstd.h>

#include "base/format.h"

namespace hapax::inflate {

namespace {

constexpr std::size_t kPiece = std::size_t{64} << 10;
constexpr int kGzipWindow = 15 + 16;   // the largest window, in gzip's frame
constexpr int kZstdWindowLogMax = 23;  // 8 MiB, as RFC 8878 lets a decoder of the web insist on

Error broken(std::string_view what) {
  return {Errc::kInvalidArgument, "the body is not " + std::string(what) + ", or not all of it"};
}

// Takes what comes out, up to the limits.
class BoundedOutput {
 public:
  BoundedOutput(std::size_t input, const Limits& limits)
      : most_(std::min(
            limits.bytes_max,
            std::max(limits.free_bytes, input * std::min(limits.ratio_max, limits.bytes_max)))),
        limits_(limits) {}

  char* room() {
    out_.resize(filled_ + kPiece);
    return out_.data() + filled_;
  }
  void took(std::size_t count) { filled_ += count; }
  [[nodiscard]] bool full() const { return filled_ > most_; }
  [[nodiscard]] Error too_large() const {
    if (most_ == limits_.bytes_max) {
      return {Errc::kLimitExceeded,
              base::format("the body is larger than {} bytes when inflated", most_)};
    }
    return {Errc::kLimitExceeded,
            base::format(
                "the body inflates to more than {} times its size; send it as it is, or in pieces",
                limits_.ratio_max)};
  }
  std::string whole() && {
    out_.resize(filled_);
    return std::move(out_);
  }

 private:
  const std::size_t most_;
  const Limits limits_;
  std::string out_;
  std::size_t filled_ = 0;
};

struct GzipStream {
  GzipStream() { ready = inflateInit2(&z, kGzipWindow) == Z_OK; }
  ~GzipStream() { inflateEnd(&z); }
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;

  z_stream z{};
  bool ready = false;
};

Result<std::string> from_gzip(std::string_view bytes, const Limits& limits) {
  GzipStream stream;
  if (!stream.ready) return Error{Errc::kUnavailable, "no memory to inflate the body"};
  BoundedOutput sink(bytes.size(), limits);
  stream.z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.z.avail_in = static_cast<uInt>(bytes.size());
  for (;;) {
    stream.z.next_out = reinterpret_cast<Bytef*>(sink.room());
    stream.z.avail_out = kPiece;
    const int told = ::inflate(&stream.z, Z_NO_FLUSH);
    sink.took(kPiece - stream.z.avail_out);
    if (sink.full()) return sink.too_large();
    if (told == Z_STREAM_END) {
      if (stream.z.avail_in == 0) return std::move(sink).whole();
      if (inflateReset(&stream.z) != Z_OK) return broken("gzip");  // Another member follows.
    } else if (told != Z_OK) {
      return broken("gzip");
    }
  }
}

Result<std::string> from_zstd(std::string_view bytes, const Limits& limits) {
  const std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context(ZSTD_createDCtx(),
                                                                     &ZSTD_freeDCtx);
  if (!context) return Error{Errc::kUnavailable, "no memory to inflate the body"};
  ZSTD_DCtx_setParameter(context.get(), ZSTD_d_windowLogMax, kZstdWindowLogMax);
  BoundedOutput sink(bytes.size(), limits);
  ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
  std::size_t left = 1;
  while (in.pos < in.size || left != 0) {
    ZSTD_outBuffer out{sink.room(), kPiece, 0};
    const std::size_t before = in.pos;
    left = ZSTD_decompressStream(context.get(), &out, &in);
    if (ZSTD_isError(left) != 0) return broken("zstd");
    sink.took(out.pos);
    if (sink.full()) return sink.too_large();
    if (in.pos == before && out.pos == 0) return broken("zstd");  // It ends too early.
  }
  return std::move(sink).whole();
}

}  // namespace

std::optional<Encoding> encoding_of(std::string_view name) {
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  if (lower == "gzip" || lower == "x-gzip") return Encoding::kGzip;
  if (lower == "zstd") return Encoding::kZstd;
  return std::nullopt;
}

Result<std::string> inflate(Encoding encoding, std::string_view bytes, const Limits& limits) {
  return encoding == Encoding::kGzip ? from_gzip(bytes, limits) : from_zstd(bytes, limits);
}

}  // namespace hapax::inflate
