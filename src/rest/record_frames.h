// Records as bytes: the media type application/vnd.hapax.records, for bodies of appends and answers
// of reads. docs/reference/http.md describes it; all integers are little-endian.
//
//   body   = "HXR1" frame*
//   frame  = u32 size, then that many bytes: u8 flags, the parts whose flag is set, in the order of
//            the flags, and the payload up to the end of the frame
//   text   = u32 size, bytes
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <hapax/ops.h>
#include <hapax/result.h>
#include <hapax/store.h>

#include "wire/request.h"

namespace hapax::rest {

inline constexpr std::string_view kRecordFrames = "application/vnd.hapax.records";

struct FramePlace {  // flag 1: u64 sequence, i64 time_ms; of records that are read
  std::uint64_t sequence = 0;
  std::int64_t time_ms = 0;
};
struct FrameProducer {  // flag 16: text name, u64 epoch, u64 sequence; of records to append
  std::string_view name;
  std::uint64_t epoch = 0;
  std::uint64_t sequence = 0;
};
// Views into the body.
struct RecordFrame {
  std::optional<FramePlace> place;
  std::string_view id;          // flag 2: text, not empty
  std::string_view group;       // flag 4: text, not empty
  std::vector<Header> headers;  // flag 8: u32 count, not 0; text name, text value each
  std::optional<FrameProducer> producer;
  std::optional<std::int64_t> first_sent_ms;  // flag 32: i64
  std::string_view payload;
};

// Errors name the frame: "frame 3: …".
[[nodiscard]] Result<std::vector<RecordFrame>> decode_frames(std::string_view body);
[[nodiscard]] std::string encode_frames(const std::vector<RecordFrame>& frames);

// An append per frame, each on its own. The operations refer to `body`.
[[nodiscard]] Result<wire::SharedRequest> read_frames(std::string_view stream,
                                                      std::string_view body);
[[nodiscard]] std::string frames_of(const Records& records);

}  // namespace hapax::rest
