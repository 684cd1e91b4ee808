// What a client of RESP meets instead of its session.
#pragma once

#include "net/link.h"

namespace hapax::serve {

// While the journal is being read: the answer that Redis gives then.
class Loading final : public net::Session {
 public:
  explicit Loading(net::Link& link) : link_(link) {}

  std::size_t take(std::string_view bytes) override {
    link_.send("-LOADING Hapax is reading its journal\r\n");
    link_.finish();
    return bytes.size();
  }
  void half_closed() override { link_.finish(); }
  void late() override {}
  void drain() override { link_.finish(); }
  void lost() override {}

 private:
  net::Link& link_;
};

// What a client of RESP meets when there are too many: the answer that Redis gives then, at once.
class TurnedAway final : public net::Session {
 public:
  explicit TurnedAway(net::Link& link) {
    link.send("-ERR max number of clients reached\r\n");
    link.finish();
  }

  std::size_t take(std::string_view bytes) override { return bytes.size(); }
  void half_closed() override {}
  void late() override {}
  void drain() override {}
  void lost() override {}
};

}  // namespace hapax::serve
