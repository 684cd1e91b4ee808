#include "resp/verdict_reply.h"

#include "resp/map_reply.h"
#include "wire/answer_fields.h"

namespace hapax::resp {

void reply_verdict(Replies& replies, const Verdict& verdict, Time when) {
  reply_map(replies, [&](MapReply& map) {
    map.add("verdict", word_of(verdict));
    map.time("time_ms", when);
    std::visit(wire::TellVerdict<MapReply>{map}, verdict);
  });
}

void reply_answer(Replies& replies, const Answer& answer) {
  reply_map(replies, [&](MapReply& map) { wire::tell(map, answer); });
}

void reply_error(Replies& replies, const Error& error) { replies.error("ERR", error.text()); }

}  // namespace hapax::resp
