// What a client of RESP meets while the journal is being read: the answer that Redis gives then.
#pragma once

#include "net/link.h"

namespace hapax::serve {

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

}  // namespace hapax::serve
