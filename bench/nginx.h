// nginx that answers every request with 200 and nothing else.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "folder.h"
#include "processes.h"

namespace hapax::bench {

using Addresses = std::vector<std::string>;

inline std::string nginx_config(const Folder& folder, std::uint16_t port, const Addresses& on) {
  std::string path = folder.path("nginx.conf");
  std::ofstream out(path);
  out << "daemon off; worker_processes 1; pid " << folder.path("pid") << "; error_log "
      << folder.path("errors") << ";\nevents { worker_connections 16384; }\n"
      << "http { access_log off; keepalive_requests 100000000;";
  for (const char* kind : {"client_body", "proxy", "fastcgi", "uwsgi", "scgi"}) {
    out << ' ' << kind << "_temp_path " << folder.path(kind) << ';';
  }
  // Whoever waits for the last one knows that all are there.
  out << " server {";
  for (const std::string& address : on) out << " listen " << address << ':' << port << ';';
  out << " listen 127.0.0.1:" << port << "; location / { return 200; } } }\n";
  return path;
}

struct Nginx {
  explicit Nginx(Addresses on = {}) : more(std::move(on)) {}

  Addresses more;  // of loopback, beside 127.0.0.1
  Folder folder;
  std::uint16_t port = free_port();
  Running server{{"nginx", "-c", nginx_config(folder, port, more), "-e", folder.path("errors")},
                 port};
};

}  // namespace hapax::bench
