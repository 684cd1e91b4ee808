// A batch being built: facts one behind the other in one piece of memory, with room for the header
// in front, so that sealing copies nothing and writing is one call. Reused batch after batch.
//
//   batch.begin(first, log_time);
//   std::string& out = batch.begin_fact(expected_bytes);
//   … append the fact's bytes to `out` …
//   const std::uint32_t offset = batch.end_fact();   // from the batch's start
//
// A fact's place in the segment's file is the batch's slot plus that offset.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <hapax/time.h>

#include "journal/format.h"

namespace hapax::journal {

// Appends a batch with this header around a payload that is already there; its checksum.
std::uint32_t append_sealed(std::string& out, const BatchHeader& header, std::string_view payload);

class Batch {
 public:
  // What only the writer knows; see BatchHeader.
  struct Seal {
    std::uint16_t flags = 0;
    std::uint64_t salt = 0;
    Lsn durable;
    std::uint32_t chain = 0;
  };

  // Forgets everything, keeps the memory.
  void begin(Lsn first, Time log_time);

  // Append to the returned string, and only append, until end_fact() or drop_fact(). A good guess
  // of the size saves moving the fact when its length is known.
  std::string& begin_fact(std::size_t expected_bytes = 100);
  std::uint32_t end_fact();
  void drop_fact();
  std::uint32_t add(std::string_view fact);

  // What is added after mark() can be cut off again: an atomic commit that was refused.
  struct Mark {
    std::uint32_t count = 0;
    std::size_t end = kHeaderBytes;
  };
  [[nodiscard]] Mark mark() const { return {count_, payload_end_}; }
  void cut(Mark mark);

  // Bytes of whole facts, by their offset from the batch's start.
  [[nodiscard]] std::string_view peek(std::uint32_t offset, std::uint32_t size) const {
    return std::string_view(bytes_).substr(offset, size);
  }

  // L18: the caller says of each batch whether its facts only free space.
  void set_frees_space(bool frees) { frees_space_ = frees; }
  [[nodiscard]] bool frees_space() const { return frees_space_; }
  // L21: the caller says of each batch whether it is the first one of a segment.
  void set_begins_segment(bool begins) { begins_segment_ = begins; }
  [[nodiscard]] bool begins_segment() const { return begins_segment_; }

  [[nodiscard]] bool empty() const { return count_ == 0; }
  [[nodiscard]] Lsn first() const { return first_; }
  [[nodiscard]] Lsn next() const { return Lsn{first_.value + count_}; }
  [[nodiscard]] std::uint32_t count() const { return count_; }
  [[nodiscard]] Time log_time() const { return log_time_; }
  [[nodiscard]] std::uint32_t payload_bytes() const;
  // On disk, once sealed.
  [[nodiscard]] std::uint32_t bytes() const { return sealed_bytes(payload_bytes()); }
  // Whether a fact of this size can still be added.
  [[nodiscard]] bool has_room(std::size_t fact_bytes) const;

  // Ends the building: the room for the checksum is there, nothing can be added. From now on seal()
  // neither moves a fact nor changes one, so another thread may go on to peek().
  void close();
  // The finished bytes; valid until the next begin(). Nothing can be added any more. Sealing again
  // with another seal is allowed: after a refusal the same batch may be written once more.
  std::string_view seal(const Seal& seal);
  [[nodiscard]] std::uint32_t checksum() const;  // of the sealed batch: the next one's chain

 private:
  static constexpr std::size_t kNoFact = 0;

  std::string bytes_ = std::string(kHeaderBytes, '\0');
  Lsn first_{1};
  Time log_time_{};
  std::uint32_t count_ = 0;
  std::size_t payload_end_ = kHeaderBytes;
  std::size_t fact_start_ = kNoFact;  // of the open fact's length
  std::size_t length_bytes_ = 0;      // set aside for it
  bool closed_ = false;
  bool frees_space_ = false;
  bool begins_segment_ = false;
};

}  // namespace hapax::journal
