#include "core/claims.h"
#include "engine/machine.h"

namespace hapax::engine {

Statistics Machine::statistics() const {
  Statistics stats;
  stats.streams = state_->stream_names.size();
  stats.ids = state_->ids.live();
  stats.claims_open = state_->open_claims.size();
  stats.claims_unknown = core::claims_unknown(*state_, decided_at());
  stats.claims_settled = core::claims_settled(*state_);
  stats.registers = state_->registers.size() - state_->tenants.own_registers();
  stats.registers_expiring = state_->registers_end.size() - state_->tenants.own_registers();
  stats.positions = state_->positions.size();
  stats.transactions_open = state_->transactions_open;
  stats.fenced = state_->counters.fenced;
  stats.gaps = state_->gaps;
  stats.records_lost = state_->records_lost;
  stats.results_lost = state_->results_lost;
  stats.memory_bytes = state_->memory_bytes();
  stats.commits = commits_;
  stats.batches = batches_;
  stats.log_time = building_.batch.log_time();
  stats.writes_refused = writes_refused_;
  stats.clock_jump_pending = clock_.jump_pending();
  stats.clock_lag = clock_.lag();
  return stats;
}

}  // namespace hapax::engine
