// The streams of a workflow: the one that it reads, and those that are its own.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <hapax/store.h>

namespace hapax::delivery {

// Which stream of that name it is; one that is deleted and made again is another one. An error: it
// is not there, or cannot be a source.
[[nodiscard]] Result<std::uint64_t> find_source(Store& store, std::string_view stream);

// The consumer never gives a record up by itself: the workflow says when.
[[nodiscard]] ConsumerSettings workflow_consumer(std::string_view dead_letters);

// Whether it is this record that the store will not take, today and tomorrow.
[[nodiscard]] inline bool is_of_the_record(const Error& error) {
  return error.code == Errc::kLimitExceeded || error.code == Errc::kInvalidArgument;
}

struct OwnStream {
  std::string name;
  StreamSettings settings;
};

// Makes it, or gives it these settings. A change that would forget something is refused, as it is
// for everybody.
[[nodiscard]] Status ensure_stream(Store& store, const OwnStream& stream);

// The first record of the stream that was appended at `since` or later, of those from `from` on and
// before `end`; `end` if there is none.
[[nodiscard]] Result<Sequence> first_since(Store& store, std::string_view stream, Sequence from,
                                           Sequence end, Time since);

// Removes the records older than `before` that the consumer is done with. Age alone never removes
// one: what waits for an endpoint stays however long it waits.
inline constexpr Duration kTidyEvery{60'000};  // how often that is done
[[nodiscard]] Status trim_delivered(Store& store, std::string_view stream,
                                    std::string_view consumer, Time before);

}  // namespace hapax::delivery
