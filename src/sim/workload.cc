#include "sim/workload.h"

#include <algorithm>
#include <array>

#include "base/filled.h"
#include "base/format.h"
#include "base/mutant.h"
#include "sim/key_values.h"

namespace hapax::sim {

namespace {

StreamSettings with_window(std::uint32_t seconds) {
  StreamSettings settings;
  settings.window = Window{std::chrono::seconds{seconds}};
  return settings;
}

Retention plan_retention(std::uint32_t kind) {
  Retention retention;
  if (kind == 0) retention.count = 3;
  if (kind == 1) retention.bytes = 500;
  if (kind == 2) retention.age = Duration{700};
  if (kind == 3) retention.acked_by_all = true;
  return retention;
}

std::vector<StreamPlan> plan_streams(const Swarm& swarm) {
  std::vector<StreamPlan> plans;
  for (const char* name : {"plain", "grouped", "content", "sliding", "kept", "out"}) {
    plans.push_back({name, with_window(swarm.window_seconds)});
  }
  plans[kGrouped].settings.id_scope = IdScope::kGroup;
  plans[kContent].settings.content_ids = true;
  plans[kSliding].settings.window_start = WindowStart::kLastSeen;
  plans[kSliding].settings.quota_bytes = swarm.quota_bytes;
  plans[kKept].settings.retention = plan_retention(swarm.retention);
  plans[kOut].settings.window = Window::forever();
  return plans;
}

}  // namespace

const std::vector<std::size_t>& Workload::consumed() {
  static const std::vector<std::size_t> kStreams{kPlain, kGrouped, kKept};
  return kStreams;
}

const std::vector<std::string>& Workload::consumers() {
  static const std::vector<std::string> kNames{"v", "w"};
  return kNames;
}

Workload::Workload(const Swarm& swarm, const Random& random)
    : swarm_(swarm),
      random_(random.split("clients")),
      streams_(plan_streams(swarm)),
      clients_(swarm.clients),
      items_(kStreams),
      last_(kStreams) {
  for (std::uint32_t index = 0; index < clients_.size(); ++index) {
    clients_[index].random = random.split("client").split(index);
    clients_[index].producer.epoch = next_epoch(index, Epoch{0});
  }
}

SharedSimRequest Workload::blank(std::uint32_t client) {
  auto request = std::make_shared<SimRequest>();
  request->number = ++requests_;
  request->client = client;
  return request;
}

SharedSimRequest Workload::set_up() {
  SharedSimRequest request = blank(0);
  for (const StreamPlan& plan : streams_) {
    request->ops.emplace_back(CreateStream{plan.name, plan.settings});
  }
  for (const std::size_t stream : consumed()) {
    for (const std::string& consumer : consumers()) {
      request->ops.emplace_back(
          CreateConsumer{streams_[stream].name, consumer, consumer_settings()});
    }
  }
  return request;
}

ConsumerSettings Workload::consumer_settings() const {
  ConsumerSettings settings;
  settings.attempts_max = swarm_.attempts_max;
  settings.in_flight_max = swarm_.in_flight_max;
  if (swarm_.blocks) settings.last_attempt = LastAttempt::kBlock;
  return settings;
}

std::optional<std::uint32_t> Workload::idle_client() {
  const auto first = static_cast<std::uint32_t>(random_.below(clients_.size()));
  for (std::uint32_t i = 0; i < clients_.size(); ++i) {
    const auto index = static_cast<std::uint32_t>((first + i) % clients_.size());
    if (!clients_[index].busy) return index;
  }
  return std::nullopt;
}

void Workload::sent(const SimRequest& request) {
  if (request.client < clients_.size()) clients_[request.client].busy = true;
}

SharedSimRequest Workload::take_unresolved(std::uint32_t client) {
  return std::exchange(clients_[client].unresolved, nullptr);
}

// The same once more: because nobody knows what became of it, or to see whether it is recognised.
SharedSimRequest Workload::again(Client& client) {
  if (client.unresolved != nullptr && client.random.chance(4, 5)) {
    return std::exchange(client.unresolved, nullptr);
  }
  client.unresolved = nullptr;
  const bool repeats = client.answered != nullptr && client.random.chance(1, 12);
  return repeats ? client.answered : nullptr;
}

Workload::Wish Workload::next(std::uint32_t index) {
  Client& client = clients_[index];
  if (SharedSimRequest request = again(client)) {
    client.under_way = request;
    return {request, false};
  }
  std::uint32_t total = 0;
  for (const std::uint32_t weight : swarm_.work) total += weight;
  auto draw = static_cast<std::uint32_t>(client.random.below(total));
  std::size_t kind = 0;
  while (draw >= swarm_.work[kind]) draw -= swarm_.work[kind++];
  const auto work = static_cast<WorkKind>(kind);
  if (work == WorkKind::kTransform && !client.transform.look) return {nullptr, true};
  client.under_way = compose(index, work);
  return {client.under_way, false};
}

SharedSimRequest Workload::compose(std::uint32_t index, WorkKind work) {
  Client& client = clients_[index];
  SharedSimRequest request = blank(index);
  request->mode = client.random.chance(swarm_.atomic, 100) ? Mode::kAtomic : Mode::kEach;
  switch (work) {
    case WorkKind::kAppend: {
      const std::size_t stream = client.random.below(kOut);
      const auto count = client.random.between(1, swarm_.ops_max);
      for (std::uint64_t i = 0; i < count; ++i) add_append(index, *request, stream);
      break;
    }
    case WorkKind::kProducer:
      add_producer(index, *request);
      break;
    case WorkKind::kClaim:
      add_claim(index, *request);
      break;
    case WorkKind::kConsume:
      add_consume(index, *request);
      break;
    case WorkKind::kTransaction:
      add_transaction(index, *request);
      break;
    case WorkKind::kRegister:
      if (client.random.chance(2, 3)) {
        const std::string_view value = request->keep(make_payload(index));
        add_key_value(*request, client.random, {value, swarm_.lease_ms, wall_});
      } else {
        add_register(index, *request);
      }
      break;
    case WorkKind::kTransform:
      add_transform(index, *request);
      break;
    case WorkKind::kUpkeep:
      add_upkeep(index, *request);
      break;
  }
  finish(client, *request);
  return request;
}

// A commit id makes anything repeatable. An append without any identity is not.
void Workload::finish(Client& client, SimRequest& request) {
  const bool ends = request.ops.size() == 1 && std::holds_alternative<End>(request.ops.front());
  const bool plain = !request.transaction && !ends;
  if (plain && client.random.chance(swarm_.commit_ids, 100)) {
    request.id = request.keep(base::format("commit-{}", request.number));
    if (client.random.chance(1, 4)) {
      request.id_window = Window{std::chrono::seconds{swarm_.window_seconds}};
    }
    return;
  }
  for (const Op& op : request.ops) {
    const auto* append = std::get_if<Append>(&op);
    if (append == nullptr || append->id || append->producer) continue;
    if (append->stream != streams_[kContent].name) request.repeatable = false;
  }
}

std::string Workload::make_payload(std::uint32_t index) {
  Client& client = clients_[index];
  std::string payload = base::format("c{}-{}:", index, client.made++);
  const std::uint64_t size = client.random.below(swarm_.payload_max + 1);
  for (std::uint64_t i = 0; i < size; ++i) payload += static_cast<char>('a' + (size + i) % 26);
  return payload;
}

// --- appends -------------------------------------------------------------------------------------

Workload::Item Workload::pick_item(std::uint32_t index, std::size_t stream) {
  Client& client = clients_[index];
  std::deque<Item>& known = items_[stream];
  if (!known.empty() && client.random.chance(swarm_.duplicates, 100)) {
    Item item = known[client.random.below(known.size())];
    const bool conflict = stream != kContent && client.random.chance(swarm_.conflicts, 100);
    if (conflict) item.payload = make_payload(index);
    return item;
  }
  Item item;
  item.payload = make_payload(index);
  if (stream != kContent) item.id = "id-" + item.payload.substr(0, item.payload.find(':'));
  if (swarm_.groups > 0 && client.random.chance(3, 4)) {
    item.group = base::format("g{}", client.random.below(swarm_.groups));
  }
  known.push_back(item);
  if (known.size() > swarm_.ids) known.pop_front();
  return item;
}

void Workload::add_append(std::uint32_t index, SimRequest& request, std::size_t stream) {
  Client& client = clients_[index];
  const Item item = pick_item(index, stream);
  Append op;
  op.stream = streams_[stream].name;
  op.payload = request.keep(item.payload);
  op.group = base::if_filled(request.keep(item.group));
  op.id = base::if_filled(request.keep(item.id));
  if (client.random.chance(1, 10)) {
    std::vector<Header>& headers = request.headers.emplace_back();
    headers.push_back({"trace", request.keep(base::format("h{}", request.number))});
    op.headers = headers;
  }
  const bool conditional = request.ops.empty() && client.random.chance(1, 10);
  if (conditional) op.expect = ExpectLast{ExpectLast::Of::kStream, last_[stream]};
  const std::uint64_t back = client.random.below(2000ULL * swarm_.window_seconds);
  const bool dated = to_ms(now_) != 0 && client.random.chance(1, 10);
  if (dated) op.first_sent = now_ - Duration{static_cast<std::int64_t>(back)};
  request.ops.emplace_back(op);
}

// --- producers -----------------------------------------------------------------------------------

std::string_view Workload::producer_name(std::uint32_t index) const {
  constexpr std::array<std::string_view, 2> kNames{"p0", "p1"};
  return kNames[index % kNames.size()];
}

// No two clients ever use the same epoch. 0 = the store must be asked for one.
Epoch Workload::next_epoch(std::uint32_t index, Epoch current) const {
  if (swarm_.opens_producers) return Epoch{0};
  const std::uint64_t round = current.value / swarm_.clients + 1;
  return Epoch{round * swarm_.clients + index + 1};
}

void Workload::add_producer(std::uint32_t index, SimRequest& request) {
  Client& client = clients_[index];
  ProducerMind& mind = client.producer;
  if (mind.epoch == Epoch{0} || (swarm_.opens_producers && client.random.chance(1, 8))) {
    request.ops.emplace_back(OpenProducer{streams_[kPlain].name, producer_name(index)});
    return;
  }
  const std::uint64_t count = mind.again ? 1 : client.random.between(1, 3);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::optional<Item> again = std::exchange(mind.again, std::nullopt);
    Item item = again ? *again : Item{{}, make_payload(index), {}};
    const bool named = again || client.random.chance(1, 2);
    if (named && !again) item.id = "pid-" + item.payload.substr(0, item.payload.find(':'));
    Append op;
    op.stream = streams_[kPlain].name;
    op.payload = request.keep(item.payload);
    op.id = base::if_filled(request.keep(item.id));
    op.producer =
        ProducerMark{producer_name(index), mind.epoch, ProducerSequence{mind.next.value + i}};
    request.ops.emplace_back(op);
  }
}

// --- transactions --------------------------------------------------------------------------------

void Workload::add_transaction(std::uint32_t index, SimRequest& request) {
  Client& client = clients_[index];
  TransactionMind& mind = client.transaction;
  const std::string_view name = index % 2 == 0 ? "t0" : "t1";
  request.mode = Mode::kAtomic;
  if (!mind.past.empty() && client.random.chance(1, 6)) {
    const Epoch late = mind.past[client.random.below(mind.past.size())];
    request.ops.emplace_back(End{name, late, Finish::kCommit});
    return;
  }
  if (!mind.open) {
    const auto timeout = client.random.between(200, 4000);
    request.ops.emplace_back(Begin{name, Duration{static_cast<std::int64_t>(timeout)}});
    return;
  }
  if (client.random.chance(2, 5)) {
    const bool commits = client.random.chance(3, 4);
    request.ops.emplace_back(End{name, mind.epoch, commits ? Finish::kCommit : Finish::kAbort});
    return;
  }
  const auto count = client.random.between(1, swarm_.ops_max);
  for (std::uint64_t i = 0; i < count; ++i) {
    add_append(index, request, client.random.chance(1, 2) ? kPlain : kGrouped);
  }
  if (!client.records.empty() && client.random.chance(1, 2)) {
    const HeldRecord& held = client.records.back();
    request.ops.emplace_back(
        Ack{streams_[held.stream].name, request.keep(held.consumer), held.receipt});
  }
  if (client.random.chance(1, 4)) add_register(index, request);
  request.transaction = TransactionRef{name, mind.epoch};
  request.repeatable = false;  // Staged twice it would happen twice.
}

// --- registers and positions -------------------------------------------------------------------

void Workload::add_register(std::uint32_t index, SimRequest& request) {
  Client& client = clients_[index];
  if (client.random.chance(1, 3)) {
    Advance op;
    op.source = "source";
    op.expected = request.keep(position_);
    op.to = request.keep(base::format("at-{}", request.number));
    op.epoch = Epoch{client.random.chance(1, 8) ? 1U : 2 + request.number / 50};
    request.ops.emplace_back(op);
    return;
  }
  Set op;
  const bool versioned = client.random.chance(1, 2);
  op.name = versioned ? "versioned" : "latest";
  op.mode = versioned ? SetMode::kVersion : SetMode::kLastWriter;
  op.value = request.keep(make_payload(index));
  if (versioned) op.expected = versions_["versioned"];
  request.ops.emplace_back(op);
}

// Consume, transform, produce: the effect and the position move in one commit.
void Workload::add_transform(std::uint32_t index, SimRequest& request) {
  Client& client = clients_[index];
  TransformMind& mind = client.transform;
  const TransformLook look = *mind.look;
  request.mode = Mode::kAtomic;
  request.repeatable = false;  // What became of it is looked up.
  if (!look.record) {
    mind.look.reset();
    request.ops.emplace_back(Trim{streams_[kOut].name, Sequence{1}});  // Nothing to do.
    return;
  }
  const bool split = base::mutant(base::Mutant::kCursorNotAtomic);
  if (!split || !mind.appended) {
    Append effect;
    effect.stream = streams_[kOut].name;
    effect.payload = request.keep(base::format("{}{}|{}", kTransformedMark,
                                               look.record->sequence.value, look.record->payload));
    request.ops.emplace_back(effect);
  }
  if (!split || mind.appended) {
    Advance move;
    move.source = kTransformSource;
    move.expected = request.keep(look.position);
    move.to = request.keep(std::to_string(look.record->sequence.value));
    move.epoch = Epoch{1};
    request.ops.emplace_back(move);
  }
  if (split && !mind.appended) {
    mind.appended = true;
  } else {
    mind.look.reset();
    mind.appended = false;
  }
}

void Workload::looked(std::uint32_t client, TransformLook look) {
  clients_[client].transform.look = std::move(look);
  clients_[client].busy = false;
}

}  // namespace hapax::sim
