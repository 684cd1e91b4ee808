// Single operations over HTTP go to the store with those of others.
#include <gtest/gtest.h>

#include "access/entry.h"
#include "access/no_store_test.h"
#include "http/session.h"
#include "net/held_link_test.h"
#include "rest/api.h"
#include "rest/problem.h"

namespace hapax::rest {
namespace {

class CountingStore final : public access::NoStore {
 public:
  std::vector<std::size_t> commits;  // how many operations each had

  Result<Answer> commit(const Commit& commit) override {
    commits.push_back(commit.ops.size());
    Answer answer{.committed = true};
    answer.verdicts.resize(commit.ops.size(), Appended{});
    return answer;
  }
};

class Gathering : public testing::Test {
 protected:
  Gathering() {
    std::array<net::Loop*, 1> loops{&loop_};
    entry_.open(loops);
    add_store_routes(router_, entry_, "outbox_events", wire::Callers::kAnybody);
  }

  static std::string append(std::string_view key = "") {
    const std::string body = R"({"payload":"x"})";
    std::string text = "POST /api/v1/streams/s/records HTTP/1.1\r\nHost: h\r\n";
    if (!key.empty()) text.append("Idempotency-Key: ").append(key).append("\r\n");
    return text + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  }

  net::TurnByTurn loop_;
  CountingStore store_;
  access::Entry entry_{store_, 1};
  Router router_;
  const http::SessionLimits limits_;
  const http::Handler handler_ = [this](const std::shared_ptr<http::Exchange>& exchange) {
    Router::Found found = router_.find(exchange->request().method, exchange->request().path);
    const auto call = std::make_shared<Call>();
    call->exchange = exchange;
    call->admission.caller = {{"", std::string(access::kAnybody), access::Rights::all()}};
    call->names = std::move(found.names);
    found.route->act(call);
  };
};

TEST_F(Gathering, WhatComesInOneTurnIsOneCommit) {
  net::HeldLink one(loop_);
  net::HeldLink other(loop_);
  const auto first = std::make_shared<http::Session>(one, limits_, handler_);
  const auto second = std::make_shared<http::Session>(other, limits_, handler_);
  EXPECT_EQ(first->take(append() + append()), 2 * append().size());
  EXPECT_EQ(second->take(append()), append().size());
  EXPECT_TRUE(store_.commits.empty());
  loop_.end_turn();
  EXPECT_EQ(store_.commits, std::vector<std::size_t>{3});
  EXPECT_EQ(one.sent.find(" 201 "), std::string("HTTP/1.1").size());
  EXPECT_NE(other.sent.find(" 201 "), std::string::npos);
  first->lost();
  second->lost();
}

// What cannot be gathered sends first what was.
TEST_F(Gathering, APipelineHappensInItsOrder) {
  net::HeldLink link(loop_);
  const auto session = std::make_shared<http::Session>(link, limits_, handler_);
  const std::string text = append() + append() + append("key");
  EXPECT_EQ(session->take(text), text.size());
  EXPECT_EQ(store_.commits, (std::vector<std::size_t>{2, 1}));
  session->lost();
}

}  // namespace
}  // namespace hapax::rest
