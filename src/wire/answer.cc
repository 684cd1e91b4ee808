#include "wire/answer.h"

#include <utility>

#include "wire/answer_fields.h"
#include "wire/json_text.h"

namespace hapax::wire {

namespace {

// What is told of it, as one object.
template <class Value>
std::string text_of(const Value& value) {
  JsonObject out;
  tell(out, value);
  return std::move(out).text();
}

}  // namespace

std::string json_of(const Verdict& verdict) {
  JsonObject out;
  tell_verdict(out, verdict);
  return std::move(out).text();
}

std::string json_of(const Record& record) {
  JsonObject out;
  tell_record(out, record);
  return std::move(out).text();
}

std::string json_of(const ClaimStatus& status, Bodies bodies) {
  JsonObject out;
  tell(out, status, bodies);
  return std::move(out).text();
}

std::string json_of(const Answer& answer) { return text_of(answer); }
std::string json_of(const Records& records) { return text_of(records); }
std::string json_of(const ConsumerStats& stats) { return text_of(stats); }
std::string json_of(const StreamStats& stats) { return text_of(stats); }
std::string json_of(const Statistics& statistics) { return text_of(statistics); }
std::string json_of(const IdStatus& status) { return text_of(status); }
std::string json_of(const ProducerStatus& status) { return text_of(status); }
std::string json_of(const RegisterValue& value) { return text_of(value); }
std::string json_of(const RegisterPage& page) { return text_of(page); }
std::string json_of(const Position& position) { return text_of(position); }

std::string_view word_of(ClaimState state) {
  switch (state) {
    case ClaimState::kProcessing:
      return "processing";
    case ClaimState::kCompleted:
      return "completed";
    case ClaimState::kFailed:
      return "failed";
    case ClaimState::kUnknown:
      return "unknown";
  }
  return "";
}

}  // namespace hapax::wire
