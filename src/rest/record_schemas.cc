#include "rest/record_schemas.h"

#include <string>
#include <string_view>

namespace hapax::rest {

namespace {

void add_undelivered_schema(wire::JsonObject& out) {
  constexpr std::string_view kRecord =
      R"({"type":"object","properties":{"state":{"enum":["waiting","in_flight","retry","behind",)"
      R"("blocked","unknown","dead_letter"]},"stream":{"type":"string"},)"
      R"("sequence":{"type":"integer"},"came_ms":{"type":"integer"},"id":{"type":"string"},)"
      R"("id_base64":{"type":"string"},"group":{"type":"string"},)"
      R"("group_base64":{"type":"string"},"key":{"type":"string"},)"
      R"("key_base64":{"type":"string"},"endpoint":{"type":"string"},)"
      R"("since_ms":{"type":"integer"},"until_ms":{"type":["integer","null"]},)"
      R"("attempts":{"type":"integer"},"replay":{"type":"integer"},"behind":{"type":"integer"},)"
      R"("behind_blocked":{"type":"boolean"},"error":{"type":"string"}},)"
      R"("required":["state","stream","sequence","came_ms","attempts"],)"
      R"("additionalProperties":false})";
  constexpr std::string_view kCounts =
      R"({"type":"object","properties":{"waiting":{"type":"integer"},)"
      R"("in_flight":{"type":"integer"},"retry":{"type":"integer"},"behind":{"type":"integer"},)"
      R"("blocked":{"type":"integer"},"unknown":{"type":"integer"},)"
      R"("dead_letter":{"type":"integer"}},"required":["waiting","in_flight","retry","behind",)"
      R"("blocked","unknown","dead_letter"],"additionalProperties":false})";
  out.raw("Undelivered",
          R"({"type":"object","properties":{"undelivered":{"type":"array","items":)" +
              std::string(kRecord) + R"(},"counts":)" + std::string(kCounts) +
              R"(,"next":{"type":"string"},"elsewhere":{"type":"string"}},)"
              R"("additionalProperties":false})");
}

void add_dead_schemas(wire::JsonObject& out) {
  constexpr std::string_view kRest =
      R"("last":{"type":"integer"},"unjudged":{"type":"integer"},)"
      R"("why_unjudged":{"type":"string"},"next":{"type":"integer"},)"
      R"("elsewhere":{"type":"string"},"more_in_database":{"type":"boolean"}},)";
  out.raw("DeadLetters",
          R"({"type":"object","properties":{"stream":{"type":"string"},"dead":{"type":"array",)"
          R"("items":{"type":"object","properties":{"record":{"type":"object"},)"
          R"("endpoint":{"type":"string"},"status":{"type":"integer"}},"required":["record"],)"
          R"("additionalProperties":false}},"database":{"type":"array","items":)"
          R"({"type":"object","properties":{"id":{"type":"string"},"type":{"type":"string"},)"
          R"("group":{"type":"string"},"died_ms":{"type":"integer"},)"
          R"("attempts":{"type":"integer"},"reason":{"type":"string"}},)"
          R"("required":["id","type","died_ms","attempts","reason"],)"
          R"("additionalProperties":false}},)" +
              std::string(kRest) +
              R"("required":["stream","dead","last"],"additionalProperties":false})");
  out.raw("DeadReplayed",
          R"({"type":"object","properties":{"stream":{"type":"string"},)"
          R"("matched":{"type":"integer"},"replayed":{"type":"integer"},)"
          R"("replayed_before":{"type":"integer"},"gone":{"type":"integer"},)"
          R"("refused":{"type":"array","items":{"type":"object","properties":{)"
          R"("sequence":{"type":"integer"},"id":{"type":"string"},)"
          R"("reason":{"type":"string"}},"required":["reason"],)"
          R"("additionalProperties":false}},)" +
              std::string(kRest) +
              R"("required":["stream","matched","last"],"additionalProperties":false})");
  out.raw("DeadDropped",
          R"({"type":"object","properties":{"stream":{"type":"string"},)"
          R"("dropped_through":{"type":"integer"}},"required":["stream","dropped_through"],)"
          R"("additionalProperties":false})");
}

void add_replay_schema(wire::JsonObject& out) {
  out.raw("Replay",
          R"({"type":"object","properties":{"id":{"type":"string"},"replayed":{"type":"integer"},)"
          R"("repeated":{"type":"integer"},"gone":{"type":"integer"},)"
          R"("gone_here":{"type":"array","items":{"type":"object","properties":{)"
          R"("key":{"type":"string"},"key_base64":{"type":"string"},)"
          R"("sequence":{"type":"integer"}},"required":["sequence"],)"
          R"("additionalProperties":false}},"done":{"type":"boolean"},)"
          R"("next":{"type":"integer"}},"required":["replayed","repeated","gone","gone_here",)"
          R"("done"],"additionalProperties":false})");
}

}  // namespace

void add_record_schemas(wire::JsonObject& out) {
  add_undelivered_schema(out);
  add_dead_schemas(out);
  add_replay_schema(out);
}

}  // namespace hapax::rest
