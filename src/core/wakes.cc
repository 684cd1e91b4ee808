#include "core/wakes.h"

namespace hapax::core {

namespace {

Wake wake_consumer(const State& state, const Consumer& consumer) {
  return StreamWake{state.stream(consumer.stream).name, consumer.name};
}

// The next one of its group may be handed out, or another record has its place.
bool ack_gives(const Consumer& consumer, Sequence sequence) {
  if (consumer.in_flight >= consumer.settings.in_flight_max) return true;
  // Then the next record is not looked at while its group is busy.
  if (consumer.parked.size() >= limits::kParkedPerConsumerMax) return true;
  const auto found = consumer.pending.find(sequence);
  if (found == consumer.pending.end() || found->second.group == 0) return false;
  const GroupHash group = found->second.group;
  const auto next = consumer.parked.lower_bound({group, Sequence{0}});
  return next != consumer.parked.end() && next->first == group;
}

// A kind of fact that is not named here wakes whoever waits for its stream, consumer or claim: one
// look too many is harmless, one too few is not.
struct WakeOf {
  const State& state;

  Wake operator()(const StreamMade& fact) const { return StreamWake{fact.name}; }
  Wake operator()(const StreamConfigured&) const { return NoWake{}; }
  Wake operator()(const IdRenewed&) const { return NoWake{}; }
  Wake operator()(const RunMoved&) const { return NoWake{}; }
  Wake operator()(const ProducerRetired&) const { return NoWake{}; }
  Wake operator()(const ProducerNoted&) const { return NoWake{}; }
  Wake operator()(const ProducerRaised&) const { return NoWake{}; }

  // A lease that is taken or grows gives nothing to others; one that ends sooner does.
  Wake operator()(const ClaimOpened&) const { return NoWake{}; }
  Wake operator()(const ClaimRenewed& fact) const {
    const std::shared_ptr<const OpenClaim>* claim = state.open_claims.find(fact.hash);
    const bool sooner = claim != nullptr && fact.lease_until < (*claim)->lease_until;
    return sooner ? Wake{ClaimWake{fact.hash}} : NoWake{};
  }
  Wake operator()(const CommitAnswered&) const { return NoWake{}; }
  Wake operator()(const ResultMoved&) const { return NoWake{}; }
  Wake operator()(const ResultLost&) const { return NoWake{}; }
  Wake operator()(const RegisterSet&) const { return NoWake{}; }
  Wake operator()(const RegisterExpires&) const { return NoWake{}; }
  Wake operator()(const RegisterGone&) const { return NoWake{}; }

  Wake operator()(const ConsumerMade& fact) const {
    return StreamWake{state.stream(fact.stream).name, fact.name};
  }
  // Whoever waits for it would only make it again.
  Wake operator()(const ConsumerGone&) const { return NoWake{}; }
  // What is taken gives nothing to others, nor does a longer lease. A shorter one does.
  Wake operator()(const HandedOut&) const { return NoWake{}; }
  Wake operator()(const LeaseExtended& fact) const {
    const Consumer& consumer = state.consumers.at(fact.consumer);
    const auto found = consumer.pending.find(fact.sequence);
    const bool sooner = found != consumer.pending.end() && fact.lease_until < found->second.due;
    return sooner ? wake_consumer(state, consumer) : NoWake{};
  }
  Wake operator()(const Acked& fact) const {
    const Consumer& consumer = state.consumers.at(fact.consumer);
    return ack_gives(consumer, fact.sequence) ? wake_consumer(state, consumer) : NoWake{};
  }

  template <class Other>
  Wake operator()(const Other& fact) const {
    if constexpr (requires { ConsumerUid{fact.consumer}; }) {
      return wake_consumer(state, state.consumers.at(fact.consumer));
    } else if constexpr (requires { StreamUid{fact.stream}; }) {
      return StreamWake{state.stream(fact.stream).name};
    } else if constexpr (requires { base::Hash128{fact.hash}; }) {
      return ClaimWake{fact.hash};
    } else {
      return NoWake{};
    }
  }
};

}  // namespace

Wake wake_of(const State& state, const Fact& fact) { return std::visit(WakeOf{state}, fact); }

}  // namespace hapax::core
