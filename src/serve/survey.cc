#include "serve/survey.h"

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

Result<Survey> take_survey(Store& store) {
  Survey survey;
  HAPAX_TRY(survey.store, store.statistics());
  HAPAX_TRY(survey.tenants, store.tenants());
  HAPAX_TRY(const std::vector<std::string> names, store.streams());
  survey.streams.reserve(names.size());
  for (const std::string& name : names) {
    Result<StreamStats> stats = store.describe(name);
    if (!stats) continue;  // It was deleted meanwhile.
    stats->stream = name;
    survey.streams.push_back(*std::move(stats));
  }
  return survey;
}

}  // namespace hapax::serve
