// The simulated clients: what they ask for, and how they react to answers and to silence. Each has
// one commit under way at a time. They behave as good clients must: a commit of unknown outcome is
// sent again as it was, or looked up; every payload says who made it.
//
// Draws only from its own Random and from answers, never from the store.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <hapax/verdicts.h>

#include "sim/history.h"
#include "sim/random.h"
#include "sim/request.h"
#include "sim/swarm.h"

namespace hapax::sim {

struct StreamPlan {
  std::string name;
  StreamSettings settings;
};
enum StreamIndex : std::size_t { kPlain, kGrouped, kContent, kSliding, kKept, kOut, kStreams };

// What a client that transforms records must look up before it goes on.
inline constexpr std::string_view kTransformSource = "transformed";
inline constexpr std::string_view kTransformedMark = "T|";
struct TransformLook {
  std::string position;
  std::optional<Record> record;  // the next one behind the position
};

class Workload {
 public:
  Workload(const Swarm& swarm, const Random& random);

  [[nodiscard]] SharedSimRequest set_up();
  [[nodiscard]] bool is_set_up() const { return is_set_up_; }

  // A client that has nothing under way.
  [[nodiscard]] std::optional<std::uint32_t> idle_client();
  struct Wish {
    SharedSimRequest request;  // null: a position must be looked up first
    bool look = false;
  };
  [[nodiscard]] Wish next(std::uint32_t client);
  void see_wall(Time wall) { wall_ = wall; }
  void sent(const SimRequest& request);
  void looked(std::uint32_t client, TransformLook look);
  // Of every attempt, when it ended.
  void ended(const Attempt& attempt);
  void crashed();  // Looks that were under way are not answered.

  // Requests whose outcome is unknown and that were not sent again yet.
  [[nodiscard]] SharedSimRequest take_unresolved(std::uint32_t client);
  [[nodiscard]] std::uint32_t clients() const { return swarm_.clients; }
  [[nodiscard]] const std::vector<StreamPlan>& streams() const { return streams_; }
  [[nodiscard]] static const std::vector<std::size_t>& consumed();
  [[nodiscard]] static const std::vector<std::string>& consumers();
  // One that belongs to no client, for who drives the store by hand.
  [[nodiscard]] SharedSimRequest blank(std::uint32_t client);

 private:
  struct Item {
    std::string id;
    std::string payload;
    std::string group;
  };
  struct HeldClaim {
    std::string key;
    std::string content;
    Fence fence;
  };
  struct HeldRecord {
    std::size_t stream = 0;
    std::string consumer;
    Receipt receipt;
  };
  struct ProducerMind {
    Epoch epoch;
    ProducerSequence next;
    std::optional<Item> again;  // to be sent under a new epoch
  };
  struct TransactionMind {
    Epoch epoch;
    bool open = false;
    std::vector<Epoch> past;
  };
  struct TransformMind {
    std::optional<TransformLook> look;
    bool appended = false;  // the effect is there, the position is not (a planted bug only)
  };
  struct Client {
    Random random{0};
    bool busy = false;
    SharedSimRequest under_way;
    SharedSimRequest unresolved;
    SharedSimRequest answered;
    std::uint64_t made = 0;
    std::vector<HeldClaim> claims;
    std::vector<HeldClaim> spent;
    std::vector<HeldRecord> records;
    std::vector<HeldRecord> old_records;
    ProducerMind producer;
    TransactionMind transaction;
    TransformMind transform;
  };

  [[nodiscard]] SharedSimRequest again(Client& client);
  [[nodiscard]] SharedSimRequest compose(std::uint32_t index, WorkKind work);
  void finish(Client& client, SimRequest& request);
  [[nodiscard]] std::string make_payload(std::uint32_t index);

  void add_append(std::uint32_t index, SimRequest& request, std::size_t stream);
  [[nodiscard]] Item pick_item(std::uint32_t index, std::size_t stream);
  void add_producer(std::uint32_t index, SimRequest& request);
  void add_transaction(std::uint32_t index, SimRequest& request);
  void add_register(std::uint32_t index, SimRequest& request);
  void add_transform(std::uint32_t index, SimRequest& request);
  void add_claim(std::uint32_t index, SimRequest& request);
  void add_settle(std::uint32_t index, SimRequest& request, const HeldClaim& held);
  void add_consume(std::uint32_t index, SimRequest& request);
  void add_receipt(std::uint32_t index, SimRequest& request);
  void add_upkeep(std::uint32_t index, SimRequest& request);
  void add_trim(Client& client, SimRequest& request);
  [[nodiscard]] ConsumerSettings consumer_settings() const;

  struct React;
  void react(Client& client, const Attempt& attempt);
  void lose(Client& client, const Attempt& attempt);
  [[nodiscard]] Epoch next_epoch(std::uint32_t index, Epoch current) const;
  [[nodiscard]] std::string_view producer_name(std::uint32_t index) const;

  const Swarm swarm_;
  Random random_;
  std::vector<StreamPlan> streams_;
  std::vector<Client> clients_;
  std::vector<std::deque<Item>> items_;      // by stream, the latest
  std::vector<Sequence> last_;               // by stream, the highest seen
  std::map<std::string, Version> versions_;  // of registers
  std::string position_;                     // of kSource
  std::uint64_t requests_ = 0;
  Time now_{};   // the latest log time in an answer
  Time wall_{};  // what the clients' clocks show
  bool is_set_up_ = false;
};

}  // namespace hapax::sim
