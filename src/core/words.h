// Some short texts in one piece of memory: for what is kept by the million.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hapax::core {

template <std::size_t kCount>
class Words {
 public:
  Words() = default;
  explicit Words(const std::array<std::string_view, kCount>& words) {
    std::size_t bytes = 0;
    for (const std::string_view word : words) bytes += word.size();
    text_.reserve(bytes);
    for (std::size_t i = 0; i < kCount; ++i) {
      text_ += words[i];
      ends_[i] = static_cast<std::uint32_t>(text_.size());
    }
  }

  [[nodiscard]] std::string_view operator[](std::size_t i) const {
    const std::uint32_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(text_).substr(begin, ends_[i] - begin);
  }
  [[nodiscard]] std::size_t bytes() const { return text_.size(); }

 private:
  std::string text_;
  std::array<std::uint32_t, kCount> ends_{};
};

}  // namespace hapax::core
