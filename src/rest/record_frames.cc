#include "rest/record_frames.h"

#include <cstring>
#include <utility>

#include <hapax/limits.h>

#include "base/encoding.h"
#include "base/filled.h"
#include "base/format.h"

namespace hapax::rest {

namespace {

constexpr std::string_view kMagic = "HXR1";

enum Flag : std::uint8_t {
  kPlace = 1,
  kId = 2,
  kGroup = 4,
  kHeaders = 8,
  kProducer = 16,
  kFirstSent = 32,
  kAll = 63,
};

std::string_view text(base::Decoder& in) { return in.raw(in.u32()); }

std::string_view filled_text(base::Decoder& in) {
  const std::string_view found = text(in);
  if (found.empty()) in.refuse();  // One way to say "none": without the flag.
  return found;
}

// The count is not trusted: it ends with the bytes.
std::vector<Header> read_headers(base::Decoder& in) {
  std::vector<Header> headers;
  const std::uint32_t count = in.u32();
  if (count == 0) in.refuse();
  for (std::uint32_t i = 0; i < count && in.ok(); ++i) {
    const std::string_view name = text(in);
    headers.push_back({name, text(in)});
  }
  return headers;
}

std::optional<RecordFrame> decode_frame(std::string_view bytes) {
  base::Decoder in(bytes);
  const std::uint8_t flags = in.u8();
  if ((flags & ~kAll) != 0) return std::nullopt;
  RecordFrame frame;
  if ((flags & kPlace) != 0) {
    frame.place.emplace().sequence = in.u64();
    frame.place->time_ms = in.i64();
  }
  if ((flags & kId) != 0) frame.id = filled_text(in);
  if ((flags & kGroup) != 0) frame.group = filled_text(in);
  if ((flags & kHeaders) != 0) frame.headers = read_headers(in);
  if ((flags & kProducer) != 0) {
    frame.producer.emplace().name = text(in);
    frame.producer->epoch = in.u64();
    frame.producer->sequence = in.u64();
  }
  if ((flags & kFirstSent) != 0) frame.first_sent_ms = in.i64();
  frame.payload = in.raw(in.left());
  if (!in.ok()) return std::nullopt;
  return frame;
}

std::uint8_t flags_of(const RecordFrame& frame) {
  unsigned flags = 0;
  if (frame.place) flags |= kPlace;
  if (!frame.id.empty()) flags |= kId;
  if (!frame.group.empty()) flags |= kGroup;
  if (!frame.headers.empty()) flags |= kHeaders;
  if (frame.producer) flags |= kProducer;
  if (frame.first_sent_ms) flags |= kFirstSent;
  return static_cast<std::uint8_t>(flags);
}

void put_text(base::Encoder& out, std::string_view text) {
  out.u32(static_cast<std::uint32_t>(text.size()));
  out.raw(text);
}

void encode_frame(std::string& bytes, const RecordFrame& frame) {
  const std::size_t start = bytes.size();
  base::Encoder out(bytes);
  out.u32(0);
  out.u8(flags_of(frame));
  if (frame.place) {
    out.u64(frame.place->sequence);
    out.i64(frame.place->time_ms);
  }
  if (!frame.id.empty()) put_text(out, frame.id);
  if (!frame.group.empty()) put_text(out, frame.group);
  if (!frame.headers.empty()) {
    out.u32(static_cast<std::uint32_t>(frame.headers.size()));
    for (const Header& header : frame.headers) {
      put_text(out, header.name);
      put_text(out, header.value);
    }
  }
  if (frame.producer) {
    put_text(out, frame.producer->name);
    out.u64(frame.producer->epoch);
    out.u64(frame.producer->sequence);
  }
  if (frame.first_sent_ms) out.i64(*frame.first_sent_ms);
  out.raw(frame.payload);
  const auto size = static_cast<std::uint32_t>(bytes.size() - start - sizeof(std::uint32_t));
  std::memcpy(bytes.data() + start, &size, sizeof size);
}

Error bad(std::size_t number, std::string_view why) {
  return {Errc::kInvalidArgument, base::format("frame {}: {}", number, why)};
}

}  // namespace

Result<std::vector<RecordFrame>> decode_frames(std::string_view body) {
  if (!body.starts_with(kMagic)) {
    return Error{Errc::kInvalidArgument, "the body does not begin with HXR1"};
  }
  base::Decoder in(body.substr(kMagic.size()));
  std::vector<RecordFrame> frames;
  while (in.left() != 0) {
    const std::uint32_t size = in.u32();
    const std::string_view bytes = in.raw(size);
    if (!in.ok()) return bad(frames.size(), "ends behind the body");
    if (frames.size() == limits::kCommitOpsMax) {
      return Error{Errc::kLimitExceeded, base::format("more than {} frames; send several requests",
                                                      limits::kCommitOpsMax)};
    }
    auto frame = decode_frame(bytes);
    if (!frame) return bad(frames.size(), "a flag is unknown, or a part is empty or too long");
    frames.push_back(*std::move(frame));
  }
  return frames;
}

std::string encode_frames(const std::vector<RecordFrame>& frames) {
  std::string bytes(kMagic);
  for (const RecordFrame& frame : frames) encode_frame(bytes, frame);
  return bytes;
}

Result<wire::SharedRequest> read_frames(std::string_view stream, std::string_view body) {
  HAPAX_TRY(std::vector<RecordFrame> frames, decode_frames(body));
  auto request = std::make_shared<wire::Request>();
  request->mode = Mode::kEach;
  stream = request->keep(stream);
  for (RecordFrame& frame : frames) {
    if (frame.place) return bad(request->ops.size(), "the store chooses sequence and time");
    Append op{.stream = stream,
              .payload = frame.payload,
              .id = base::if_filled(frame.id),
              .group = base::if_filled(frame.group)};
    if (!frame.headers.empty()) {
      op.headers = request->headers.emplace_back(std::move(frame.headers));
    }
    if (const auto& producer = frame.producer) {
      op.producer = ProducerMark{producer->name, Epoch{producer->epoch},
                                 ProducerSequence{producer->sequence}};
    }
    if (frame.first_sent_ms) op.first_sent = time_from_ms(*frame.first_sent_ms);
    request->ops.emplace_back(op);
  }
  return request;
}

std::string frames_of(const Records& records) {
  std::string bytes(kMagic);
  for (const Record& record : records.records) {
    RecordFrame frame;
    frame.place = FramePlace{record.sequence.value, to_ms(record.time)};
    frame.id = record.id;
    frame.group = record.group;
    for (const auto& [name, value] : record.headers) frame.headers.push_back({name, value});
    frame.payload = record.payload;
    encode_frame(bytes, frame);
  }
  return bytes;
}

}  // namespace hapax::rest
