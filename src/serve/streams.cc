#include "serve/streams.h"

#include <string>

#include "access/tenant_store.h"

namespace hapax::serve {

namespace {

Status commit_one(Store& store, const Op& op) {
  const Op ops[] = {op};
  HAPAX_TRY(const Answer answer, store.commit({ops}));
  if (const auto* refused = std::get_if<Refused>(&answer.verdicts.at(0))) return refused->error;
  return Ok{};
}

Status make_stream(Store& store, const config::Stream& stream) {
  access::TenantStore own(store, stream.tenant);
  Status made = commit_one(own, CreateStream{stream.stream, stream.settings});
  if (made || made.error().code != Errc::kAlreadyExists) return made;
  return commit_one(own, ConfigureStream{stream.stream, stream.settings});
}

}  // namespace

Status make_streams(Store& store, std::span<const config::Stream> streams) {
  for (const config::Stream& stream : streams) {
    if (Status made = make_stream(store, stream); !made) {
      return std::move(made).error().within("stream '" + stream.stream + "'");
    }
  }
  return Ok{};
}

}  // namespace hapax::serve
