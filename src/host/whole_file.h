// Small files that are read and replaced as a whole: keys, tokens, settings.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include <hapax/result.h>

namespace hapax::host {

inline constexpr std::size_t kWholeFileMax = std::size_t{64} << 20U;

// kNotFound: there is none. kLimitExceeded: it is larger than kWholeFileMax.
[[nodiscard]] Result<std::string> read_file(const std::filesystem::path& path);

using Edit = std::function<Result<std::string>(std::string_view before)>;

// Replaces the file by what `edit` makes of it; of a missing file that is "". Whoever edits at the
// same time waits, and no crash leaves half a file: the new one is written and synced beside it and
// takes its name. Only its owner may read it; the owner stays, if we may give files away.
[[nodiscard]] Status edit_file(const std::filesystem::path& path, const Edit& edit);

}  // namespace hapax::host
