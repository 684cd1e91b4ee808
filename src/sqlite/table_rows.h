// A table of an application in an SQLite file, as an outbox (relay/table_source.h).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "relay/outbox_table.h"
#include "relay/table_source.h"
#include "sqlite/log_watch.h"
#include "sqlite/outbox_file.h"

namespace hapax::sqlite {

struct TableRowsOptions {
  std::string path;
  relay::OutboxTable table;
};

class TableRows final : public relay::TableRows {
 public:
  // Checks the table and its columns: kPreconditionFailed says which one is wrong, and what it
  // should be. The file has our tables, too: their uid is a part of the keys.
  [[nodiscard]] static Result<std::unique_ptr<TableRows>> open(TableRowsOptions options);

  [[nodiscard]] Result<std::vector<relay::Outgoing>> read(
      std::uint32_t most, std::span<const std::string> without) override;
  [[nodiscard]] Status mark(std::span<const relay::RowMarking> rows) override;
  [[nodiscard]] Result<relay::LaneReport> report() override;
  bool wait(Duration most) override { return watch_.wait(most); }
  void stay_up() override { watch_.stay_up(); }
  void nudge() override { watch_.nudge(); }
  void wake() override { watch_.wake(); }

  [[nodiscard]] Result<std::string> uid();
  // As the file calls it.
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  TableRows(TableRowsOptions options, OutboxFile file);
  [[nodiscard]] Status check();
  [[nodiscard]] Status find_table();
  [[nodiscard]] Result<std::string> find_column(std::string_view key, const std::string& column);
  [[nodiscard]] Status check_id();
  void write_statements();

  const TableRowsOptions options_;
  OutboxFile file_;
  LogWatch watch_;  // after file_: a file that nobody has opened has no log
  std::string name_;
  bool has_rowid_ = true;
  bool is_boolean_ = false;  // `delivered`
  std::string read_sql_, taken_sql_, failed_sql_, report_sql_;
};

}  // namespace hapax::sqlite
