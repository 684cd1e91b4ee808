#include "jq/worker.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <optional>
#include <utility>

#include <unistd.h>

namespace hapax::jq {

namespace {

using std::chrono::steady_clock;

constexpr std::size_t kAnswerBytes = std::size_t{64} << 10;
constexpr std::size_t kKeptBytes = std::size_t{1} << 20;
constexpr std::size_t kReadBytes = std::size_t{64} << 10;

}  // namespace

bool JqWorker::serve(int from, int to) {
  encode_answer(transform::ReadyAnswer{}, answers_);
  std::array<char, kReadBytes> bytes;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  while (answer_all(to)) {
    // Nothing is left to do, so whatever is known goes out before the next wait.
    if (!flush(to)) return true;
    const ssize_t got = ::read(from, bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    requests_.add({bytes.data(), static_cast<std::size_t>(got)});
  }
  return false;
}

bool JqWorker::answer_all(int to) {
  auto flushed = steady_clock::now();
  while (true) {
    const auto body = requests_.next();
    if (!body) return false;
    if (!*body) return true;
    const auto request = transform::decode_request(**body);
    if (!request) return false;
    // The pool measures the time of a request from the last answer before it. Compiling has a time
    // of its own, so it begins with nothing held back.
    const auto now = steady_clock::now();
    const bool defines = std::holds_alternative<transform::DefineRequest>(*request);
    if (defines || answers_.size() >= kAnswerBytes || now - flushed >= transform::kAnswerDelay) {
      if (!flush(to)) return true;
      flushed = now;
    }
    answer(*request);
  }
}

void JqWorker::answer(const transform::WorkerRequest& request) {
  if (const auto* run_it = std::get_if<transform::RunRequest>(&request)) {
    encode_answer(run(*run_it), answers_);
  } else if (const auto* define_it = std::get_if<transform::DefineRequest>(&request)) {
    encode_answer(define(*define_it), answers_);
  } else {
    programs_.erase(std::get<transform::ForgetRequest>(request).program.number);
  }
}

transform::WorkerAnswer JqWorker::define(const transform::DefineRequest& request) {
  auto compiled = CompiledTransform::compile(request.text, no_memory_);
  if (auto* faults = std::get_if<std::vector<transform::ProgramFault>>(&compiled)) {
    return transform::DefinedAnswer{std::move(*faults)};
  }
  programs_.insert_or_assign(request.program.number,
                             std::get<CompiledTransform>(std::move(compiled)));
  return transform::DefinedAnswer{};
}

transform::WorkerAnswer JqWorker::run(const transform::RunRequest& request) {
  const auto program = programs_.find(request.program.number);
  if (program == programs_.end()) {
    return transform::RanAnswer{transform::TransformFailed{
        transform::TransformFault::kError, "the worker does not have this program"}};
  }
  return transform::RanAnswer{program->second.run(request.input, request.time_ms, limits_)};
}

bool JqWorker::flush(int to) {
  std::string_view left = answers_;
  while (!left.empty()) {
    const ssize_t wrote = ::write(to, left.data(), left.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    left.remove_prefix(static_cast<std::size_t>(wrote));
  }
  answers_.clear();
  if (answers_.capacity() > kKeptBytes) answers_.shrink_to_fit();
  return true;
}

}  // namespace hapax::jq
