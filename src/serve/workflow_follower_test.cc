// What follows declarations, over a real store whose calls fail one after the other.
#include "serve/workflow_follower.h"

#include <functional>
#include <map>
#include <memory>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <hapax/embedded.h>

#include "access/tenant_store.h"
#include "host/temporary_folder_test.h"
#include "serve/workflow_removal.h"

namespace hapax::serve {
namespace {

using delivery::DeclaredIn;
using delivery::Workflow;
using delivery::WorkflowId;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Fails the call of that number, and may lose the answer of a commit instead of refusing it.
class FailingStore final : public Store {
 public:
  explicit FailingStore(Store& store) : store_(store) {}
  int fail_at = 0;  // 0: none
  bool done_all_the_same = false;
  int calls = 0;

  Result<Answer> commit(const Commit& commit) override {
    if (!fails()) return store_.commit(commit);
    if (!done_all_the_same) return gone();
    (void)store_.commit(commit);
    return Error{Errc::kOutcomeUnknown, "the answer is lost"};
  }
  void submit(const Commit& commit, Done done) override { done(this->commit(commit)); }
  Result<Records> read(const ReadRange& range) override { return ask(store_.read(range)); }
  Result<std::optional<IdStatus>> find_id(std::string_view stream, std::string_view id,
                                          std::optional<std::string_view> group) override {
    return ask(store_.find_id(stream, id, group));
  }
  Result<std::optional<ClaimStatus>> find_claim(std::string_view scope,
                                                std::string_view key) override {
    return ask(store_.find_claim(scope, key));
  }
  Result<std::optional<RegisterValue>> find_register(std::string_view name) override {
    return ask(store_.find_register(name));
  }
  Result<RegisterPage> scan_registers(const RegisterScan& scan) override {
    return ask(store_.scan_registers(scan));
  }
  Result<std::optional<Position>> find_position(std::string_view source) override {
    return ask(store_.find_position(source));
  }
  Result<std::optional<ProducerStatus>> find_producer(std::string_view stream,
                                                      std::string_view producer) override {
    return ask(store_.find_producer(stream, producer));
  }
  Result<StreamStats> describe(std::string_view stream) override {
    return ask(store_.describe(stream));
  }
  Result<std::vector<std::string>> streams() override { return ask(store_.streams()); }
  Result<Statistics> statistics() override { return ask(store_.statistics()); }

 private:
  bool fails() { return ++calls == fail_at; }
  static Error gone() { return {Errc::kUnavailable, "the store is away"}; }
  template <class Value>
  Result<Value> ask(Result<Value> value) {
    if (fails()) return gone();
    return value;
  }

  Store& store_;
};

class TestRunner final : public WorkflowRunner {
 public:
  std::map<WorkflowName, Workflow> runs;
  std::set<WorkflowName> leaving;
  std::string refuses;  // workflows that have this transform
  int puts = 0;

  Status put(const Workflow& workflow) override {
    ++puts;
    if (workflow.transform && workflow.transform->jq == refuses) {
      return Error{Errc::kInvalidArgument, "no program"};
    }
    runs.insert_or_assign(name_of(workflow), workflow);
    return Ok{};
  }
  void remove(const WorkflowName& name) override {
    if (runs.erase(name) != 0) leaving.insert(name);
  }
  [[nodiscard]] bool is_gone(const WorkflowName& name) const override {
    return !runs.contains(name) && !leaving.contains(name);
  }
  void tend() override { leaving.clear(); }
  [[nodiscard]] bool is_settled() const override { return leaving.empty(); }
};

class FollowerClock final : public ports::Clock {
 public:
  std::int64_t wall_ms() override { return 1'700'000'000'000 + now_ms; }
  std::int64_t steady_ms() override { return now_ms; }
  std::int64_t now_ms = 1'000;
};

// One process of those that share the store.
struct TestProcess {
  TestProcess(Store& over, FollowerClock& time, Duration others_end = Duration{0})
      : store(over),
        clock(time),
        follower({.store = store,
                  .runner = runner,
                  .clock = clock,
                  .log =
                      [this](const std::string& workflow, std::string_view line) {
                        said.push_back(workflow + ": " + std::string(line));
                      },
                  .others_end = others_end},
                 board) {}

  // Until nothing is to be done soon.
  void settle() {
    for (int i = 0; i < 200; ++i) {
      const Duration wait = follower.step();
      if (wait == WorkflowFollower::kAtLeast) return;
      clock.now_ms += wait.count();
    }
    ADD_FAILURE() << "it does not come to rest";
  }
  [[nodiscard]] WorkflowStage stage(const std::string& id) const {
    return board.find("", id)->stage;
  }

  FailingStore store;
  FollowerClock& clock;
  TestRunner runner;
  WorkflowBoard board;
  std::vector<std::string> said;
  WorkflowFollower follower;
};

Workflow from_stream(std::string_view id, DeclaredIn declared_in = DeclaredIn::kApi) {
  Workflow made{.id = WorkflowId::parse(id).value(), .declared_in = declared_in};
  made.source = delivery::FromStream{"orders"};
  const auto url = delivery::WebUrl::parse("https://erp.example/in").value();
  made.endpoints = {{.name = "", .target = delivery::HttpTarget{.url = url}}};
  return made;
}

class Follower : public testing::Test {
 protected:
  Follower() {
    EmbeddedOptions options;
    options.log = [](const std::string&) {};
    store_ = open_embedded(folder_.path(), options).value();
    declarations_ = std::make_unique<Declarations>(*store_);
  }
  Version put(const Workflow& workflow, bool removing = false, bool drop = false) {
    const auto stored = declarations_->find(name_of(workflow)).value();
    const Version version = stored ? stored->version : Version{};
    return declarations_
        ->put({.workflow = workflow, .removing = removing, .drop_undelivered = drop}, version)
        .value()
        .value();
  }
  void commit(const Op& op) {
    const Answer answer = store_->commit({.ops = {&op, 1}}).value();
    ASSERT_TRUE(answer.committed) << word_of(answer.verdicts.front());
  }
  // Everything that a workflow keeps.
  void fill(const std::string& id) {
    commit(CreateStream{.stream = "orders"});
    commit(CreateConsumer{.stream = "orders", .consumer = id});
    for (const char* kind : {".events", ".outbox", ".dead", ".attempts"}) {
      const std::string name = id + kind;
      commit(CreateStream{.stream = name});
    }
    for (const char* kind : {".paused", ".attempts/1/2", ".blocked/1/2", ".began/1", ".lost/1"}) {
      const std::string name = id + kind;
      commit(Set{.name = name, .value = "x", .mode = SetMode::kAlways});
    }
  }
  // Names of the tenant without a name.
  std::vector<std::string> registers() {
    return access::TenantStore(*store_, "").scan_registers({}).value().names;
  }
  std::vector<std::string> streams() { return access::TenantStore(*store_, "").streams().value(); }

  host::TemporaryFolder folder_;
  FollowerClock clock_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Declarations> declarations_;
};

TEST_F(Follower, WhatIsDeclaredRunsInEveryProcessAndAfterARestart) {
  TestProcess one(*store_, clock_);
  TestProcess other(*store_, clock_);
  one.settle();
  other.settle();
  put(from_stream("erp"));
  one.settle();
  other.settle();
  EXPECT_EQ(one.runner.runs.size(), 1U);
  EXPECT_EQ(other.runner.runs.size(), 1U);
  Workflow changed = from_stream("erp");
  changed.transform = delivery::TransformSettings{"."};
  put(changed);
  one.settle();
  EXPECT_EQ(one.runner.runs.begin()->second, changed);
  one.settle();
  EXPECT_EQ(one.runner.puts, 2) << "nothing is put twice";
  TestProcess later(*store_, clock_);
  later.settle();
  EXPECT_EQ(later.runner.runs.begin()->second, changed);
}

TEST_F(Follower, ADeclarationThatCannotRunIsToldAndTheOldOneGoesOn) {
  TestProcess one(*store_, clock_);
  one.runner.refuses = ".[";
  put(from_stream("erp"));
  one.settle();
  Workflow bad = from_stream("erp");
  bad.transform = delivery::TransformSettings{".["};
  put(bad);
  EXPECT_EQ(one.follower.step(), WorkflowFollower::kAgain);
  EXPECT_EQ(one.runner.runs.begin()->second, from_stream("erp"));
  EXPECT_THAT(one.board.find("", "erp")->trouble, HasSubstr("no program"));
  EXPECT_TRUE(one.board.find("", "erp")->runs);
  for (int i = 0; i < 3; ++i) clock_.now_ms += one.follower.step().count();
  EXPECT_THAT(one.said, ElementsAre(HasSubstr("erp: HX1001 invalid_argument: no program")));
  put(from_stream("erp"));
  one.settle();
  EXPECT_EQ(one.board.find("", "erp")->trouble, "");
}

// F1: one that slept through so many changes that the news do not reach back reads all.
TEST_F(Follower, NoChangeIsMissedHoweverManyThereWere) {
  TestProcess one(*store_, clock_);
  put(from_stream("gone"));
  one.settle();
  put(from_stream("gone"), true);
  TestProcess other(*store_, clock_);
  other.settle();
  put(from_stream("first"));
  for (std::uint64_t i = 0; i < Declarations::kNewsKept + 10; ++i) put(from_stream("often"));
  one.settle();
  EXPECT_EQ(one.runner.runs.size(), 2U);
  EXPECT_EQ(one.board.find("", "gone"), nullptr);
}

TEST_F(Follower, NothingOfARemovedWorkflowStays) {
  TestProcess one(*store_, clock_);
  fill("erp");
  const Op neighbour = Set{.name = "erp.other/1", .value = "x", .mode = SetMode::kAlways};
  commit(neighbour);
  put(from_stream("erp"));
  one.settle();
  put(from_stream("erp"), true);
  (void)one.follower.step();
  EXPECT_THAT(one.runner.leaving, Contains(WorkflowName{"", "erp"}));
  EXPECT_EQ(one.stage("erp"), WorkflowStage::kRemoving);
  EXPECT_THAT(streams(), Contains("erp.dead")) << "it still winds down";
  one.settle();
  EXPECT_THAT(streams(), ElementsAre("orders"));
  EXPECT_THAT(registers(), ElementsAre("erp.other/1"));
  EXPECT_THAT(store_->describe("orders")->consumers, IsEmpty());
  EXPECT_EQ(one.board.find("", "erp"), nullptr);
}

// F5: its own places have such names, too.
TEST_F(Follower, StreamsThatItWasToldToReadOrToWriteToStay) {
  fill("erp");
  Workflow workflow = from_stream("erp");
  workflow.source = delivery::FromStream{"erp.events"};
  workflow.endpoints.front().name = "crm";
  workflow.endpoints.push_back({.name = "log", .target = delivery::StreamTarget{"erp.attempts"}});
  commit(Append{.stream = "erp.events", .payload = "an order"});
  commit(CreateConsumer{.stream = "erp.events", .consumer = "erp"});
  commit(Seek{.stream = "erp.events", .consumer = "erp", .to = Sequence{2}});
  put(workflow, true);
  TestProcess one(*store_, clock_);
  one.settle();
  EXPECT_EQ(one.board.find("", "erp"), nullptr);
  EXPECT_THAT(streams(), testing::UnorderedElementsAre("orders", "erp.events", "erp.attempts"));
  EXPECT_THAT(store_->describe("erp.events")->consumers, IsEmpty());
}

// F2
TEST_F(Follower, ARecordThatComesInBetweenKeepsTheWorkflow) {
  TestProcess one(*store_, clock_);
  fill("erp");
  put(from_stream("erp"));
  one.settle();
  put(from_stream("erp"), true);
  (void)one.follower.step();
  commit(Append{.stream = "erp.events", .payload = "late"});
  one.settle();
  EXPECT_EQ(one.stage("erp"), WorkflowStage::kDeclared);
  EXPECT_EQ(one.runner.runs.size(), 1U);
  EXPECT_THAT(one.said, Contains(HasSubstr("records came that are not delivered")));
  EXPECT_EQ(store_->describe("erp.events")->last, Sequence{1});
  put(from_stream("erp"), true, true);
  one.settle();
  EXPECT_THAT(streams(), ElementsAre("orders"));
}

// A process that has not heard of the removal yet would make names again.
TEST_F(Follower, NothingGoesBeforeOtherProcessesHaveEnded) {
  TestProcess one(*store_, clock_, Duration{20'000});
  fill("erp");
  put(from_stream("erp"));
  one.settle();
  put(from_stream("erp"), true);
  const std::int64_t since = clock_.now_ms;
  (void)one.follower.step();
  while (clock_.now_ms < since + 19'900) clock_.now_ms += one.follower.step().count();
  EXPECT_THAT(streams(), Contains("erp.dead"));
  one.settle();
  EXPECT_THAT(streams(), ElementsAre("orders"));
}

// What another process has made anew is not removed by one that is late.
TEST_F(Follower, AProcessThatIsLateRemovesNothingOfTheNextOne) {
  fill("erp");
  put(from_stream("erp"), true);
  const StoredDeclaration stored = declarations_->find({"", "erp"}).value().value();
  TestProcess one(*store_, clock_);
  one.settle();
  put(from_stream("erp"));
  fill("erp.x");
  commit(CreateStream{.stream = "erp.dead"});
  EXPECT_EQ(remove_names(*store_, *stored.declaration, stored.version).value(), Removal::kMoved);
  EXPECT_THAT(streams(), Contains("erp.dead"));
}

// F4
TEST_F(Follower, WhatLeavesTheFileIsKeptAndDoesNotRun) {
  const Workflow workflow = from_stream("erp", DeclaredIn::kFile);
  TestProcess one(*store_, clock_);
  one.follower.adopt({workflow});
  one.settle();
  EXPECT_EQ(one.runner.puts, 0) << "it ran already";
  EXPECT_EQ(one.stage("erp"), WorkflowStage::kDeclared);
  one.follower.set_file({});
  one.settle();
  EXPECT_EQ(one.stage("erp"), WorkflowStage::kLeftFile);
  EXPECT_TRUE(one.runner.is_gone({"", "erp"}));
  TestProcess later(*store_, clock_);
  later.settle();
  EXPECT_EQ(later.stage("erp"), WorkflowStage::kLeftFile);
  EXPECT_EQ(later.runner.puts, 0);
  later.follower.set_file({workflow});
  later.settle();
  EXPECT_EQ(later.stage("erp"), WorkflowStage::kDeclared);
  EXPECT_EQ(later.runner.runs.size(), 1U);
}

// F4: a process whose file does not have it may think that it left the file.
TEST_F(Follower, NoOtherProcessRemovesWhatIsInTheFileOfOne) {
  const Workflow workflow = from_stream("erp", DeclaredIn::kFile);
  TestProcess one(*store_, clock_, Duration{20'000});
  TestProcess other(*store_, clock_, Duration{20'000});
  fill("erp");
  one.follower.set_file({workflow});
  one.settle();
  other.settle();
  EXPECT_EQ(other.stage("erp"), WorkflowStage::kLeftFile);
  put(workflow, true, true);
  (void)other.follower.step();
  EXPECT_EQ(other.stage("erp"), WorkflowStage::kRemoving);
  one.settle();
  other.settle();
  EXPECT_EQ(one.stage("erp"), WorkflowStage::kDeclared);
  EXPECT_EQ(one.runner.puts, 1);
  EXPECT_THAT(streams(), Contains("erp.dead"));
}

TEST_F(Follower, TheFileTakesOverWhatWasDeclaredOverTheApi) {
  put(from_stream("erp"));
  TestProcess one(*store_, clock_);
  Workflow of_file = from_stream("erp", DeclaredIn::kFile);
  of_file.delivery.retries.attempts_max = 3;
  one.follower.set_file({of_file});
  one.settle();
  EXPECT_EQ(one.runner.runs.begin()->second, of_file);
  EXPECT_THAT(one.said, ElementsAre(HasSubstr("is the configuration's from now on")));
  EXPECT_EQ(declarations_->find({"", "erp"}).value()->declaration->workflow.declared_in,
            DeclaredIn::kFile);
}

// Processes whose files differ do not write against each other without end.
TEST_F(Follower, TwoFilesThatDifferComeToRest) {
  const Workflow mine = from_stream("erp", DeclaredIn::kFile);
  Workflow theirs = mine;
  theirs.delivery.retries.attempts_max = 3;
  TestProcess one(*store_, clock_);
  TestProcess other(*store_, clock_);
  one.follower.set_file({mine});
  other.follower.set_file({theirs});
  for (int i = 0; i < 5; ++i) {
    one.settle();
    other.settle();
  }
  const Version version = declarations_->find({"", "erp"}).value()->version;
  one.settle();
  other.settle();
  EXPECT_EQ(declarations_->find({"", "erp"}).value()->version, version);
}

// F3: whichever call of the store fails, or whose answer is lost, the end is the same.
TEST_F(Follower, ItComesToTheSameWhicheverCallFails) {
  for (const bool done_all_the_same : {false, true}) {
    for (int fail_at = 1;; ++fail_at) {
      SCOPED_TRACE(testing::Message() << "call " << fail_at << ", done " << done_all_the_same);
      const std::string id = "w" + std::to_string(fail_at) + (done_all_the_same ? "y" : "n");
      const std::string file_id = id + ".file";
      TestProcess one(*store_, clock_);
      one.store.fail_at = fail_at;
      one.store.done_all_the_same = done_all_the_same;
      one.follower.set_file({from_stream(file_id, DeclaredIn::kFile)});
      put(from_stream(id));
      one.settle();
      EXPECT_TRUE(one.runner.runs.contains({"", id}));
      EXPECT_TRUE(one.runner.runs.contains({"", file_id}));
      EXPECT_TRUE(declarations_->find({"", file_id}).value());
      fill(id);
      put(from_stream(id), true);
      one.settle();
      EXPECT_EQ(one.board.find("", id), nullptr);
      EXPECT_THAT(streams(), ElementsAre("orders"));
      EXPECT_THAT(registers(), IsEmpty());
      EXPECT_THAT(store_->describe("orders")->consumers, IsEmpty());
      one.follower.set_file({});
      put(from_stream(file_id, DeclaredIn::kFile), true);
      one.settle();
      EXPECT_EQ(one.board.find("", file_id), nullptr);
      if (HasFailure()) return;
      if (one.store.calls < fail_at) break;
    }
  }
}

}  // namespace
}  // namespace hapax::serve
