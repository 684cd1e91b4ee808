#include "wire/answer.h"

#include "wire/answer_fields.h"
#include "wire/json_text.h"

namespace hapax::wire {

namespace {

class Fields {
 public:
  template <class Value>
  Fields& add(std::string_view key, const Value& value) {
    object_.add(key, value);
    return *this;
  }
  template <class Tag>
  Fields& add(std::string_view key, Number<Tag> number) {
    return add(key, number.value);
  }
  Fields& raw(std::string_view key, std::string_view json) {
    object_.raw(key, json);
    return *this;
  }
  Fields& time(std::string_view key, Time time) {
    return time == Time::max() ? raw(key, "null") : add(key, to_ms(time));
  }
  Fields& bytes(std::string_view key, std::string_view bytes) {
    object_.bytes(key, bytes);
    return *this;
  }
  template <class List, class Tell>
  Fields& list(std::string_view key, const List& items, const Tell& tell) {
    JsonArray array;
    for (const auto& item : items) array.add(object_of([&](Fields& out) { tell(out, item); }));
    return raw(key, array.text());
  }
  template <class Tell>
  Fields& object(std::string_view key, const Tell& tell) {
    return raw(key, object_of(tell));
  }
  Fields& pairs(std::string_view key,
                const std::vector<std::pair<std::string, std::string>>& pairs) {
    JsonArray array;
    for (const auto& [name, value] : pairs) {
      array.add("[" + json_text(name) + "," + json_text(value) + "]");
    }
    return raw(key, array.text());
  }
  [[nodiscard]] std::string text() const { return object_.text(); }

 private:
  template <class Tell>
  static std::string object_of(const Tell& tell) {
    Fields out;
    tell(out);
    return out.text();
  }

  JsonObject object_;
};

// What is told of it, as one object.
template <class Value>
std::string text_of(const Value& value) {
  Fields out;
  tell(out, value);
  return out.text();
}

}  // namespace

std::string json_of(const Verdict& verdict) {
  Fields out;
  tell_verdict(out, verdict);
  return out.text();
}

std::string json_of(const Record& record) {
  Fields out;
  tell_record(out, record);
  return out.text();
}

std::string json_of(const ClaimStatus& status, Bodies bodies) {
  Fields out;
  tell(out, status, bodies);
  return out.text();
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
