#include "transform/dispatcher.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include <poll.h>
#include <sys/socket.h>

#include "base/format.h"

namespace hapax::transform {

namespace {

using namespace std::chrono_literals;

// Enough in a worker to keep it busy while the pool looks elsewhere; little enough that few records
// run again after its end.
constexpr std::size_t kPendingMax = 64;
constexpr std::size_t kPendingBytesMax = std::size_t{1} << 20;
// Jobs that one worker gets before the next one's turn.
constexpr std::size_t kChunk = 16;
constexpr auto kStartMax = 20s;
constexpr auto kCompileMax = 10s;
// Ends from outside (an operator's kill, the kernel without memory) that a record may see.
constexpr unsigned kKilledMax = 3;
constexpr unsigned kStartsFailedMax = 3;
constexpr auto kStartPause = 100ms;
constexpr auto kStartPauseMax = 5s;
constexpr std::size_t kReadBytes = std::size_t{64} << 10;

TransformFailed reason_of(const WorkerEnd& end, const TransformSettings& settings) {
  if (end.signal == 0 && end.exit_code == kExitMemory) {
    return {TransformFault::kMemory,
            base::format("it needs more than {} bytes of memory", settings.memory_max)};
  }
  return {TransformFault::kCrashed, base::format("jq ended with {}", text_of(end))};
}

Error not_ready(const WorkerEnd& end) {
  std::string_view why = "before it was ready";
  if (end.exit_code == kExitSandbox) why = "because the kernel refused its sandbox";
  if (end.exit_code == kExitLibrary) why = "because it cannot use this libjq";
  return {Errc::kUnavailable,
          base::format("the transform worker ended with {} {}", text_of(end), why)};
}

}  // namespace

Dispatcher::Dispatcher(const TransformSettings& settings)
    : settings_(settings), workers_(std::max<std::size_t>(settings.workers, 1)) {}

void Dispatcher::forget(ProgramId program) {
  for (Worker& worker : workers_) {
    if (std::erase(worker.defined, program) == 0) continue;
    encode_request(ForgetRequest{program}, worker.requests);
  }
}

void Dispatcher::turn(int wake) {
  start_missing();
  hand_out();
  for (Worker& worker : workers_) {
    if (!worker.requests.empty()) write(worker);
  }
  if (outcomes_.empty()) wait(wake);  // What is known already is told first.
}

TransformCounts Dispatcher::counts() const {
  TransformCounts counts = counts_;
  for (const Worker& worker : workers_) {
    if (worker.process) counts.worker_pids.push_back(worker.process->pid());
  }
  return counts;
}

// --- Work to workers.

void Dispatcher::start_missing() {
  if (backlog_.empty() || Clock::now() < start_after_) return;
  for (Worker& worker : workers_) {
    if (!worker.process) start(worker);
  }
}

void Dispatcher::start(Worker& worker) {
  worker = Worker{};
  auto process = WorkerProcess::start(settings_);
  if (!process) return start_failed(process.error());
  ++counts_.workers_started;
  worker.process = *std::move(process);
  worker.since = Clock::now();
}

bool Dispatcher::alone_allowed() const {
  const auto alone = std::count_if(workers_.begin(), workers_.end(),
                                   [](const Worker& worker) { return worker.alone; });
  return static_cast<std::size_t>(alone) < std::max<std::size_t>(workers_.size() - 1, 1);
}

// A job that runs alone needs an idle worker, and under load none ever is: the one with the least
// in it gets nothing else.
Dispatcher::Worker* Dispatcher::kept_for_alone() {
  if (!backlog_.wants_idle() || !alone_allowed()) return nullptr;
  Worker* least = nullptr;
  for (Worker& worker : workers_) {
    if (!worker.ready || worker.alone) continue;
    if (least == nullptr || worker.pending.size() < least->pending.size()) least = &worker;
  }
  return least;
}

void Dispatcher::hand_out() {
  Worker* const kept = kept_for_alone();
  if (kept != nullptr && kept->pending.empty() && !hand_out_to(*kept, true) &&
      backlog_.wants_unused() && kept->completed > 0) {
    // What is left needs an unused worker.
    static_cast<void>(kept->process->end());
    start(*kept);
  }
  bool gave = true;
  while (gave && !backlog_.empty()) {
    gave = false;
    for (Worker& worker : workers_) {
      if (&worker != kept) gave = hand_out_to(worker, false) || gave;
    }
  }
}

bool Dispatcher::hand_out_to(Worker& worker, bool only_alone) {
  if (!worker.ready || worker.alone || worker.pending.size() + kChunk > kPendingMax ||
      worker.weight > kPendingBytesMax) {
    return false;
  }
  const bool idle = worker.pending.empty();
  const Vacancy vacancy{.idle = idle,
                        .unused = idle && worker.completed == 0,
                        .only_alone = only_alone,
                        .alone_allowed = alone_allowed(),
                        .jobs_max = kChunk,
                        .bytes_max = kPendingBytesMax};
  auto jobs = backlog_.take(vacancy);
  if (jobs.empty()) return false;
  if (idle) worker.since = Clock::now();
  worker.alone = jobs.front()->care != Care::kTogether;
  for (auto& job : jobs) send_job(worker, std::move(job));
  return true;
}

void Dispatcher::send_job(Worker& worker, std::unique_ptr<TransformJob> job) {
  worker.weight += job->weight();
  if (job->compiled) {
    const KnownProgram& program = *job->program;
    return define(worker, program, std::move(job));
  }
  if (!has_program(worker, job->program->id)) define(worker, *job->program, nullptr);
  encode_request(RunRequest{job->program->id, job->time_ms, job->input}, worker.requests);
  worker.pending.push_back({std::move(job), false});
}

// The program that was used last comes last, and the first is given up for a new one.
bool Dispatcher::has_program(Worker& worker, ProgramId program) {
  if (!worker.defined.empty() && worker.defined.back() == program) return true;
  if (std::erase(worker.defined, program) == 0) return false;
  worker.defined.push_back(program);
  return true;
}

void Dispatcher::define(Worker& worker, const KnownProgram& program,
                        std::unique_ptr<TransformJob> job) {
  if (worker.defined.size() >= settings_.programs_max) {
    encode_request(ForgetRequest{worker.defined.front()}, worker.requests);
    worker.defined.pop_front();
  }
  worker.defined.push_back(program.id);
  encode_request(DefineRequest{program.id, program.text}, worker.requests);
  worker.pending.push_back({std::move(job), true});
}

// --- Bytes and time.

std::optional<Dispatcher::Clock::time_point> Dispatcher::deadline_of(const Worker& worker) const {
  if (!worker.process) return std::nullopt;
  if (!worker.ready) return worker.since + kStartMax;
  if (worker.pending.empty()) return std::nullopt;
  if (worker.pending.front().defines) return worker.since + kCompileMax;
  return worker.since + settings_.time_max + kAnswerDelay;
}

std::optional<Dispatcher::Clock::time_point> Dispatcher::next_deadline() const {
  std::optional<Clock::time_point> next;
  const auto consider = [&](std::optional<Clock::time_point> deadline) {
    if (deadline && (!next || *deadline < *next)) next = deadline;
  };
  for (const Worker& worker : workers_) {
    consider(deadline_of(worker));
    if (!worker.process && !backlog_.empty()) consider(start_after_);
  }
  return next;
}

void Dispatcher::wait(int wake) {
  std::vector<pollfd> polled{{.fd = wake, .events = POLLIN, .revents = 0}};
  for (const Worker& worker : workers_) {
    const int writes = worker.requests.empty() ? 0 : POLLOUT;
    polled.push_back({.fd = worker.process ? worker.process->socket() : -1,
                      .events = static_cast<short>(POLLIN | writes),
                      .revents = 0});
  }
  int timeout_ms = -1;
  if (const auto next = next_deadline()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*next - Clock::now());
    timeout_ms = static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 60'000));
  }
  static_cast<void>(::poll(polled.data(), polled.size(), timeout_ms));
  const Clock::time_point now = Clock::now();
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    const short got = polled[i + 1].revents;
    if ((got & POLLOUT) != 0) write(workers_[i]);
    if ((got & (POLLIN | POLLHUP | POLLERR)) != 0) read(workers_[i]);
  }
  check_deadlines(now);
}

void Dispatcher::write(Worker& worker) {
  while (!worker.requests.empty()) {
    const ssize_t sent = ::send(worker.process->socket(), worker.requests.data(),
                                worker.requests.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return;
    // A worker that has ended is noticed by reading, with what it still said.
    if (sent < 0) return worker.requests.clear();
    worker.requests.erase(0, static_cast<std::size_t>(sent));
  }
}

void Dispatcher::read(Worker& worker) {
  std::array<char, kReadBytes> bytes;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  while (true) {
    const ssize_t got = ::recv(worker.process->socket(), bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) return lose(worker, std::nullopt);
    worker.since = Clock::now();
    worker.answers.add({bytes.data(), static_cast<std::size_t>(got)});
    if (!take_answers(worker)) {
      ++counts_.killed_for_garbage;
      return lose(worker, TransformFailed{TransformFault::kCrashed,
                                          "its worker answered what makes no sense"});
    }
    if (static_cast<std::size_t>(got) < bytes.size()) return;
  }
}

void Dispatcher::check_deadlines(Clock::time_point now) {
  for (Worker& worker : workers_) {
    const auto deadline = deadline_of(worker);
    if (!deadline || now < *deadline) continue;
    if (worker.ready) ++counts_.killed_for_time;
    const bool compiles = worker.ready && worker.pending.front().defines;
    const auto most = compiles ? std::chrono::milliseconds(kCompileMax) : settings_.time_max;
    lose(worker, TransformFailed{TransformFault::kTimeout,
                                 base::format("it runs longer than {} ms", most.count())});
  }
}

// --- Answers.

bool Dispatcher::take_answers(Worker& worker) {
  while (true) {
    const auto body = worker.answers.next();
    if (!body) return false;
    if (!*body) return true;
    auto answer = decode_answer(**body);
    if (!answer || !take_answer(worker, *std::move(answer))) return false;
  }
}

// False: the answer makes no sense here.
bool Dispatcher::take_answer(Worker& worker, WorkerAnswer answer) {
  if (const auto* ready = std::get_if<ReadyAnswer>(&answer)) {
    if (worker.ready || ready->version != kProtocolVersion) return false;
    worker.ready = true;
    starts_failed_ = 0;
    return true;
  }
  if (worker.pending.empty()) return false;
  if (auto* defined = std::get_if<DefinedAnswer>(&answer)) {
    return worker.pending.front().defines && take_defined(worker, std::move(*defined));
  }
  return !worker.pending.front().defines &&
         take_ran(worker, std::get<RanAnswer>(std::move(answer)));
}

bool Dispatcher::take_defined(Worker& worker, DefinedAnswer answer) {
  const std::unique_ptr<TransformJob> job = std::move(worker.pending.front().job);
  worker.pending.pop_front();
  // A text that was compiled before compiles again.
  if (!job) return answer.faults.empty();
  completed(worker, *job);
  if (answer.faults.empty()) {
    tell(*job, Result<Compiled>(job->program->id));
  } else {
    std::erase(worker.defined, job->program->id);
    tell(*job, Result<Compiled>(Compiled{std::move(answer.faults)}));
  }
  return true;
}

bool Dispatcher::take_ran(Worker& worker, RanAnswer answer) {
  if (!is_within_limits(answer.outcome)) return false;
  const std::unique_ptr<TransformJob> job = std::move(worker.pending.front().job);
  worker.pending.pop_front();
  completed(worker, *job);
  ++counts_.records;
  tell(*job, Result<TransformOutcome>(std::move(answer.outcome)));
  return true;
}

bool Dispatcher::is_within_limits(const TransformOutcome& outcome) const {
  const auto* transformed = std::get_if<Transformed>(&outcome);
  if (transformed == nullptr) {
    // The others are for the pool to say.
    const TransformFault fault = std::get<TransformFailed>(outcome).fault;
    return fault == TransformFault::kError || fault == TransformFault::kTooMuchOutput ||
           fault == TransformFault::kWouldAlter || fault == TransformFault::kBadInput;
  }
  std::size_t bytes = 0;
  for (const TransformOutput& output : transformed->outputs) {
    bytes += output.data.size();
    bytes += output.event_type ? output.event_type->size() : 0;
    bytes += output.key ? output.key->size() : 0;
  }
  return bytes <= settings_.output_max && transformed->outputs.size() <= settings_.outputs_max;
}

void Dispatcher::completed(Worker& worker, const TransformJob& job) {
  ++worker.completed;
  worker.weight -= job.weight();
  settled_weight_ += job.weight();
  if (std::exchange(worker.alone, false)) backlog_.alone_ended(job.program->id);
}

// --- Ends.

void Dispatcher::lose(Worker& worker, std::optional<TransformFailed> reason) {
  const WorkerEnd end = worker.process->end();
  Worker lost = std::exchange(worker, Worker{});
  if (!lost.ready) return start_failed(not_ready(end));
  const bool from_outside = !reason && end.signal == SIGKILL;
  if (!reason) reason = reason_of(end, settings_);
  std::vector<std::unique_ptr<TransformJob>> jobs;
  for (Pending& pending : lost.pending) {
    if (pending.job) jobs.push_back(std::move(pending.job));
  }
  if (jobs.empty()) return;
  ++counts_.workers_ended;
  if (lost.alone) backlog_.alone_ended(jobs.front()->program->id);
  if (jobs.size() == 1) {
    return judge(std::move(jobs.front()), *std::move(reason), lost.completed == 0, from_outside);
  }
  counts_.again += jobs.size();
  for (auto& job : jobs) job->care = std::max(job->care, Care::kAlone);
  backlog_.put_back(std::move(jobs));
}

void Dispatcher::judge(std::unique_ptr<TransformJob> job, TransformFailed reason, bool was_first,
                       bool from_outside) {
  // No other record makes this one run long; only a crash can have begun before it.
  const bool proven = was_first || reason.fault == TransformFault::kTimeout;
  if (from_outside ? ++job->killed >= kKilledMax : proven) {
    return blame(std::move(job), std::move(reason));
  }
  job->care = from_outside ? std::max(job->care, Care::kAlone) : Care::kFirst;
  ++counts_.again;
  std::vector<std::unique_ptr<TransformJob>> back;
  back.push_back(std::move(job));
  backlog_.put_back(std::move(back));
}

void Dispatcher::blame(std::unique_ptr<TransformJob> job, TransformFailed reason) {
  settled_weight_ += job->weight();
  if (job->compiled) {
    ProgramFault fault;
    fault.message = base::format("jq does not survive compiling this: {}", reason.message);
    return tell(*job, Result<Compiled>(Compiled{std::vector{std::move(fault)}}));
  }
  ++counts_.records;
  tell(*job, Result<TransformOutcome>(std::move(reason)));
}

void Dispatcher::fail(std::unique_ptr<TransformJob> job, const Error& why) {
  settled_weight_ += job->weight();
  if (job->compiled) return tell(*job, Result<Compiled>(why));
  tell(*job, Result<TransformOutcome>(why));
}

void Dispatcher::tell(TransformJob& job, Result<Compiled> compiled) {
  outcomes_.emplace_back([done = std::move(job.compiled),
                          compiled = std::move(compiled)]() mutable { done(std::move(compiled)); });
}

void Dispatcher::tell(TransformJob& job, Result<TransformOutcome> outcome) {
  outcomes_.emplace_back([done = std::move(job.ran), outcome = std::move(outcome)]() mutable {
    done(std::move(outcome));
  });
}

void Dispatcher::start_failed(const Error& why) {
  ++counts_.workers_failed;
  ++starts_failed_;
  const auto pause = kStartPause * (1 << std::min(starts_failed_, 6U));
  start_after_ = Clock::now() + std::min<Clock::duration>(pause, kStartPauseMax);
  const bool none_left = std::none_of(workers_.begin(), workers_.end(),
                                      [](const Worker& worker) { return worker.ready; });
  if (starts_failed_ < kStartsFailedMax || !none_left) return;
  for (auto& job : backlog_.take_all()) fail(std::move(job), why);
}

void Dispatcher::stop(const Error& why) {
  std::vector<std::unique_ptr<TransformJob>> jobs = backlog_.take_all();
  for (Worker& worker : workers_) {
    for (Pending& pending : worker.pending) {
      if (pending.job) jobs.push_back(std::move(pending.job));
    }
    worker = Worker{};
  }
  for (auto& job : jobs) fail(std::move(job), why);
}

}  // namespace hapax::transform
