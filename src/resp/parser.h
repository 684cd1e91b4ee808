// The wire protocol of Redis, from the client's side: commands as arrays of bulk strings, or one
// line of words. Knows bytes only; may be fed piece by piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hapax::resp {

struct ParserLimits {
  std::size_t arguments_max = 1'000'000;
  std::size_t argument_bytes_max = std::size_t{16} << 20;
  std::size_t command_bytes_max = std::size_t{48} << 20;
  std::size_t line_bytes_max = std::size_t{64} << 10;  // a count, a length, or a whole line command
};

enum class Parsed : std::uint8_t { kCommand, kMore, kBroken };

class Parser {
 public:
  explicit Parser(const ParserLimits& limits) : limits_(limits) {}

  // A10: of somebody who has still to sign in no more is taken than that needs.
  void expect_stranger(bool stranger) { stranger_ = stranger; }

  // Looks at `bytes`, which begin where the last command ended and only ever grow until the next
  // one is there. kCommand: arguments() and consumed() are valid until the bytes go.
  // kBroken: the connection cannot go on; problem() says why.
  [[nodiscard]] Parsed parse(std::string_view bytes);

  [[nodiscard]] std::span<const std::string_view> arguments() const { return arguments_; }
  [[nodiscard]] std::size_t consumed() const { return consumed_; }
  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  struct Span {
    std::size_t from = 0;
    std::size_t size = 0;
  };

  Parsed parse_array(std::string_view bytes);
  Parsed parse_words(std::string_view bytes);
  bool split_words(std::string_view line);
  bool take_word(std::string_view line, std::size_t& at);
  Parsed read_number(std::string_view bytes, char sign, std::int64_t& number);
  bool read_short_number(std::string_view bytes, char sign, std::int64_t& number);
  Parsed read_any_number(std::string_view bytes, char sign, std::int64_t& number);
  Parsed finish(std::string_view bytes, std::size_t consumed);
  Parsed broken(std::string problem);
  void start_over();

  const ParserLimits limits_;
  bool stranger_ = false;
  std::vector<std::string_view> arguments_;
  std::vector<std::string> words_;  // of a line command: quotes are undone
  std::vector<Span> spans_;         // of an array that is not complete yet
  std::size_t at_ = 0;              // how far it was understood
  std::int64_t missing_ = -1;       // arguments of it that are still to come; -1: no array begun
  std::size_t needs_ = 0;           // with fewer bytes there is no use in looking again
  std::size_t consumed_ = 0;
  std::string problem_;
};

}  // namespace hapax::resp
