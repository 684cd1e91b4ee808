#include "serve/survey.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/mutex.h"

namespace hapax::serve {

metrics::NearMisses::Windows Survey::windows() const {
  metrics::NearMisses::Windows windows;
  for (const StreamStats& stream : streams) {
    const Window& window = stream.settings.window;
    if (window.is_forever()) continue;
    windows[stream.stream] = {std::chrono::seconds{window.raw()}, stream.settings.id_scope};
  }
  return windows;
}

std::uint64_t records_of(const StreamStats& stream) {
  return stream.last.value + 1 - std::min(stream.first.value, stream.last.value + 1);
}

Result<Survey> take_survey(Store& store, const GoOn& go_on) {
  Survey survey;
  HAPAX_TRY(survey.store, store.statistics());
  if (!go_on()) return survey;
  HAPAX_TRY(survey.tenants, store.tenants());
  StreamScan scan;
  while (go_on()) {
    HAPAX_TRY(StreamPage page, store.scan_streams(scan));
    survey.streams.insert(survey.streams.end(), std::move_iterator(page.streams.begin()),
                          std::move_iterator(page.streams.end()));
    scan.cursor = page.next;
    if (page.next == 0) break;
  }
  return survey;
}

Surveyor::Surveyor(Store& store, Found found, Every every)
    : store_(store), found_(std::move(found)), every_(every), thread_([this] { run(); }) {}

void Surveyor::stop() {
  {
    const base::MutexLock lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Surveyor::run() {
  auto next_survey = std::chrono::steady_clock::now() + every_.survey;
  for (;;) {
    {
      base::MutexLock lock(mutex_);
      if (lock.wait_for(wake_, every_.look, [this]() HAPAX_REQUIRES(mutex_) { return stop_; }))
        return;
    }
    look();
    if (std::chrono::steady_clock::now() < next_survey) continue;
    survey();
    next_survey = std::chrono::steady_clock::now() + every_.survey;
  }
}

bool Surveyor::note_answer() {
  ++answers_;
  const base::MutexLock lock(mutex_);
  return !stop_;
}

void Surveyor::look() {
  const Result<Statistics> figures = store_.statistics();
  if (note_answer()) found_.health(figures);
}

// What was cut short is not shown.
void Surveyor::survey() {
  auto survey = take_survey(store_, [this] { return note_answer(); });
  if (note_answer() && survey) found_.survey(*std::move(survey));
}

}  // namespace hapax::serve
