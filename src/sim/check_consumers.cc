// What the consumers were handed: every record, in order within its group, to one holder at a time,
// and never again after its ack.
//
// An attempt of unknown outcome is put where it ended: whatever was decided before an answer that
// left was answered too.
#include <algorithm>
#include <set>

#include "base/format.h"
#include "sim/checks.h"

namespace hapax::sim {

namespace {

struct Handed {
  bool known = false;  // it was handed out, and somebody heard of it
  Token token;
  std::uint32_t attempt = 0;
  Time lease_until{};
  std::uint64_t order = 0;
  std::optional<Token> acked_with;
  bool may_be_acked = false;
  bool may_be_returned = false;
};

struct ConsumerWitness {
  std::string_view stream;
  std::string_view name;
  std::uint32_t attempts_max = 10;
  std::map<Sequence, Handed> records;
  std::map<std::string, std::set<Sequence>> groups;
  Token newest;
  std::uint64_t doubtful_receive = 0;  // event of the latest one
  std::set<Sequence> overheard;        // handed out by one whose answer came only when repeated
  bool moved = false;                  // by a seek: what was handed out before says nothing
};

struct StreamView {
  std::map<Sequence, std::string_view> payloads;
  std::set<Sequence> copies;                     // redriven
  std::map<Sequence, std::string_view> for_one;  // redriven to the consumer
  Sequence trimmed;
  bool trims_itself = false;

  [[nodiscard]] bool may_miss(Sequence sequence) const {
    return trims_itself || sequence < trimmed;
  }
};

class ConsumerCheck {
 public:
  ConsumerCheck(const std::vector<Effect>& effects, const Contents& contents)
      : effects_(effects), contents_(contents) {}

  Judgement run() {
    gather_streams();
    for (const Effect& effect : effects_) {
      if (!effect.applied) continue;
      if (effect.repeated()) {
        overhear(effect);
        continue;
      }
      Judgement found = std::visit([&](const auto& op) { return judge(effect, op); }, *effect.op);
      if (found) return found;
    }
    if (auto found = check_dead_letters()) return found;
    for (const auto& [key, consumer] : consumers_) {
      if (auto found = check_floor(consumer)) return found;
    }
    return std::nullopt;
  }

 private:
  void gather_streams() {
    for (const auto& [name, records] : contents_.streams) {
      for (const Record& record : records.records) {
        streams_[name].payloads.emplace(record.sequence, record.payload);
        if (!record.lineage) continue;
        streams_[name].copies.insert(record.sequence);
        if (!record.lineage->is_for_one()) continue;
        streams_[name].for_one.emplace(record.sequence, record.lineage->consumer);
      }
    }
    for (const Effect& effect : effects_) {
      if (!effect.applied) continue;
      if (const auto* made = effect.as<CreateStream>()) {
        const Retention& retention = made->settings.retention;
        streams_[std::string(made->stream)].trims_itself =
            retention.count || retention.bytes || retention.age || retention.acked_by_all;
      }
      if (const auto* trim = effect.as<Trim>()) {
        StreamView& stream = streams_[std::string(trim->stream)];
        stream.trimmed = std::max(stream.trimmed, trim->before);
      }
      if (const auto* append = effect.as<Append>()) {
        const auto* fresh = effect.got<Appended>();
        if (fresh == nullptr) continue;
        streams_[std::string(append->stream)].payloads.emplace(fresh->sequence, append->payload);
      }
    }
  }

  template <class Op>
  ConsumerWitness& witness(const Op& op) {
    ConsumerWitness& found = consumers_[{std::string(op.stream), std::string(op.consumer)}];
    found.stream = op.stream;
    found.name = op.consumer;
    return found;
  }

  static Violation broken(std::string_view invariant, const ConsumerWitness& consumer,
                          Sequence sequence, std::string what) {
    return {std::string(invariant),
            base::format("{}/{}/{}", consumer.stream, consumer.name, sequence.value),
            std::move(what)};
  }

  // When it was handed out is not known, only that it was.
  void overhear(const Effect& effect) {
    const auto* op = effect.as<Receive>();
    const auto* received = effect.got<Received>();
    if (op == nullptr || received == nullptr) return;
    for (const Delivery& delivery : received->deliveries) {
      witness(*op).overheard.insert(delivery.record.sequence);
    }
  }

  template <class Rest>
  Judgement judge(const Effect&, const Rest&) {
    return std::nullopt;
  }

  Judgement judge(const Effect&, const CreateConsumer& op) {
    witness(op).attempts_max = op.settings.attempts_max;
    return std::nullopt;
  }

  Judgement judge(const Effect& effect, const Receive& op) {
    ConsumerWitness& consumer = witness(op);
    if (!effect.told()) {
      consumer.doubtful_receive = effect.ended();
      return std::nullopt;
    }
    const auto* received = effect.got<Received>();
    if (received == nullptr) return std::nullopt;
    for (const Delivery& delivery : received->deliveries) {
      if (auto found = judge_delivery(effect, consumer, delivery)) return found;
    }
    return std::nullopt;
  }

  Judgement judge_delivery(const Effect& effect, ConsumerWitness& consumer,
                           const Delivery& delivery) {
    const Sequence sequence = delivery.record.sequence;
    Handed& record = consumer.records[sequence];
    const std::optional<Lineage>& lineage = delivery.record.lineage;
    if (lineage && lineage->is_for_one() && lineage->consumer != consumer.name) {
      return broken("I2", consumer, sequence, "was handed out and is for another consumer");
    }
    if (!consumer.moved) {
      if (auto found = judge_again(effect, consumer, delivery, record)) return found;
      if (auto found = judge_group(consumer, delivery)) return found;
    }
    const StreamView& stream = streams_[std::string(consumer.stream)];
    const auto payload = stream.payloads.find(sequence);
    if (payload != stream.payloads.end() && payload->second != delivery.record.payload) {
      return broken("I7", consumer, sequence, "was handed out with other bytes than are stored");
    }
    consumer.newest = delivery.token;
    record = {true,  delivery.token, delivery.attempt, delivery.lease_until, effect.ended(), {},
              false, false};
    return std::nullopt;
  }

  static Judgement judge_again(const Effect& effect, const ConsumerWitness& consumer,
                               const Delivery& delivery, const Handed& record) {
    const Sequence sequence = delivery.record.sequence;
    if (delivery.token <= consumer.newest) {
      return broken("I11", consumer, sequence, "tokens do not grow");
    }
    if (record.acked_with) return broken("I2", consumer, sequence, "was handed out after its ack");
    if (!record.known) return std::nullopt;
    if (effect.time < record.lease_until && !record.may_be_returned) {
      return broken("I6", consumer, sequence, "was handed out while somebody held it");
    }
    if (delivery.attempt <= record.attempt) {
      return broken("I6", consumer, sequence, "its attempts were not counted");
    }
    return std::nullopt;
  }

  // I6: the records of a group come one at a time and in order.
  Judgement judge_group(ConsumerWitness& consumer, const Delivery& delivery) {
    if (delivery.record.group.empty()) return std::nullopt;
    const StreamView& stream = streams_[std::string(consumer.stream)];
    const Sequence sequence = delivery.record.sequence;
    std::set<Sequence>& group = consumer.groups[delivery.record.group];
    for (const Sequence other : group) {
      if (other == sequence || stream.may_miss(other)) continue;
      const Handed& handed = consumer.records[other];
      if (other > sequence) {
        return broken("I6", consumer, sequence,
                      base::format("comes after {} of the same group", other.value));
      }
      const bool done = handed.acked_with || handed.may_be_acked ||
                        handed.attempt >= consumer.attempts_max ||
                        consumer.doubtful_receive > handed.order;
      if (!done) {
        return broken(
            "I6", consumer, sequence,
            base::format("was handed out while {} of the same group is not done", other.value));
      }
    }
    group.insert(sequence);
    return std::nullopt;
  }

  Judgement judge(const Effect& effect, const Ack& op) {
    ConsumerWitness& consumer = witness(op);
    Handed& record = consumer.records[op.receipt.sequence];
    if (effect.unknown()) {
      record.may_be_acked = true;
      return std::nullopt;
    }
    const bool done = !effect.told() || effect.got<Done>() != nullptr;
    if (!done) return judge_refused_ack(effect, consumer, record, op.receipt);
    if (!consumer.moved && record.known && op.receipt.token < record.token &&
        record.acked_with != op.receipt.token) {
      return broken("I11", consumer, op.receipt.sequence, "an old receipt was accepted");
    }
    if (!record.acked_with) record.acked_with = op.receipt.token;
    return std::nullopt;
  }

  Judgement judge_refused_ack(const Effect& effect, const ConsumerWitness& consumer,
                              const Handed& record, Receipt receipt) {
    if (effect.got<Stale>() == nullptr || consumer.moved || !record.known) return std::nullopt;
    const bool valid = receipt.token == record.token && !record.may_be_returned &&
                       record.attempt < consumer.attempts_max &&
                       consumer.doubtful_receive < record.order;
    if (!valid || streams_[std::string(consumer.stream)].may_miss(receipt.sequence)) {
      return std::nullopt;
    }
    return broken("I11", consumer, receipt.sequence, "the latest receipt was refused");
  }

  Judgement judge(const Effect& effect, const Nack& op) {
    ConsumerWitness& consumer = witness(op);
    Handed& record = consumer.records[op.receipt.sequence];
    const bool old = record.known && op.receipt.token < record.token;
    if (!effect.told()) {
      if (!old) record.may_be_returned = true;
      return std::nullopt;
    }
    if (effect.got<Done>() == nullptr) return std::nullopt;
    if (old && !consumer.moved) {
      return broken("I11", consumer, op.receipt.sequence, "was given back with an old receipt");
    }
    record.may_be_returned = true;
    return std::nullopt;
  }

  Judgement judge(const Effect& effect, const Extend& op) {
    ConsumerWitness& consumer = witness(op);
    Handed& record = consumer.records[op.receipt.sequence];
    const auto* renewed = effect.got<Renewed>();
    if (renewed == nullptr || !record.known) return std::nullopt;
    if (op.receipt.token < record.token && !consumer.moved) {
      return broken("I11", consumer, op.receipt.sequence, "was extended with an old receipt");
    }
    if (op.receipt.token == record.token) record.lease_until = renewed->lease_until;
    return std::nullopt;
  }

  Judgement judge(const Effect& effect, const DeleteConsumer& op) {
    if (effect.told() && effect.got<Done>() == nullptr) return std::nullopt;
    witness(op).moved = true;
    return std::nullopt;
  }

  Judgement judge(const Effect& effect, const Seek& op) {
    if (effect.told() && effect.got<Done>() == nullptr) return std::nullopt;
    witness(op).moved = true;
    return std::nullopt;
  }

  // The attempts since the record was appended or redriven are few enough to be told one by one.
  static bool tells_all_attempts(const Lineage& lineage) {
    const PastAttempt* last = nullptr;
    std::uint32_t told = 0;
    for (const PastAttempt& past : lineage.history) {
      if (past.redrives != lineage.redrives) continue;
      const Time expected = told == 0 ? lineage.first_handed_out : past.handed_out;
      if (past.attempt != ++told || past.handed_out != expected) return false;
      if (past.ended < past.handed_out) return false;
      last = &past;
    }
    return last != nullptr && told == lineage.attempts &&
           last->handed_out == lineage.last_handed_out;
  }

  Judgement check_dead_letters() {
    std::set<std::tuple<std::string, Sequence, std::string>> seen;
    for (const auto& [name, records] : contents_.streams) {
      for (const Record& record : records.records) {
        if (!record.lineage) continue;
        const Lineage& lineage = *record.lineage;
        given_up_.emplace(lineage.stream, lineage.sequence);
        const StreamView& source = streams_[lineage.stream];
        const auto payload = source.payloads.find(lineage.sequence);
        if (payload != source.payloads.end() && payload->second != record.payload) {
          return Violation{"I7", name, "a copy has other bytes than what it was made from"};
        }
        if (lineage.is_dead_letter() && !tells_all_attempts(lineage)) {
          return Violation{"I7", base::format("{}/{}", name, record.sequence.value),
                           "a dead letter does not tell all its attempts"};
        }
        if (lineage.redrives > 0 || !lineage.is_dead_letter()) continue;
        const auto consumer = consumers_.find({lineage.stream, lineage.consumer});
        if (consumer == consumers_.end() || consumer->second.moved) continue;
        if (!seen.emplace(lineage.consumer, lineage.sequence, lineage.stream).second) {
          return Violation{"I2", base::format("{}/{}", name, record.sequence.value),
                           "a record is twice among the dead letters of one consumer"};
        }
        const auto handed = consumer->second.records.find(lineage.sequence);
        if (handed != consumer->second.records.end() && handed->second.acked_with) {
          return broken("I2", consumer->second, lineage.sequence,
                        "was acked and is among the dead letters");
        }
      }
    }
    return std::nullopt;
  }

  // I9: a consumer does not go past what was neither acked nor given up.
  Judgement check_floor(const ConsumerWitness& consumer) {
    const auto stats = contents_.stats.find(consumer.stream);
    if (consumer.moved || stats == contents_.stats.end()) return std::nullopt;
    const StreamView& stream = streams_[std::string(consumer.stream)];
    for (const ConsumerStats& one : stats->second.consumers) {
      if (one.consumer != consumer.name) continue;
      for (Sequence at{1}; at <= one.floor; at = at.next()) {
        const auto for_one = stream.for_one.find(at);
        if (for_one != stream.for_one.end() && for_one->second != consumer.name) continue;
        if (stream.may_miss(at) || given_up_.contains({std::string(consumer.stream), at})) continue;
        const auto found = consumer.records.find(at);
        const bool acked = found != consumer.records.end() &&
                           (found->second.acked_with || found->second.may_be_acked);
        // The lineage of a dead letter names the first record, not the copy that was given up.
        const bool given_up_as_copy = consumer.doubtful_receive > 0 && stream.copies.contains(at);
        const bool exhausted =
            found != consumer.records.end() && found->second.attempt >= consumer.attempts_max;
        if (acked || exhausted || given_up_as_copy || consumer.overheard.contains(at)) continue;
        return broken("I9", consumer, at, "was passed over: neither acked nor given up");
      }
    }
    return std::nullopt;
  }

  const std::vector<Effect>& effects_;
  const Contents& contents_;
  std::map<std::string, StreamView> streams_;
  std::map<std::pair<std::string, std::string>, ConsumerWitness> consumers_;
  std::set<std::pair<std::string, Sequence>> given_up_;
};

}  // namespace

Judgement check_consumers(const std::vector<Effect>& effects, const Contents& contents) {
  return ConsumerCheck(effects, contents).run();
}

}  // namespace hapax::sim
