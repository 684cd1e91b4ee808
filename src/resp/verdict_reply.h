// Verdicts as replies: a map of the same fields as in JSON (in RESP2 a flat array of names and
// values), and the log time at which it was decided. What an HX command answers is always such a
// map; errors are for commands that could not be understood or carried out at all.
#pragma once

#include <hapax/verdicts.h>

#include "resp/replies.h"

namespace hapax::resp {

void reply_verdict(Replies& replies, const Verdict& verdict, Time when);
// {committed, repeated, time_ms, verdicts}
void reply_answer(Replies& replies, const Answer& answer);
void reply_error(Replies& replies, const Error& error);

}  // namespace hapax::resp
