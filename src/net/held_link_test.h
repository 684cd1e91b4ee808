// A connection that keeps what is sent over it.
#pragma once

#include <string>
#include <string_view>

#include "net/held_loop_test.h"
#include "net/link.h"

namespace hapax::net {

class HeldLink final : public Link {
 public:
  HeldLink() = default;
  explicit HeldLink(Loop& loop) : given_(&loop) {}

  void send(std::string_view bytes) override { sent += bytes; }
  void finish() override {}
  void set_deadline(std::chrono::steady_clock::time_point) override {}
  void clear_deadline() override {}
  void pause() override {}
  void resume() override {}
  [[nodiscard]] std::size_t unsent() const override { return 0; }
  [[nodiscard]] const std::string& peer() const override { return peer_; }
  [[nodiscard]] bool encrypted() const override { return false; }
  [[nodiscard]] Loop& loop() override { return given_ == nullptr ? loop_ : *given_; }

  std::string sent;

 private:
  HeldLoop loop_;
  Loop* const given_ = nullptr;  // instead
  std::string peer_ = "127.0.0.1:1";
};

}  // namespace hapax::net
