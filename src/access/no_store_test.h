// A store in which nothing is found.
#pragma once

#include <hapax/store.h>

namespace hapax::access {

class NoStore : public Store {
 public:
  Result<Answer> commit(const Commit&) override { return none(); }
  void submit(const Commit& commit, Done done) override { done(this->commit(commit)); }

  Result<Records> read(const ReadRange&) override { return none(); }
  Result<std::optional<IdStatus>> find_id(std::string_view, std::string_view,
                                          std::optional<std::string_view>) override {
    return none();
  }
  Result<std::optional<ClaimStatus>> find_claim(std::string_view, std::string_view) override {
    return none();
  }
  Result<std::optional<RegisterValue>> find_register(std::string_view) override { return none(); }
  Result<RegisterPage> scan_registers(const RegisterScan&) override { return none(); }
  Result<std::optional<Position>> find_position(std::string_view) override { return none(); }
  Result<std::optional<ProducerStatus>> find_producer(std::string_view, std::string_view) override {
    return none();
  }
  Result<StreamStats> describe(std::string_view) override { return none(); }
  Result<std::vector<std::string>> streams() override { return none(); }
  Result<Statistics> statistics() override { return none(); }

 private:
  static Error none() { return {Errc::kNotFound, "none"}; }
};

}  // namespace hapax::access
