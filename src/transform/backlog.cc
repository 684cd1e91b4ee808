#include "transform/backlog.h"

#include <algorithm>
#include <utility>

namespace hapax::transform {

Backlog::Queue& Backlog::queue_of(const TransformJob& job) {
  Queue& queue = queues_[job.program->id];
  if (queue.empty()) turns_.push_back(job.program->id);
  return queue;
}

void Backlog::add(std::unique_ptr<TransformJob> job) {
  queue_of(*job).others.push_back(std::move(job));
}

void Backlog::put_back(std::vector<std::unique_ptr<TransformJob>> jobs) {
  for (auto job = jobs.rbegin(); job != jobs.rend(); ++job) {
    Queue& queue = queue_of(**job);
    if ((*job)->care != Care::kTogether) ++suspects_;
    if ((*job)->care == Care::kFirst) ++firsts_;
    auto& side = (*job)->care == Care::kTogether ? queue.others : queue.suspects;
    side.push_front(std::move(*job));
  }
}

bool Backlog::fits(const Queue& queue, const Vacancy& vacancy) {
  if (queue.alone_runs) return false;
  if (queue.suspects.empty()) return !vacancy.only_alone;
  if (!vacancy.idle || !vacancy.alone_allowed) return false;
  return queue.suspects.front()->care != Care::kFirst || vacancy.unused;
}

std::vector<std::unique_ptr<TransformJob>> Backlog::take_from(Queue& queue,
                                                              const Vacancy& vacancy) {
  std::vector<std::unique_ptr<TransformJob>> taken;
  if (!queue.suspects.empty()) {
    taken.push_back(std::move(queue.suspects.front()));
    queue.suspects.pop_front();
    queue.alone_runs = true;
    --suspects_;
    if (taken.front()->care == Care::kFirst) --firsts_;
    return taken;
  }
  std::size_t bytes = 0;
  while (!queue.others.empty() && taken.size() < vacancy.jobs_max &&
         (taken.empty() || bytes < vacancy.bytes_max)) {
    bytes += queue.others.front()->weight();
    taken.push_back(std::move(queue.others.front()));
    queue.others.pop_front();
  }
  return taken;
}

std::vector<std::unique_ptr<TransformJob>> Backlog::take(const Vacancy& vacancy) {
  // An unused worker is dear: whoever needs one has the first turn.
  const bool only_first = vacancy.unused && wants_unused() && vacancy.alone_allowed;
  for (std::size_t i = 0; i < turns_.size(); ++i) {
    const ProgramId program = turns_.front();
    turns_.pop_front();
    Queue& queue = queues_[program];
    const bool is_first = !queue.suspects.empty() && queue.suspects.front()->care == Care::kFirst;
    if (!fits(queue, vacancy) || (only_first && !is_first)) {
      turns_.push_back(program);
      continue;
    }
    auto taken = take_from(queue, vacancy);
    if (!queue.empty()) turns_.push_back(program);
    if (queue.empty() && !queue.alone_runs) queues_.erase(program);
    return taken;
  }
  return {};
}

void Backlog::alone_ended(ProgramId program) {
  const auto found = queues_.find(program);
  if (found == queues_.end()) return;
  found->second.alone_runs = false;
  if (found->second.empty()) queues_.erase(found);
}

bool Backlog::wants_idle() const {
  return suspects_ > 0 && std::any_of(queues_.begin(), queues_.end(), [](const auto& each) {
           return !each.second.suspects.empty() && !each.second.alone_runs;
         });
}

std::vector<std::unique_ptr<TransformJob>> Backlog::take_all() {
  std::vector<std::unique_ptr<TransformJob>> all;
  for (auto& [id, queue] : queues_) {
    for (auto* side : {&queue.suspects, &queue.others}) {
      for (auto& job : *side) all.push_back(std::move(job));
      side->clear();
    }
  }
  std::erase_if(queues_, [](const auto& each) { return !each.second.alone_runs; });
  turns_.clear();
  suspects_ = 0;
  firsts_ = 0;
  return all;
}

}  // namespace hapax::transform
