#include "resp/key_value.h"

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "base/whole_number.h"
#include "base/words.h"
#include "resp/conversation.h"
#include "resp/expiry.h"
#include "resp/keyspace.h"

namespace hapax::resp {

using base::upper;

namespace {

using Verdicts = std::span<const Verdict>;

constexpr std::string_view kSyntax = "syntax error";

// --- replies -------------------------------------------------------------------------------------

// What became of the register; null: it was refused, and that is said.
const Held* held_in(Replies& replies, Verdicts verdicts) {
  if (const auto* refused = std::get_if<Refused>(&verdicts.front())) {
    reply_error(replies, refused->error);
    return nullptr;
  }
  return &std::get<Held>(verdicts.front());
}

void say_value(Replies& replies, Verdicts verdicts, Time) {
  const Held* held = held_in(replies, verdicts);
  if (held == nullptr) return;
  held->value ? replies.bulk(*held->value) : replies.null();
}
void say_ok_or_null(Replies& replies, Verdicts verdicts, Time) {
  const Held* held = held_in(replies, verdicts);
  if (held == nullptr) return;
  held->applied ? replies.ok() : replies.null();
}
void say_length(Replies& replies, Verdicts verdicts, Time) {
  const Held* held = held_in(replies, verdicts);
  if (held != nullptr) replies.integer(static_cast<std::int64_t>(held->value.value_or("").size()));
}
void say_type(Replies& replies, Verdicts verdicts, Time) {
  const Held* held = held_in(replies, verdicts);
  if (held != nullptr) replies.simple(held->applied ? "string" : "none");
}
// To how many it applied.
void say_count(Replies& replies, Verdicts verdicts, Time) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    const Held* held = held_in(replies, verdicts.subspan(i));
    if (held == nullptr) return;
    count += held->applied ? 1 : 0;
  }
  replies.integer(count);
}
void say_number(Replies& replies, Verdicts verdicts, Time) {
  const auto* refused = std::get_if<Refused>(&verdicts.front());
  if (refused != nullptr && refused->error.code == Errc::kPreconditionFailed) {
    return replies.error("ERR", refused->error.detail);  // in Redis' words
  }
  if (const Held* held = held_in(replies, verdicts)) replies.integer(held->number.value_or(0));
}

// -2: there is none; -1: it stays.
std::optional<std::int64_t> no_end(const Held& held) {
  if (!held.applied) return -2;
  if (held.expires_at == Time::max()) return -1;
  return std::nullopt;
}
std::int64_t to_seconds(std::int64_t ms) { return (ms + 500) / 1000; }  // rounded as Redis does

void say_ttl(Replies& replies, Verdicts verdicts, Time) {
  const Held* held = held_in(replies, verdicts);
  if (held == nullptr) return;
  replies.integer(no_end(*held).value_or(to_seconds(held->expires_in.count())));
}
void say_pttl(Replies& replies, Verdicts verdicts, Time) {
  const Held* held = held_in(replies, verdicts);
  if (held == nullptr) return;
  replies.integer(no_end(*held).value_or(held->expires_in.count()));
}
void say_end(Replies& replies, Verdicts verdicts, Time) {
  const Held* held = held_in(replies, verdicts);
  if (held == nullptr) return;
  replies.integer(no_end(*held).value_or(to_seconds(to_ms(held->expires_at))));
}
void say_end_ms(Replies& replies, Verdicts verdicts, Time) {
  const Held* held = held_in(replies, verdicts);
  if (held == nullptr) return;
  replies.integer(no_end(*held).value_or(to_ms(held->expires_at)));
}

// --- SET -----------------------------------------------------------------------------------------

struct SetOptions {
  SetMode mode = SetMode::kAlways;
  bool get = false;
  bool keep = false;
  std::optional<ExpiryUnit> unit;
  std::string_view amount;
};

// False: they do not go together, or one is not known.
bool read_word(const std::string& word, SetOptions& options) {
  if (word == "NX" || word == "XX") {
    const SetMode mode = word == "NX" ? SetMode::kAbsent : SetMode::kPresent;
    if (options.mode != SetMode::kAlways && options.mode != mode) return false;
    options.mode = mode;
  } else if (word == "GET") {
    options.get = true;
  } else if (word == "KEEPTTL") {
    if (options.unit) return false;
    options.keep = true;
  } else {
    return false;
  }
  return true;
}

bool read_options(CommandWords arguments, SetOptions& options) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string word = upper(arguments[i]);
    const std::optional<ExpiryUnit> unit = expiry_unit(word);
    if (!unit) {
      if (!read_word(word, options)) return false;
      continue;
    }
    const bool alone = !options.keep && (!options.unit || *options.unit == *unit);
    if (!alone || i + 1 == arguments.size()) return false;
    options.unit = unit;
    options.amount = arguments[++i];
  }
  return true;
}

}  // namespace

struct KeyValue {
  // Answers the error that Redis has for it.
  static Next wrong(Conversation& talk, std::string_view text) { return talk.error("ERR", text); }

  static Next set_always(Conversation& talk, std::string_view name, std::string_view value,
                         const Expiry& expiry, Say say) {
    Set op;
    op.name = talk.keep(name);
    op.value = talk.keep(value);
    op.mode = SetMode::kAlways;
    op.expiry = expiry;
    op.tell_value = say == say_value;
    return talk.carry_out(op, say);
  }

  static Next set(Conversation& talk, CommandWords arguments) {
    SetOptions options;
    if (!read_options(arguments.subspan(3), options)) return wrong(talk, kSyntax);
    Set op;
    if (options.keep) op.expiry.kind = Expiry::Kind::kKeep;
    if (options.unit) {
      const auto expiry = expiry_from_now_on(options.amount, *options.unit, "set");
      if (const auto* problem = std::get_if<std::string>(&expiry)) return wrong(talk, *problem);
      op.expiry = std::get<Expiry>(expiry);
    }
    op.name = talk.keep(arguments[1]);
    op.value = talk.keep(arguments[2]);
    op.mode = options.mode;
    op.tell_value = options.get;
    return talk.carry_out(op, options.get ? say_value : say_ok_or_null);
  }
  static Next setnx(Conversation& talk, CommandWords arguments) {
    Set op;
    op.name = talk.keep(arguments[1]);
    op.value = talk.keep(arguments[2]);
    op.mode = SetMode::kAbsent;
    return talk.carry_out(op, say_count);
  }
  static Next set_for(Conversation& talk, CommandWords arguments, ExpiryUnit unit,
                      std::string_view name) {
    const auto expiry = expiry_from_now_on(arguments[2], unit, name);
    if (const auto* problem = std::get_if<std::string>(&expiry)) return wrong(talk, *problem);
    return set_always(talk, arguments[1], arguments[3], std::get<Expiry>(expiry), say_ok_or_null);
  }
  static Next setex(Conversation& talk, CommandWords arguments) {
    return set_for(talk, arguments, ExpiryUnit::kSeconds, "setex");
  }
  static Next psetex(Conversation& talk, CommandWords arguments) {
    return set_for(talk, arguments, ExpiryUnit::kMilliseconds, "psetex");
  }
  static Next getset(Conversation& talk, CommandWords arguments) {
    return set_always(talk, arguments[1], arguments[2], {}, say_value);
  }

  // --- looking

  static Next look(Conversation& talk, std::string_view name, bool tells, Say say) {
    Get op;
    op.name = talk.keep(name);
    op.tell_value = tells;
    return talk.carry_out(op, say);
  }
  static Next get(Conversation& talk, CommandWords arguments) {
    return look(talk, arguments[1], true, say_value);
  }
  static Next strlen(Conversation& talk, CommandWords arguments) {
    return look(talk, arguments[1], true, say_length);
  }
  static Next type(Conversation& talk, CommandWords arguments) {
    return look(talk, arguments[1], false, say_type);
  }
  static Next ttl(Conversation& talk, CommandWords arguments) {
    return look(talk, arguments[1], false, say_ttl);
  }
  static Next pttl(Conversation& talk, CommandWords arguments) {
    return look(talk, arguments[1], false, say_pttl);
  }
  static Next expiretime(Conversation& talk, CommandWords arguments) {
    return look(talk, arguments[1], false, say_end);
  }
  static Next pexpiretime(Conversation& talk, CommandWords arguments) {
    return look(talk, arguments[1], false, say_end_ms);
  }
  static Next exists(Conversation& talk, CommandWords arguments) {
    return talk.carry_out_each(arguments.subspan(1), say_count, [](std::string_view name) {
      return Get{name, false};
    });
  }

  // --- removing

  static Next getdel(Conversation& talk, CommandWords arguments) {
    return talk.carry_out(Unset{talk.keep(arguments[1]), true}, say_value);
  }
  static Next del(Conversation& talk, CommandWords arguments) {
    return talk.carry_out_each(arguments.subspan(1), say_count, [](std::string_view name) {
      return Unset{name, false};
    });
  }
  static Next persist(Conversation& talk, CommandWords arguments) {
    return talk.carry_out(Expire{talk.keep(arguments[1]), {}, {}}, say_count);
  }
  static Next expire_with(Conversation& talk, CommandWords arguments, ExpiryUnit unit,
                          std::string_view name) {
    const auto only_if = read_expire_if(arguments.subspan(3));
    if (const auto* problem = std::get_if<std::string>(&only_if)) return wrong(talk, *problem);
    const auto expiry = expiry_of(arguments[2], unit, name);
    if (const auto* problem = std::get_if<std::string>(&expiry)) return wrong(talk, *problem);
    return talk.carry_out(
        Expire{talk.keep(arguments[1]), std::get<Expiry>(expiry), std::get<ExpireIf>(only_if)},
        say_count);
  }
  static Next expire(Conversation& talk, CommandWords arguments) {
    return expire_with(talk, arguments, ExpiryUnit::kSeconds, "expire");
  }
  static Next pexpire(Conversation& talk, CommandWords arguments) {
    return expire_with(talk, arguments, ExpiryUnit::kMilliseconds, "pexpire");
  }
  static Next expireat(Conversation& talk, CommandWords arguments) {
    return expire_with(talk, arguments, ExpiryUnit::kSecondsSince1970, "expireat");
  }
  static Next pexpireat(Conversation& talk, CommandWords arguments) {
    return expire_with(talk, arguments, ExpiryUnit::kMillisecondsSince1970, "pexpireat");
  }

  // --- counting

  static Next add(Conversation& talk, std::string_view name, std::int64_t by) {
    return talk.carry_out(Add{talk.keep(name), by}, say_number);
  }
  static Next incr(Conversation& talk, CommandWords arguments) {
    return add(talk, arguments[1], 1);
  }
  static Next decr(Conversation& talk, CommandWords arguments) {
    return add(talk, arguments[1], -1);
  }
  static Next incrby(Conversation& talk, CommandWords arguments) {
    const auto by = base::whole_number(arguments[2]);
    if (!by) return wrong(talk, kNotANumber);
    return add(talk, arguments[1], *by);
  }
  static Next decrby(Conversation& talk, CommandWords arguments) {
    const auto by = base::whole_number(arguments[2]);
    if (!by) return wrong(talk, kNotANumber);
    if (*by == std::numeric_limits<std::int64_t>::min()) {
      return wrong(talk, "decrement would overflow");
    }
    return add(talk, arguments[1], -*by);
  }
};

std::span<const Command> key_value_commands() {
  static const std::array kCommands{
      Command{"SET", -3, "string",
              "key value [NX] [XX] [GET] [EX seconds] [PX milliseconds] [EXAT seconds] [PXAT "
              "milliseconds] [KEEPTTL]",
              "Sets a key", KeyValue::set},
      Command{"SETNX", 3, "string", "key value", "Sets a key if there is none", KeyValue::setnx},
      Command{"SETEX", 4, "string", "key seconds value", "Sets a key that goes after seconds",
              KeyValue::setex},
      Command{"PSETEX", 4, "string", "key milliseconds value",
              "Sets a key that goes after milliseconds", KeyValue::psetex},
      Command{"GET", 2, "string", "key", "The value of a key", KeyValue::get},
      Command{"GETSET", 3, "string", "key value", "Sets a key; the former value", KeyValue::getset},
      Command{"GETDEL", 2, "string", "key", "Removes a key; its value", KeyValue::getdel},
      Command{"STRLEN", 2, "string", "key", "Bytes of a value", KeyValue::strlen},
      Command{"INCR", 2, "string", "key", "Adds 1", KeyValue::incr},
      Command{"DECR", 2, "string", "key", "Takes 1 away", KeyValue::decr},
      Command{"INCRBY", 3, "string", "key increment", "Adds a number", KeyValue::incrby},
      Command{"DECRBY", 3, "string", "key decrement", "Takes a number away", KeyValue::decrby},
      Command{"EXISTS", -2, "generic", "key…", "How many of the keys there are", KeyValue::exists},
      Command{"DEL", -2, "generic", "key…", "Removes keys; how many there were", KeyValue::del},
      Command{"UNLINK", -2, "generic", "key…", "As DEL", KeyValue::del},
      Command{"TYPE", 2, "generic", "key", "string or none", KeyValue::type},
      Command{"EXPIRE", -3, "generic", "key seconds [NX] [XX] [GT] [LT]",
              "When a key goes: seconds from now", KeyValue::expire},
      Command{"PEXPIRE", -3, "generic", "key milliseconds [NX] [XX] [GT] [LT]",
              "The same in milliseconds", KeyValue::pexpire},
      Command{"EXPIREAT", -3, "generic", "key seconds [NX] [XX] [GT] [LT]", "The same since 1970",
              KeyValue::expireat},
      Command{"PEXPIREAT", -3, "generic", "key milliseconds [NX] [XX] [GT] [LT]",
              "The same in milliseconds", KeyValue::pexpireat},
      Command{"EXPIRETIME", 2, "generic", "key", "When a key goes, since 1970",
              KeyValue::expiretime},
      Command{"PEXPIRETIME", 2, "generic", "key", "The same in milliseconds",
              KeyValue::pexpiretime},
      Command{"TTL", 2, "generic", "key", "Seconds until a key goes", KeyValue::ttl},
      Command{"PTTL", 2, "generic", "key", "Milliseconds until a key goes", KeyValue::pttl},
      Command{"PERSIST", 2, "generic", "key", "A key stays", KeyValue::persist},
      Command{"DBSIZE", 1, "server", "", "How many keys there are", Keyspace::dbsize},
      Command{"SCAN", -2, "generic", "cursor [MATCH pattern] [COUNT count] [TYPE type]",
              "The keys, a piece at a time", Keyspace::scan},
      Command{"INFO", -1, "server", "[section…]", "Figures of the server", Keyspace::info},
  };
  return kCommands;
}

}  // namespace hapax::resp
