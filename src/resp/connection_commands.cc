#include "resp/connection_commands.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/words.h"

namespace hapax::resp {

using base::upper;

namespace {

// As Redis has it.
constexpr std::string_view kBadClientName =
    "Client names cannot contain spaces, newlines or special characters.";
bool is_client_name(std::string_view name) {
  return std::all_of(name.begin(), name.end(), [](char c) { return c >= '!' && c <= '~'; });
}

Next ping(Conversation& talk, CommandWords arguments) {
  if (arguments.size() > 2) return wrong_number(talk, "ping");
  if (arguments.size() > 1) {
    talk.replies().bulk(arguments[1]);
  } else {
    talk.replies().simple("PONG");
  }
  return talk.answered();
}

Next echo(Conversation& talk, CommandWords arguments) {
  talk.replies().bulk(arguments[1]);
  return talk.answered();
}

Next quit(Conversation& talk, CommandWords) {
  talk.ok();
  talk.end();
  return Next::kGoOn;
}

// AUTH credential, or AUTH user credential: who it is says the credential, not the user.
Next auth(Conversation& talk, CommandWords arguments) {
  if (arguments.size() > 3) return talk.error("ERR", "syntax error: AUTH [user] token");
  const Status in = talk.who().sign_in(arguments.back());
  return in ? talk.ok() : talk.refuse(in.error());
}

void tell_server(Conversation& talk) {
  Replies& replies = talk.replies();
  replies.map(6);
  replies.bulk("server");
  replies.bulk("hapax");
  replies.bulk("version");
  replies.bulk(talk.version());
  replies.bulk("proto");
  replies.integer(replies.version() == RespVersion::kResp3 ? 3 : 2);
  replies.bulk("mode");
  replies.bulk("standalone");
  replies.bulk("role");
  replies.bulk("master");
  replies.bulk("modules");
  replies.array(0);
}

// HELLO [version [AUTH user secret] [SETNAME name]]
Next hello(Conversation& talk, CommandWords arguments) {
  RespVersion version = talk.replies().version();
  if (arguments.size() > 1) {
    if (arguments[1] != "2" && arguments[1] != "3") {
      return talk.error("NOPROTO", "unsupported protocol version");
    }
    version = arguments[1] == "3" ? RespVersion::kResp3 : RespVersion::kResp2;
  }
  for (std::size_t i = 2; i < arguments.size();) {
    const std::string option = upper(arguments[i]);
    if (option == "AUTH" && i + 2 < arguments.size()) {
      const Status in = talk.who().sign_in(arguments[i + 2]);
      if (!in) return talk.refuse(in.error());
      i += 3;
    } else if (option == "SETNAME" && i + 1 < arguments.size()) {
      if (!is_client_name(arguments[i + 1])) return talk.error("ERR", kBadClientName);
      talk.name_client(arguments[i + 1]);
      i += 2;
    } else {
      return talk.error("ERR", "syntax error in HELLO option '" + option + "'");
    }
  }
  if (talk.who().stranger()) {
    return talk.error("NOAUTH", "HELLO must be called with AUTH user secret here");
  }
  talk.replies().use(version);
  tell_server(talk);
  return talk.answered();
}

Next select(Conversation& talk, CommandWords arguments) {
  if (arguments[1] == "0") return talk.ok();
  return talk.error("ERR", "DB index is out of range: there is only 0");
}

// Client libraries introduce themselves; what they say is of no use here.
Next client(Conversation& talk, CommandWords arguments) {
  const std::string what = upper(arguments[1]);
  if (what == "SETNAME") {
    if (arguments.size() != 3) return wrong_number(talk, "client|setname");
    if (!is_client_name(arguments[2])) return talk.error("ERR", kBadClientName);
    talk.name_client(arguments[2]);
    return talk.ok();
  }
  if (what == "SETINFO" || what == "NO-EVICT" || what == "NO-TOUCH") return talk.ok();
  if (what == "GETNAME") {
    talk.client_name().empty() ? talk.replies().null() : talk.replies().bulk(talk.client_name());
  } else if (what == "ID") {
    talk.replies().integer(1);
  } else {
    return talk.error("ERR", "CLIENT knows SETNAME, GETNAME, SETINFO, ID, NO-EVICT and NO-TOUCH");
  }
  return talk.answered();
}

Next reset(Conversation& talk, CommandWords) {
  talk.multi().reset();
  talk.who().sign_out();
  talk.replies().use(RespVersion::kResp2);
  talk.replies().simple("RESET");
  return talk.answered();
}

}  // namespace

std::span<const Command> connection_commands() {
  static const std::array kCommands{
      Command{"PING", -1, "connection", "[message]", "Answers PONG, or its argument", ping, nullptr,
              InMulti::kWaits},
      Command{"ECHO", 2, "connection", "message", "Answers its argument", echo, nullptr,
              InMulti::kWaits},
      Command{"AUTH", -2, "connection", "[user] token", "Signs in with a token", auth, nullptr,
              InMulti::kNever},
      Command{"HELLO", -1, "connection", "[version] [AUTH user token] [SETNAME name]",
              "Chooses the protocol version", hello, nullptr, InMulti::kNever},
      Command{"QUIT", -1, "connection", "", "Closes the connection", quit, nullptr,
              InMulti::kAtOnce},
      Command{"RESET", 1, "connection", "", "As if newly connected", reset, nullptr,
              InMulti::kAtOnce},
      Command{"SELECT", 2, "connection", "0", "Only 0", select, nullptr, InMulti::kWaits},
      Command{"CLIENT", -2, "connection", "subcommand [argument…]", "Name of the connection",
              client, nullptr, InMulti::kWaits},
  };
  return kCommands;
}

}  // namespace hapax::resp
