#include "transform/pool.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include <sys/eventfd.h>
#include <unistd.h>

#include "base/format.h"

namespace hapax::transform {

namespace {

// Signals are for the threads that wait for them.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

Error ending() { return {Errc::kShuttingDown, "the transform pool ends"}; }

Status check(const TransformSettings& settings) {
  const auto within = [](std::string_view what, std::size_t value, std::size_t min,
                         std::size_t max) -> Status {
    if (value >= min && value <= max) return Ok{};
    return Error{Errc::kInvalidArgument,
                 base::format("transform: {} is {}, expected {} to {}", what, value, min, max)};
  };
  HAPAX_CHECK(within("workers", settings.workers, 1, kWorkersMax));
  HAPAX_CHECK(
      within("time_max in ms", static_cast<std::size_t>(settings.time_max.count()), 1, kTimeMsMax));
  HAPAX_CHECK(within("memory_max", settings.memory_max, kMemoryMin, kMemoryMax));
  HAPAX_CHECK(within("output_max", settings.output_max, 1, kInputMax));
  HAPAX_CHECK(within("programs_max", settings.programs_max, 1, kProgramsMax));
  return within("outputs_max", settings.outputs_max, 1, kOutputsMax);
}

}  // namespace

Result<std::unique_ptr<TransformPool>> TransformPool::start(const TransformSettings& settings) {
  HAPAX_CHECK(check(settings));
  const int wake = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake < 0) {
    return Error{Errc::kUnavailable, base::format("transform pool: {}", std::strerror(errno))};
  }
  return std::unique_ptr<TransformPool>(new TransformPool(settings, wake));
}

TransformPool::TransformPool(const TransformSettings& settings, int wake)
    : settings_(settings), wake_(wake) {
  const SignalsBlocked blocked;  // The thread inherits it.
  thread_ = std::thread([this] { serve(); });
}

TransformPool::~TransformPool() {
  {
    const base::MutexLock lock(mutex_);
    ends_ = true;
    wake_up();
  }
  thread_.join();
  ::close(wake_);
}

Status TransformPool::compile(TransformText text, CompileDone done) {
  for (const std::string* part : {&text.main, &text.event_type, &text.key}) {
    if (part->size() <= kProgramMax) continue;
    return Error{Errc::kLimitExceeded,
                 base::format("a jq program has {} bytes, at most {}", part->size(), kProgramMax)};
  }
  auto job = std::make_unique<TransformJob>();
  const base::MutexLock lock(mutex_);
  if (ends_) return ending();
  auto program =
      std::make_shared<const KnownProgram>(KnownProgram{{++programs_made_}, std::move(text)});
  job->program = program;
  job->compiled = [this, program, done = std::move(done)](Result<Compiled> answer) {
    compiled(program, std::move(answer), done);
  };
  enter(std::move(job));
  return Ok{};
}

void TransformPool::compiled(const std::shared_ptr<const KnownProgram>& program,
                             Result<Compiled> answer, const CompileDone& done) {
  if (answer && std::holds_alternative<ProgramId>(*answer)) {
    const base::MutexLock lock(mutex_);
    programs_.emplace(program->id, program);
  }
  done(std::move(answer));
}

Status TransformPool::run(ProgramId program, std::string input, Time record_time, RunDone done) {
  if (input.size() > kInputMax) {
    return Error{
        Errc::kLimitExceeded,
        base::format("the input of a transform has {} bytes, at most {}", input.size(), kInputMax)};
  }
  auto job = std::make_unique<TransformJob>();
  job->input = std::move(input);
  job->time_ms = to_ms(record_time);
  job->ran = std::move(done);
  const base::MutexLock lock(mutex_);
  if (ends_) return ending();
  const auto known = programs_.find(program);
  if (known == programs_.end()) {
    return Error{Errc::kNotFound, base::format("there is no transform {}", program.number)};
  }
  // One record always fits, or a large one would never run.
  if (weight_ > 0 && weight_ + job->weight() > settings_.waiting_max) {
    return Error{Errc::kUnavailable,
                 base::format("{} bytes wait for transforms already, at most {}", weight_,
                              settings_.waiting_max)};
  }
  job->program = known->second;
  enter(std::move(job));
  return Ok{};
}

void TransformPool::forget(ProgramId program) {
  const base::MutexLock lock(mutex_);
  if (programs_.erase(program) == 0) return;
  forgotten_.push_back(program);
  wake_up();
}

TransformCounts TransformPool::counts() const {
  const base::MutexLock lock(mutex_);
  return counts_;
}

void TransformPool::enter(std::unique_ptr<TransformJob> job) {
  weight_ += job->weight();
  entered_.push_back(std::move(job));
  wake_up();
}

void TransformPool::wake_up() {
  if (!std::exchange(sleeps_, false)) return;  // It looks before it waits.
  ::eventfd_write(wake_, 1);
}

void TransformPool::serve() {
  Dispatcher dispatcher(settings_);
  std::vector<std::unique_ptr<TransformJob>> entered;
  std::vector<ProgramId> forgotten;
  while (true) {
    {
      const base::MutexLock lock(mutex_);
      weight_ -= dispatcher.take_settled_weight();
      counts_ = dispatcher.counts();
      entered.swap(entered_);
      forgotten.swap(forgotten_);
      sleeps_ = true;
      if (ends_) break;
    }
    for (const auto& tell : dispatcher.take_outcomes()) tell();
    for (auto& job : entered) dispatcher.add(std::move(job));
    for (const ProgramId program : forgotten) dispatcher.forget(program);
    entered.clear();
    forgotten.clear();
    dispatcher.turn(wake_);
    eventfd_t ignored = 0;
    ::eventfd_read(wake_, &ignored);
  }
  for (auto& job : entered) dispatcher.add(std::move(job));
  dispatcher.stop(ending());
  for (const auto& tell : dispatcher.take_outcomes()) tell();
}

}  // namespace hapax::transform
