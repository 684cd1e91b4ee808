// A server over an embedded store, and the sockets of its clients: what the drivers of the front
// doors share.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hapax/store.h>

#include "access/entry.h"
#include "net/server.h"

namespace hapax::contract {

// Listens on a free port of this machine, between start() and stop().
class Behind {
 public:
  explicit Behind(std::unique_ptr<Store> store);
  ~Behind() { stop(); }
  Behind(const Behind&) = delete;
  Behind& operator=(const Behind&) = delete;

  void start(net::MakeSession make_session);
  void stop();

  [[nodiscard]] access::Entry& entry() { return *entry_; }
  [[nodiscard]] net::Loop& loop() { return *server_->loops().front(); }
  [[nodiscard]] std::uint16_t port() const;

 private:
  std::unique_ptr<Store> store_;
  std::unique_ptr<access::Entry> entry_;
  std::unique_ptr<net::Server> server_;
};

// A client's side of a connection, blocking. What is false or nothing: the connection is lost.
class Socket {
 public:
  explicit Socket(std::uint16_t port);
  ~Socket();
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  [[nodiscard]] bool good() const { return good_; }
  void close() { good_ = false; }

  [[nodiscard]] bool send(std::string_view bytes);
  // So many bytes, or all up to the mark and the mark with them.
  [[nodiscard]] std::optional<std::string> take(std::size_t size);
  [[nodiscard]] std::optional<std::string> take_until(std::string_view mark);

 private:
  [[nodiscard]] bool more();
  std::string cut(std::size_t size);

  const int socket_;
  bool good_ = false;
  std::string in_;
  std::size_t read_ = 0;  // of in_, already taken
};

// Connections that wait for their next use.
class Pool {
 public:
  // `greet` is what a new connection says first.
  explicit Pool(void (*greet)(Socket&) = nullptr) : greet_(greet) {}

  [[nodiscard]] std::unique_ptr<Socket> take(std::uint16_t port);
  void give_back(std::unique_ptr<Socket> socket);
  void close();

 private:
  void (*const greet_)(Socket&);
  std::mutex mutex_;
  std::vector<std::unique_ptr<Socket>> free_;  // guarded by mutex_
};

}  // namespace hapax::contract
