#include "serve/startable.h"

#include <filesystem>
#include <system_error>

#include "serve/tenant_settings.h"

namespace hapax::serve {

namespace {

bool everybody_reads(const std::string& path) {
  std::error_code error;
  const auto found = std::filesystem::status(path, error);
  if (error || !std::filesystem::is_regular_file(found)) return false;
  const auto others = std::filesystem::perms::others_read;
  return (found.permissions() & others) != std::filesystem::perms::none;
}

}  // namespace

Status check_files(const Options& options) {
  for (const Door* door : {&options.http, &options.resp}) {
    if (door->tls && !door->address.empty()) HAPAX_CHECK(net::check_tls(*door->tls));
  }
  return check_auth_files(options.auth);
}

std::vector<std::string> loose_secrets(const Options& options) {
  std::vector<std::string> lines;
  const auto look_at = [&](const std::string& path, std::string_view what) {
    if (!everybody_reads(path)) return;
    lines.push_back("every user of this machine can read " + path + ", " + std::string(what) +
                    "; chmod o-r " + path);
  };
  for (const Door* door : {&options.http, &options.resp}) {
    if (door->tls) look_at(door->tls->key, "the private key of TLS");
  }
  for (const config::JwtKey& key : options.auth.jwt.keys) {
    if (key.algorithm != config::Algorithm::kHs256) continue;
    look_at(key.file, "with which anybody can sign tokens");
  }
  if (lines.size() > 1 && lines.front() == lines[1]) lines.erase(lines.begin());  // One for both.
  return lines;
}

}  // namespace hapax::serve
