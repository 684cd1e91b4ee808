// What a call answers when the world can fail: a value, or one Error with a stable code.
// Expected answers ("duplicate", "fenced") are verdicts, never errors: see verdicts.h.
// Member names follow std::expected, so that a C++23 build can replace the type by an alias.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace hapax {

enum class Errc : std::uint16_t {
#define HAPAX_ERROR(symbol, number, word, http, retry) symbol = (number),
#include <hapax/errors.def>
#undef HAPAX_ERROR
};

// What a retry of the failed call does; see errors.def.
enum class Retry : std::uint8_t { kNever, kLater, kLook, kStop };

[[nodiscard]] bool is_known(Errc code);  // false for a number that is not in errors.def
[[nodiscard]] std::string_view word_of(Errc code);
[[nodiscard]] Retry retry_of(Errc code);
[[nodiscard]] int http_status_of(Errc code);

struct [[nodiscard]] Error {
  Errc code;
  std::string detail;  // What, with every id and both values; what is still true; what to do.

  // "HX1021 corruption: …", the one form in which errors are shown to people.
  [[nodiscard]] std::string text() const;

  // Adds where the error crossed a room, once per room: "seal segment 12: sync: …".
  [[nodiscard]] Error within(std::string_view where) &&;

  friend bool operator==(const Error&, const Error&) = default;
};

template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = T;

  // NOLINTNEXTLINE(google-explicit-constructor)
  Result(T value) : either_(std::in_place_index<0>, std::move(value)) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  Result(Error error) : either_(std::in_place_index<1>, std::move(error)) {}

  [[nodiscard]] bool has_value() const { return either_.index() == 0; }
  [[nodiscard]] bool ok() const { return has_value(); }
  explicit operator bool() const { return has_value(); }

  [[nodiscard]] T& value() & { return *checked(); }
  [[nodiscard]] const T& value() const& { return *const_cast<Result*>(this)->checked(); }
  [[nodiscard]] T&& value() && { return std::move(*checked()); }
  [[nodiscard]] const Error& error() const& { return std::get<1>(either_); }
  [[nodiscard]] Error&& error() && { return std::get<1>(std::move(either_)); }

  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return checked(); }
  const T* operator->() const { return const_cast<Result*>(this)->checked(); }

 private:
  // Reading the value of a failure is a bug of the caller: it ends the process with the reason.
  T* checked() {
    if (T* value = std::get_if<0>(&either_)) return value;
    const std::string text = error().text();
    std::fprintf(stderr, "hapax: a failed Result was read: %s\n", text.c_str());
    std::abort();
  }

  std::variant<T, Error> either_;
};

struct Ok {
  friend bool operator==(Ok, Ok) = default;
};
using Status = Result<Ok>;

// Swallowing an error is spelled out, with the reason.
template <class T>
void ignore(const Result<T>&, std::string_view /*why*/) {}

#define HAPAX_CONCAT_(a, b) a##b
#define HAPAX_CONCAT(a, b) HAPAX_CONCAT_(a, b)

// HAPAX_TRY(auto x, expr): x is the value, or this function returns the error.
// NOLINTBEGIN(bugprone-macro-parentheses): a declaration cannot stand in parentheses.
#define HAPAX_TRY(declaration, expression)                        \
  auto HAPAX_CONCAT(hapax_try_, __LINE__) = (expression);         \
  if (!HAPAX_CONCAT(hapax_try_, __LINE__).has_value())            \
    return std::move(HAPAX_CONCAT(hapax_try_, __LINE__)).error(); \
  declaration = *std::move(HAPAX_CONCAT(hapax_try_, __LINE__))
// NOLINTEND(bugprone-macro-parentheses)

// HAPAX_CHECK(expr): this function returns the error, if there is one.
#define HAPAX_CHECK(expression)                                      \
  do {                                                               \
    if (auto hapax_check_ = (expression); !hapax_check_.has_value()) \
      return std::move(hapax_check_).error();                        \
  } while (false)

}  // namespace hapax
