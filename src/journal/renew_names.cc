#include "journal/renew_names.h"

#include <string>
#include <vector>

#include "journal/names.h"
#include "journal/new_file.h"

namespace hapax::journal {

Status finish_renewals(ports::Folder& folder) {
  HAPAX_TRY(const std::vector<std::string> names, folder.list());
  for (const std::string& name : names) {
    if (parse_name(name).kind != FileName::Kind::kRenewed) continue;
    const std::size_t size = name.size() - kRenewedSuffix.size();
    HAPAX_CHECK(folder.rename(name, std::string_view(name).substr(0, size)));
  }
  return Ok{};
}

Status renew_names(ports::Folder& folder) {
  HAPAX_CHECK(finish_renewals(folder));
  HAPAX_TRY(const std::vector<std::string> names, folder.list());
  for (const std::string& name : names) {
    const FileName::Kind kind = parse_name(name).kind;
    if (kind != FileName::Kind::kSnapshot && kind != FileName::Kind::kPart) continue;
    const std::string away = name + std::string(kRenewedSuffix);
    HAPAX_CHECK(folder.rename(name, away));
    HAPAX_CHECK(folder.rename(away, name));
  }
  return sync_names(folder);
}

}  // namespace hapax::journal
