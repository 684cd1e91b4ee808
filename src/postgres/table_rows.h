// A table of an application in PostgreSQL, as an outbox (relay/table_source.h).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <hapax/time.h>

#include "postgres/outbox_session.h"
#include "postgres/outbox_sleep.h"
#include "relay/outbox_table.h"
#include "relay/table_source.h"

namespace hapax::postgres {

struct TableRowsOptions {
  std::string uri;
  relay::OutboxTable table;
  Duration silence_max = Duration::max();
  Notice notice{};
};

class TableRows final : public relay::TableRows {
 public:
  // Checks the table and its columns: kPreconditionFailed says which one is wrong, and what it
  // should be. The database has our tables, too: their uid is a part of the keys.
  [[nodiscard]] static Result<std::unique_ptr<TableRows>> open(TableRowsOptions options);

  [[nodiscard]] Result<std::vector<relay::Outgoing>> read(
      std::uint32_t most, std::span<const std::string> without) override;
  [[nodiscard]] Status mark(std::span<const relay::RowMarking> rows) override;
  [[nodiscard]] Result<relay::LaneReport> report() override;
  bool wait(Duration most) override;
  void stay_up() override { nap_ = Duration{0}; }
  void nudge() override;
  void wake() override;

  [[nodiscard]] Result<std::string> uid();
  // With its schema, as the database calls it.
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  struct ColumnType {
    std::string type;  // as it is written in SQL
    std::string base;  // without its length
    bool not_null = false;
  };

  explicit TableRows(TableRowsOptions options);
  [[nodiscard]] Status resolve();
  [[nodiscard]] Status find_table();
  [[nodiscard]] Status check_columns();
  [[nodiscard]] Result<ColumnType> find_column(std::string_view key, const std::string& column);
  [[nodiscard]] Status check_id();
  [[nodiscard]] Status check_status();
  void write_statements();
  [[nodiscard]] std::string pending() const;  // what is not marked, as a condition

  const TableRowsOptions options_;
  WakeSigns signs_;
  OutboxSession session_;
  bool resolved_ = false;
  std::string name_;      // public.outbox
  std::string sql_name_;  // "public"."outbox"
  std::string oid_;
  ColumnType id_, payload_, delivered_;
  std::optional<ColumnType> headers_{}, created_{}, attempts_{}, error_{}, status_{};
  std::string read_sql_, taken_sql_, failed_sql_, report_sql_;
  Duration nap_{0};  // the latest; grows while nothing comes
};

}  // namespace hapax::postgres
