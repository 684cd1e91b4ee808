// The fixed blocks of the journal: what decodes is encoded to the same bytes.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "journal/format.h"
#include "journal/marks.h"

namespace {

template <class Header>
void must_match(const Header& header, std::string_view bytes) {
  const auto again = encode(header);
  if (!std::equal(again.begin(), again.end(), bytes.begin())) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto segment = hapax::journal::decode_segment_header(bytes))
    must_match(*segment, bytes);
  if (const auto batch = hapax::journal::decode_batch_header(bytes)) must_match(*batch, bytes);
  if (const auto mark = hapax::journal::decode_mark(bytes)) must_match(*mark, bytes);
  return 0;
}
