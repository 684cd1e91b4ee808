// The clients' claims, and what they do with records they were handed.
#include <algorithm>

#include "base/format.h"
#include "sim/workload.h"

namespace hapax::sim {

namespace {

constexpr std::string_view kScope = "job";
constexpr std::size_t kHeldMax = 8;

template <class Held>
void put_aside(std::vector<Held>& held, std::size_t at, std::vector<Held>& aside) {
  aside.push_back(held[at]);
  held.erase(held.begin() + static_cast<std::ptrdiff_t>(at));
  if (aside.size() > kHeldMax) aside.erase(aside.begin());
}

}  // namespace

// --- claims --------------------------------------------------------------------------------------

void Workload::add_claim(std::uint32_t index, SimRequest& request) {
  Client& client = clients_[index];
  Random& random = client.random;
  if (!client.claims.empty() && random.chance(1, 2)) {
    const std::size_t at = random.below(client.claims.size());
    const HeldClaim held = client.claims[at];
    if (random.chance(1, 4)) {
      request.ops.emplace_back(
          Renew{kScope, request.keep(held.key), held.fence, Duration{swarm_.lease_ms}});
      return;
    }
    put_aside(client.claims, at, client.spent);
    add_settle(index, request, held);
    return;
  }
  if (!client.spent.empty() && random.chance(1, 8)) {
    add_settle(index, request, client.spent[random.below(client.spent.size())]);
    return;
  }
  const std::string key = base::format("k{}", random.below(swarm_.keys));
  if (random.chance(1, 20)) {
    request.ops.emplace_back(Forget{kScope, request.keep(key), "simulation", "by chance"});
    return;
  }
  if (random.chance(1, 10)) {
    Resolve op{kScope, request.keep(key), static_cast<Resolution>(random.below(3)),
               {},     "simulation",      "by chance"};
    if (op.resolution == Resolution::kCompleted) op.result.body = request.keep(make_payload(index));
    request.ops.emplace_back(op);
    return;
  }
  Claim op;
  op.scope = kScope;
  op.key = request.keep(key);
  const bool other = random.chance(swarm_.conflicts, 100);
  op.content = request.keep((other ? "other-" : "content-") + key);
  op.owner = request.keep(base::format("c{}", index));
  op.lease = Duration{swarm_.lease_ms};
  op.retention = Window{std::chrono::seconds{swarm_.window_seconds}};
  op.tombstone = Window{std::chrono::seconds{swarm_.window_seconds + 2}};
  if (random.chance(1, 4)) op.on_lapse = OnLapse::kUnknown;
  request.ops.emplace_back(op);
}

void Workload::add_settle(std::uint32_t index, SimRequest& request, const HeldClaim& held) {
  Random& random = clients_[index].random;
  Settle op;
  op.scope = kScope;
  op.key = request.keep(held.key);
  op.fence = held.fence;
  const std::uint64_t draw = random.below(10);
  if (draw < 6) {
    op.outcome = Outcome::kCompleted;
    op.result = {200, request.keep("type:" + held.key), request.keep(make_payload(index))};
  } else {
    constexpr Outcome kOthers[] = {Outcome::kFailed, Outcome::kUnknown, Outcome::kReleased,
                                   Outcome::kFailed};
    op.outcome = kOthers[draw - 6];
    op.reason = "by chance";
  }
  // Often the effect is stored together with the word that it happened.
  if (op.outcome == Outcome::kCompleted && random.chance(1, 3)) {
    request.mode = Mode::kAtomic;
    add_append(index, request, kPlain);
  }
  request.ops.emplace_back(op);
}

// --- consumers -----------------------------------------------------------------------------------

void Workload::add_consume(std::uint32_t index, SimRequest& request) {
  Client& client = clients_[index];
  Random& random = client.random;
  if (!client.records.empty() && random.chance(3, 5)) {
    const auto count =
        random.between(1, std::min<std::size_t>(swarm_.ops_max, client.records.size()));
    for (std::uint64_t i = 0; i < count; ++i) add_receipt(index, request);
    // What follows from a record is stored together with its ack.
    if (random.chance(1, 4)) add_append(index, request, kGrouped);
    return;
  }
  if (!client.old_records.empty() && random.chance(1, 8)) {
    const HeldRecord& old = client.old_records[random.below(client.old_records.size())];
    request.ops.emplace_back(
        Ack{streams_[old.stream].name, request.keep(old.consumer), old.receipt});
    return;
  }
  Receive op;
  op.stream = streams_[consumed()[random.below(consumed().size())]].name;
  op.consumer = consumers()[random.below(consumers().size())];
  op.max = static_cast<std::uint32_t>(random.between(1, 4));
  op.lease = Duration{swarm_.lease_ms};
  op.owner = request.keep(base::format("c{}", index));
  request.ops.emplace_back(op);
}

void Workload::add_receipt(std::uint32_t index, SimRequest& request) {
  Client& client = clients_[index];
  if (client.records.empty()) return;
  const std::size_t at = client.random.below(client.records.size());
  const HeldRecord held = client.records[at];
  const std::string_view stream = streams_[held.stream].name;
  const std::string_view consumer = request.keep(held.consumer);
  const std::uint64_t draw = client.random.below(10);
  if (draw == 0) {
    request.ops.emplace_back(Extend{stream, consumer, held.receipt, Duration{swarm_.lease_ms}});
    return;
  }
  put_aside(client.records, at, client.old_records);
  if (draw < 3) {
    const auto delay = static_cast<std::int64_t>(client.random.below(swarm_.lease_ms + 1));
    request.ops.emplace_back(Nack{stream, consumer, held.receipt, Duration{delay}, "by chance"});
  } else {
    request.ops.emplace_back(Ack{stream, consumer, held.receipt});
  }
}

// --- upkeep --------------------------------------------------------------------------------------

void Workload::add_trim(Client& client, SimRequest& request) {
  const std::size_t stream = client.random.below(kOut);
  const std::uint64_t last = last_[stream].value;
  const std::uint64_t before = last > 3 ? client.random.below(last) : 1;
  request.ops.emplace_back(Trim{streams_[stream].name, Sequence{before}});
}

void Workload::add_upkeep(std::uint32_t index, SimRequest& request) {
  Client& client = clients_[index];
  Random& random = client.random;
  const std::size_t stream = consumed()[random.below(consumed().size())];
  const std::string_view name = streams_[stream].name;
  switch (random.below(7)) {
    case 0:
      add_trim(client, request);
      break;
    case 1: {
      StreamSettings settings = streams_[kSliding].settings;
      settings.window = Window{std::chrono::seconds{random.between(1, 5)}};
      request.ops.emplace_back(ConfigureStream{streams_[kSliding].name, settings});
      break;
    }
    case 2: {
      const std::string& consumer = consumers()[random.below(consumers().size())];
      const std::uint64_t to = 1 + random.below(last_[stream].value + 1);
      request.ops.emplace_back(Seek{name, consumer, Sequence{to}});
      break;
    }
    case 3:
      request.ops.emplace_back(
          RetireProducer{streams_[kPlain].name, producer_name(index), "simulation", "by chance"});
      break;
    case 4: {
      const std::string& consumer = consumers()[random.below(consumers().size())];
      request.mode = Mode::kAtomic;
      request.ops.emplace_back(DeleteConsumer{name, consumer});
      request.ops.emplace_back(CreateConsumer{name, consumer, consumer_settings()});
      break;
    }
    default:
      request.ops.emplace_back(
          Redrive{request.keep(std::string(name) + ".dead"), Sequence{1 + random.below(4)},
                  random.below(4) == 0 ? RedriveTo::kAll : RedriveTo::kConsumer});
      break;
  }
}

// --- reactions -----------------------------------------------------------------------------------

struct Workload::React {
  Workload& world;
  Client& client;
  const SimRequest& request;

  [[nodiscard]] std::size_t index_of(std::string_view stream) const {
    for (std::size_t i = 0; i < kStreams; ++i) {
      if (world.streams_[i].name == stream) return i;
    }
    return kStreams;
  }

  void operator()(const Append& op, const Verdict& verdict) const {
    const auto* fresh = std::get_if<Appended>(&verdict);
    const auto* duplicate = std::get_if<Duplicate>(&verdict);
    const std::size_t stream = index_of(op.stream);
    if (fresh != nullptr) world.last_[stream] = std::max(world.last_[stream], fresh->sequence);
    if (const auto* missed = std::get_if<ExpectationFailed>(&verdict)) {
      world.last_[stream] = std::max(world.last_[stream], missed->actual);
    }
    if (!op.producer || op.producer->epoch != client.producer.epoch) return;
    if (fresh != nullptr || duplicate != nullptr) {
      client.producer.next = std::max(client.producer.next, op.producer->sequence.next());
    } else if (!std::holds_alternative<NotApplied>(verdict)) {
      Epoch above = op.producer->epoch;
      if (const auto* fenced = std::get_if<Fenced>(&verdict)) {
        above = std::max(above, Epoch{fenced->current});
      }
      client.producer.epoch = world.next_epoch(request.client, above);
      client.producer.next = ProducerSequence{0};
    }
  }
  void operator()(const OpenProducer&, const Verdict& verdict) const {
    const auto* opened = std::get_if<Opened>(&verdict);
    if (opened == nullptr || opened->epoch <= client.producer.epoch) return;
    client.producer.epoch = opened->epoch;
    client.producer.next = ProducerSequence{0};
  }
  void operator()(const Claim& op, const Verdict& verdict) const {
    if (const auto* claimed = std::get_if<Claimed>(&verdict)) {
      client.claims.push_back({std::string(op.key), std::string(op.content), claimed->fence});
      if (client.claims.size() > kHeldMax) client.claims.erase(client.claims.begin());
    }
  }
  void operator()(const Receive& op, const Verdict& verdict) const {
    const auto* received = std::get_if<Received>(&verdict);
    if (received == nullptr) return;
    for (const Delivery& delivery : received->deliveries) {
      client.records.push_back({index_of(op.stream),
                                std::string(op.consumer),
                                {delivery.record.sequence, delivery.token}});
      if (client.records.size() > kHeldMax) client.records.erase(client.records.begin());
    }
  }
  void operator()(const Begin&, const Verdict& verdict) const {
    const auto* began = std::get_if<Began>(&verdict);
    if (began == nullptr) return;
    TransactionMind& mind = client.transaction;
    if (mind.epoch != Epoch{0} && mind.epoch != began->epoch) mind.past.push_back(mind.epoch);
    mind.epoch = began->epoch;
    mind.open = true;
  }
  void operator()(const End& op, const Verdict&) const {
    if (op.epoch == client.transaction.epoch) client.transaction.open = false;
  }
  void operator()(const Set& op, const Verdict& verdict) const {
    Version& known = world.versions_[std::string(op.name)];
    if (const auto* set = std::get_if<Registered>(&verdict)) known = std::max(known, set->version);
    if (const auto* old = std::get_if<Superseded>(&verdict)) known = std::max(known, old->version);
  }
  void operator()(const Advance& op, const Verdict& verdict) const {
    if (op.source != "source") return;
    if (std::holds_alternative<Done>(verdict)) world.position_ = op.to;
    if (const auto* missed = std::get_if<ExpectationFailed>(&verdict)) {
      world.position_ = missed->actual_position;
    }
  }
  template <class Rest>
  void operator()(const Rest&, const Verdict&) const {}
};

void Workload::react(Client& client, const Attempt& attempt) {
  const SimRequest& request = *attempt.request;
  const std::vector<Verdict>& verdicts = attempt.answer.verdicts;
  const React reaction{*this, client, request};
  for (std::size_t i = 0; i < request.ops.size() && i < verdicts.size(); ++i) {
    std::visit([&](const auto& op) { reaction(op, verdicts[i]); }, request.ops[i]);
  }
  const bool staged = request.transaction.has_value();
  if (staged && !std::holds_alternative<Staged>(verdicts.front())) client.transaction.open = false;
}

// Nobody knows what became of it.
void Workload::lose(Client& client, const Attempt& attempt) {
  const SimRequest& request = *attempt.request;
  if (request.transaction) client.transaction.open = false;
  client.transform = {};
  const auto* append = std::get_if<Append>(&request.ops.front());
  const bool produced = append != nullptr && append->producer && append->id;
  if (produced && append->producer->epoch == client.producer.epoch && client.random.chance(1, 3)) {
    // The next incarnation sends it again, under its own epoch: the message id says that it is one.
    client.producer.again = Item{std::string(*append->id), std::string(append->payload), {}};
    client.producer.epoch = next_epoch(request.client, client.producer.epoch);
    client.producer.next = ProducerSequence{0};
    return;
  }
  if (request.repeatable && client.under_way != nullptr) client.unresolved = client.under_way;
}

void Workload::ended(const Attempt& attempt) {
  const SimRequest& request = *attempt.request;
  const bool setting_up = std::holds_alternative<CreateStream>(request.ops.front());
  if (attempt.ending == Ending::kOk) {
    now_ = std::max(now_, attempt.answer.time);
    if (setting_up && attempt.answer.committed) is_set_up_ = true;
  }
  if (setting_up || request.client >= clients_.size()) return;
  Client& client = clients_[request.client];
  client.busy = false;
  if (attempt.ending == Ending::kOk) {
    react(client, attempt);
    if (request.repeatable) client.answered = client.under_way;
  } else if (attempt.ending == Ending::kUnknown) {
    lose(client, attempt);
  } else {
    // Nothing happened, because the disk is full or the like: it is tried again.
    if (request.transaction) client.transaction.open = false;
    client.transform = {};
    if (request.repeatable && attempt.error->code == Errc::kNoSpace) {
      client.unresolved = client.under_way;
    }
  }
  client.under_way = nullptr;
}

void Workload::crashed() {
  for (Client& client : clients_) {
    client.busy = false;
    client.transform = {};
  }
}

}  // namespace hapax::sim
