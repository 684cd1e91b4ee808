// A commit as a list of named fields, beside its operations.
#pragma once

#include <optional>
#include <string_view>

#include "wire/op_fields.h"
#include "wire/request.h"

namespace hapax::wire {

struct CommitFields {
  Request& request;
  std::optional<std::string_view> transaction;
  std::optional<Epoch> epoch;
};
template <class V>
void fields(V& v, CommitFields& commit) {
  v.optional("mode", commit.request.mode, "All or nothing, or each on its own");
  v.optional("id", OptionalKeyBytes{commit.request.id},
             About{"Repeating it returns the first answer", allowed::kCommitId});
  v.optional("id_window_s", commit.request.id_window,
             About{"How long the answer is remembered", allowed::kWindow});
  v.optional("transaction", commit.transaction,
             About{"Stage the operations there", allowed::kName});
  v.optional("epoch", commit.epoch, "Of the transaction");
  together(v, {"transaction", "epoch"});
  if (commit.transaction.has_value() != commit.epoch.has_value()) {
    v.refuse("transaction", "transaction and epoch come together");
  } else if (commit.transaction) {
    commit.request.transaction = TransactionRef{*commit.transaction, *commit.epoch};
  }
}

}  // namespace hapax::wire
