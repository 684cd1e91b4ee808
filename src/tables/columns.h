// Columns of SQL results, read by name. An enum beside the text of a statement lists what the
// statement answers, in its order, and ends with kColumns:
//
//   enum Column { kKey, kLeaseUntil, kColumns };
//   … ask("SELECT key, lease_until FROM …")
//   … rows.at(row, kLeaseUntil)
//
// A number is no column, so that nothing is read by a bare position. And the first read of a result
// compares the enum with the names that the database answered (kLeaseUntil is lease_until): a
// statement and its enum that drifted apart are found by the first test that comes by. After that a
// read compares one pointer.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

namespace hapax::tables {

template <class Column>
concept Columns = std::is_enum_v<Column> && requires {
  Column::kColumns;
};

// Of a statement that answers one column, whatever the database calls it.
enum class OnlyColumn { kOnly, kColumns };
inline constexpr OnlyColumn kOnly = OnlyColumn::kOnly;

// Ends with the enumerator and "]" for every compiler that we build with.
template <auto kEnumerator>
[[nodiscard]] constexpr auto signature_of() {
  return std::string_view(__PRETTY_FUNCTION__);
}

template <auto kEnumerator>
[[nodiscard]] constexpr std::string_view enumerator_name() {
  constexpr std::string_view kSignature = signature_of<kEnumerator>();
  constexpr std::string_view kNamed = kSignature.substr(0, kSignature.size() - 1);
  return kNamed.substr(kNamed.find_last_of(": )") + 1);
}

template <Columns Column, std::size_t... kAt>
[[nodiscard]] constexpr auto enumerator_names(std::index_sequence<kAt...>) {
  return std::array<std::string_view, sizeof...(kAt)>{
      enumerator_name<static_cast<Column>(kAt)>()...};
}

// kFirst, kSecond, … of the enum, without kColumns. Its address stands for the enum.
template <Columns Column>
inline constexpr auto kColumnNames = enumerator_names<Column>(
    std::make_index_sequence<static_cast<std::size_t>(Column::kColumns)>{});

// Whether `column` is what a database calls the enumerator: lease_until for kLeaseUntil.
[[nodiscard]] bool is_column_of(std::string_view enumerator, std::string_view column);

// An end of the program that says which column is which, unless they fit one by one.
void check_columns(std::span<const std::string_view> enumerators,
                   std::span<const std::string_view> columns);

}  // namespace hapax::tables
