#include "sqlite/outbox_file.h"

#include <unistd.h>

#include "sqlite/migrate.h"
#include "tables/migration.h"

namespace hapax::sqlite {

Result<OutboxFile> OutboxFile::open(const std::string& path, std::string prefix,
                                    std::uint32_t needs) {
  HAPAX_CHECK(tables::check_name("prefix", prefix));
  if (::access(path.c_str(), F_OK) != 0) {
    return Error{Errc::kNotFound, "there is no file " + path};
  }
  HAPAX_TRY(Connection connection, Connection::open(path));
  // What a power loss takes back is sent again, under the same ids.
  HAPAX_CHECK(connection.run("PRAGMA synchronous = NORMAL"));
  OutboxFile file(std::move(connection), std::move(prefix));
  HAPAX_CHECK(file.check_version(needs));
  return file;
}

Status OutboxFile::check_version(std::uint32_t needs) {
  return sqlite::check_version(connection_, prefix_, needs);
}

Result<std::vector<Row>> OutboxFile::ask(std::string_view sql, const std::vector<Value>& values) {
  return connection_.ask(tables::expanded(sql, "prefix", prefix_), values);
}

}  // namespace hapax::sqlite
