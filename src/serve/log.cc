#include "serve/log.h"

#include <algorithm>

#include "base/time_text.h"
#include "wire/json_text.h"

namespace hapax::serve {

namespace {

std::string_view word_of(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
  }
  return "error";
}

// Bare if that cannot be misread, else as JSON text.
std::string text_value(const std::string& value) {
  const auto plain = [](char c) { return c > ' ' && c < 0x7f && c != '"' && c != '='; };
  const bool bare = !value.empty() && std::all_of(value.begin(), value.end(), plain);
  return bare ? value : wire::json_text(value);
}

// What was said by others must not begin a line of its own.
std::string one_line(std::string_view text) {
  std::string line(text);
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = ' ';
  }
  return line;
}

}  // namespace

std::string Log::line(LogLevel level, std::string_view event, Fields fields) {
  const std::string time = base::rfc3339_ms(time_from_ms(clock_.wall_ms()));
  if (format_ == config::LogFormat::kJson) {
    wire::JsonObject object;
    object.add("time", time).add("level", word_of(level)).add("event", event);
    for (const auto& [name, value] : fields) {
      std::visit([&name = name, &object](const auto& one) { object.add(name, one); }, value);
    }
    return object.text() + "\n";
  }
  std::string text = time + " " + std::string(word_of(level)) + " " + one_line(event);
  for (const auto& [name, value] : fields) {
    const auto* words = std::get_if<std::string>(&value);
    text += " " + std::string(name) + "=" +
            (words != nullptr ? text_value(*words) : std::to_string(std::get<std::int64_t>(value)));
  }
  return text + "\n";
}

void Log::write(LogLevel level, std::string_view event, Fields fields) {
  if (!wants(level)) return;
  const std::string text = line(level, event, fields);
  std::fwrite(text.data(), 1, text.size(), to_);
}

void Log::write_often(LogLevel level, std::string_view event, Fields fields) {
  if (!wants(level)) return;
  tell_counted();
  {
    const base::MutexLock lock(mutex_);
    auto found = often_.find(event);
    if (found == often_.end()) {
      found = often_.emplace(event, Often{level, clock_.steady_ms()}).first;
    }
    if (++found->second.count > kOftenMax) return;
  }
  write(level, event, fields);
}

void Log::tell_counted(Spans spans) {
  const std::int64_t span_ms = std::chrono::milliseconds(kOftenSpan).count();
  const std::int64_t now_ms = clock_.steady_ms();
  const base::MutexLock lock(mutex_);
  std::erase_if(often_, [&](const auto& one) {
    const auto& [event, often] = one;
    if (spans == Spans::kOver && now_ms - often.began_ms < span_ms) return false;
    if (often.count > kOftenMax) {
      write(often.level, event, {{"more", static_cast<std::int64_t>(often.count - kOftenMax)}});
    }
    return true;
  });
}

}  // namespace hapax::serve
