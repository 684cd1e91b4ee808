#include "resp/commands.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <unordered_map>

#include "access/admission.h"
#include "access/audit.h"
#include "base/words.h"
#include "resp/act.h"
#include "resp/argument_docs.h"
#include "resp/argument_fields.h"
#include "resp/glob.h"
#include "resp/key_value.h"
#include "resp/op_arguments.h"
#include "resp/reads.h"
#include "resp/verdict_reply.h"
#include "wire/nearest.h"
#include "wire/text_value.h"

namespace hapax::resp {

using base::lower;
using base::upper;

namespace {

void say_map(Replies& replies, std::span<const Verdict> verdicts, Time when) {
  reply_verdict(replies, verdicts.front(), when);
}

// As Redis has it.
constexpr std::string_view kBadClientName =
    "Client names cannot contain spaces, newlines or special characters.";
bool is_client_name(std::string_view name) {
  return std::all_of(name.begin(), name.end(), [](char c) { return c >= '!' && c <= '~'; });
}

const Command* find_command(std::string_view name) {
  static const auto kByName = [] {
    std::unordered_map<std::string_view, const Command*> by_name;
    for (const Command& command : commands()) by_name.emplace(command.name, &command);
    return by_name;
  }();
  const auto found = kByName.find(name);
  return found == kByName.end() ? nullptr : found->second;
}

}  // namespace

// The bodies of the commands: friends of the session.
struct Commands : Act {
  static Next wrong_number(Session& session, const std::string& name) {
    return error(session, "ERR", "wrong number of arguments for '" + name + "' command");
  }

  // --- connection

  static Next ping(Session& session, Arguments arguments) {
    if (arguments.size() > 2) return wrong_number(session, "ping");
    if (arguments.size() > 1) {
      session.replies_.bulk(arguments[1]);
    } else {
      session.replies_.simple("PONG");
    }
    session.answer_now();
    return Next::kGoOn;
  }

  static Next echo(Session& session, Arguments arguments) {
    session.replies_.bulk(arguments[1]);
    session.answer_now();
    return Next::kGoOn;
  }

  static Next quit(Session& session, Arguments) {
    ok(session);
    session.closing_ = true;
    return Next::kGoOn;
  }

  // AUTH credential, or AUTH user credential: who it is says the credential, not the user.
  static Next auth(Session& session, Arguments arguments) {
    if (arguments.size() > 3) return error(session, "ERR", "syntax error: AUTH [user] token");
    const Status in = session.sign_in(arguments.back());
    return in ? ok(session) : refuse(session, in.error());
  }

  // HELLO [version [AUTH user secret] [SETNAME name]]
  static Next hello(Session& session, Arguments arguments) {
    Version version = session.replies_.version();
    if (arguments.size() > 1) {
      if (arguments[1] != "2" && arguments[1] != "3") {
        return error(session, "NOPROTO", "unsupported protocol version");
      }
      version = arguments[1] == "3" ? Version::kResp3 : Version::kResp2;
    }
    for (std::size_t i = 2; i < arguments.size();) {
      const std::string option = upper(arguments[i]);
      if (option == "AUTH" && i + 2 < arguments.size()) {
        const Status in = session.sign_in(arguments[i + 2]);
        if (!in) return refuse(session, in.error());
        i += 3;
      } else if (option == "SETNAME" && i + 1 < arguments.size()) {
        if (!is_client_name(arguments[i + 1])) return error(session, "ERR", kBadClientName);
        session.name_ = arguments[i + 1];
        i += 2;
      } else {
        return error(session, "ERR", "syntax error in HELLO option '" + option + "'");
      }
    }
    if (!session.caller_) {
      return error(session, "NOAUTH", "HELLO must be called with AUTH user secret here");
    }
    session.replies_.use(version);
    tell_server(session);
    session.answer_now();
    return Next::kGoOn;
  }

  static void tell_server(Session& session) {
    Replies& replies = session.replies_;
    replies.map(6);
    replies.bulk("server");
    replies.bulk("hapax");
    replies.bulk("version");
    replies.bulk(session.context_.version);
    replies.bulk("proto");
    replies.integer(replies.version() == Version::kResp3 ? 3 : 2);
    replies.bulk("mode");
    replies.bulk("standalone");
    replies.bulk("role");
    replies.bulk("master");
    replies.bulk("modules");
    replies.array(0);
  }

  static Next select(Session& session, Arguments arguments) {
    if (arguments[1] == "0") return ok(session);
    return error(session, "ERR", "DB index is out of range: there is only 0");
  }

  // Client libraries introduce themselves; what they say is of no use here.
  static Next client(Session& session, Arguments arguments) {
    const std::string what = upper(arguments[1]);
    if (what == "SETNAME") {
      if (arguments.size() != 3) return wrong_number(session, "client|setname");
      if (!is_client_name(arguments[2])) return error(session, "ERR", kBadClientName);
      session.name_ = arguments[2];
      return ok(session);
    }
    if (what == "SETINFO" || what == "NO-EVICT" || what == "NO-TOUCH") return ok(session);
    if (what == "GETNAME") {
      session.name_.empty() ? session.replies_.null() : session.replies_.bulk(session.name_);
    } else if (what == "ID") {
      session.replies_.integer(1);
    } else {
      return error(session, "ERR",
                   "CLIENT knows SETNAME, GETNAME, SETINFO, ID, NO-EVICT and NO-TOUCH");
    }
    session.answer_now();
    return Next::kGoOn;
  }

  static Next reset(Session& session, Arguments) {
    session.end_multi();
    session.sign_out();
    session.replies_.use(Version::kResp2);
    session.replies_.simple("RESET");
    session.answer_now();
    return Next::kGoOn;
  }

  static Next config(Session& session, Arguments arguments) {
    if (upper(arguments[1]) != "GET") {
      return error(session, "ERR", "the configuration is a file; only CONFIG GET is known");
    }
    // What redis-benchmark wants to know: that everything is written down.
    constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kKnown{
        {{"appendonly", "yes"}, {"save", ""}}};
    std::vector<std::string_view> told;
    for (const auto& [name, value] : kKnown) {
      const auto wants = [name = name](std::string_view asked) {
        return matches(lower(asked), name);
      };
      const Arguments patterns = arguments.subspan(2);
      if (std::none_of(patterns.begin(), patterns.end(), wants)) continue;
      told.insert(told.end(), {name, value});
    }
    session.replies_.map(told.size() / 2);
    for (const std::string_view word : told) session.replies_.bulk(word);
    session.answer_now();
    return Next::kGoOn;
  }

  // --- COMMAND

  static Next command(Session& session, Arguments arguments) {
    const std::string what = arguments.size() > 1 ? upper(arguments[1]) : "INFO";
    if (what == "COUNT") {
      session.replies_.integer(static_cast<std::int64_t>(commands().size()));
    } else if (what == "LIST") {
      return command_list(session, arguments.subspan(2));
    } else if (what == "DOCS") {
      tell_docs(session.replies_, arguments.subspan(2));
    } else if (what == "INFO") {
      tell_info(session.replies_, arguments.subspan(std::min<std::size_t>(2, arguments.size())));
    } else {
      return error(session, "ERR", "COMMAND knows COUNT, LIST, DOCS and INFO");
    }
    session.answer_now();
    return Next::kGoOn;
  }

  static Next command_list(Session& session, Arguments filter) {
    const bool by_pattern =
        filter.size() == 3 && upper(filter[0]) == "FILTERBY" && upper(filter[1]) == "PATTERN";
    if (!filter.empty() && !by_pattern) {
      return error(session, "ERR", "COMMAND LIST knows FILTERBY PATTERN pattern");
    }
    const std::string pattern = by_pattern ? lower(filter[2]) : "*";
    std::vector<std::string> names;
    for (const Command& one : commands()) {
      if (matches(pattern, lower(one.name))) names.push_back(lower(one.name));
    }
    session.replies_.array(names.size());
    for (const std::string& name : names) session.replies_.bulk(name);
    return answered(session);
  }

  static std::vector<const Command*> wanted(Arguments asked) {
    std::vector<const Command*> found;
    for (const std::string_view name : asked) {
      if (const Command* one = find_command(upper(name))) found.push_back(one);
    }
    if (!asked.empty()) return found;
    for (const Command& command : commands()) found.push_back(&command);
    return found;
  }

  static void tell_docs(Replies& replies, Arguments asked) {
    const std::vector<const Command*> told = wanted(asked);
    replies.map(told.size());
    for (const Command* command : told) {
      replies.bulk(lower(command->name));
      replies.map(3);
      replies.bulk("summary");
      replies.bulk(command->summary);
      replies.bulk("group");
      replies.bulk(command->group);
      replies.bulk("arguments");
      tell_arguments(replies, command->arguments);
    }
  }

  static void tell_info(Replies& replies, Arguments asked) {
    replies.array(asked.empty() ? commands().size() : asked.size());
    for (const std::string_view name : asked) {
      const Command* const found = find_command(upper(name));
      found == nullptr ? replies.null() : tell_info(replies, *found);
    }
    if (!asked.empty()) return;
    for (const Command& command : commands()) tell_info(replies, command);
  }
  static void tell_info(Replies& replies, const Command& command) {
    replies.array(6);
    replies.bulk(lower(command.name));
    replies.integer(command.arity);
    replies.array(0);
    replies.integer(0);
    replies.integer(0);
    replies.integer(0);
  }

  // --- MULTI

  static Next multi(Session& session, Arguments) {
    if (session.multi_) return error(session, "ERR", "MULTI calls can not be nested");
    session.multi_ = true;
    session.multi_broken_ = false;
    drop_queued(session);
    return ok(session);
  }

  static Next discard(Session& session, Arguments) {
    if (!session.multi_) return error(session, "ERR", "DISCARD without MULTI");
    session.end_multi();
    return ok(session);
  }

  static Next exec(Session& session, Arguments) {
    if (!session.multi_) return error(session, "ERR", "EXEC without MULTI");
    // Operations before MULTI may not have left for the store yet.
    if (session.busy()) return Next::kWaitFirst;
    const bool broken = session.multi_broken_;
    const wire::SharedRequest request = session.queued_;
    std::vector<Session::Queued> queued = std::move(session.queued_says_);
    const bool whole = session.tell_whole_;
    session.end_multi();
    if (broken) {
      return error(session, "EXECABORT", "Transaction discarded because of previous errors.");
    }
    std::size_t bytes = 0;
    for (Session::Queued& command : queued) {
      if (command.say == nullptr) command.reply = reply_of(session, command.words);
      bytes += command.reply.size();
      if (bytes > limits::kAnswerBytesMax) {
        return error(session, "EXECABORT", "Transaction discarded: its replies are too long.");
      }
    }
    if (!request->ops.empty() || whole) {
      return commit(session, request, std::move(queued), whole ? Shape::kWhole : Shape::kArray);
    }
    session.replies_.array(queued.size());
    for (const Session::Queued& command : queued) session.replies_.raw(command.reply);
    return answered(session);
  }

  // REQUIRES: everything before it is answered.
  static std::string reply_of(Session& session, const std::vector<std::string>& words) {
    const std::vector<std::string_view> arguments(words.begin(), words.end());
    const std::size_t before = session.replies_.size();
    find_command(upper(arguments.front()))->run(session, arguments);
    session.due_ = before;
    return session.replies_.cut(before);
  }

  // How EXEC commits, and that it tells everything.
  static Next hx_commit(Session& session, Arguments arguments) {
    if (!session.multi_) {
      return error(session, "ERR", "HX.COMMIT says how EXEC commits: it stands behind MULTI");
    }
    if (session.tell_whole_) return error(session, "ERR", "HX.COMMIT is said once");
    const auto plain = [](const Session::Queued& command) { return command.say == nullptr; };
    if (std::any_of(session.queued_says_.begin(), session.queued_says_.end(), plain)) {
      return error(session, "ERR", "with HX.COMMIT there are operations only");
    }
    std::vector<std::string_view> kept;
    for (const std::string_view one : arguments.subspan(1)) kept.push_back(keep(session, one));
    wire::CommitFields how{*session.queued_, {}, {}};
    if (const Status read = read_fields(kept, session.queued_->headers, how); !read) {
      return refuse(session, read.error());
    }
    const Status good = access::check_terms(*session.caller_, *session.queued_);
    if (!good) return refuse(session, good.error());
    session.tell_whole_ = true;
    return ok(session);
  }

  // --- operations

  static Next hx(Session& session, ReadOp read_op, Arguments arguments) {
    std::vector<std::string_view>& kept = session.kept_;
    kept.assign(arguments.begin(), arguments.end());
    keep(session, kept);
    Op op;
    auto& headers = session.multi_ ? session.queued_->headers : session.gatherer_.headers();
    const Status read = read_op(kept, headers, usual_of(*session.caller_), op);
    if (!read) return refuse(session, read.error());
    const bool ends = std::holds_alternative<End>(op);
    if (!session.multi_ && (ends || access::is_audited(*session.caller_, op))) {
      const Status allowed = access::check(*session.caller_, op);
      if (!allowed) return refuse(session, allowed.error());
      return hx_alone(session, read_op, arguments, ends ? Shape::kWhole : Shape::kOne);
    }
    return carry_out(session, op, say_map);
  }

  // An administrative act is a commit of its own, which takes its audit with it; so is the end of a
  // transaction, which answers for everything that was staged.
  static Next hx_alone(Session& session, ReadOp read_op, Arguments arguments, Shape shape) {
    if (session.busy()) return Next::kWaitFirst;  // Operations before it may not have left yet.
    const auto request = std::make_shared<wire::Request>();
    std::vector<std::string_view> kept;
    for (const std::string_view argument : arguments) kept.push_back(request->keep(argument));
    Op& op = request->ops.emplace_back();
    const Status read = read_op(kept, request->headers, usual_of(*session.caller_), op);
    if (!read) return refuse(session, read.error());
    return commit(session, request, {{say_map, 1}}, shape);
  }
};

std::span<const Command> commands() {
  static const std::vector<Command> kCommands = [] {
    std::vector<Command> all{
        Command{"PING", -1, "connection", "[message]", "Answers PONG, or its argument",
                Commands::ping, nullptr, InMulti::kWaits},
        Command{"ECHO", 2, "connection", "message", "Answers its argument", Commands::echo, nullptr,
                InMulti::kWaits},
        Command{"AUTH", -2, "connection", "[user] token", "Signs in with a token", Commands::auth,
                nullptr, InMulti::kNever},
        Command{"HELLO", -1, "connection", "[version] [AUTH user token] [SETNAME name]",
                "Chooses the protocol version", Commands::hello, nullptr, InMulti::kNever},
        Command{"QUIT", -1, "connection", "", "Closes the connection", Commands::quit, nullptr,
                InMulti::kAtOnce},
        Command{"RESET", 1, "connection", "", "As if newly connected", Commands::reset, nullptr,
                InMulti::kAtOnce},
        Command{"SELECT", 2, "connection", "0", "Only 0", Commands::select, nullptr,
                InMulti::kWaits},
        Command{"CLIENT", -2, "connection", "subcommand [argument…]", "Name of the connection",
                Commands::client, nullptr, InMulti::kWaits},
        Command{"COMMAND", -1, "server", "[subcommand] [name…]", "What there is", Commands::command,
                nullptr, InMulti::kWaits},
        Command{"CONFIG", -2, "server", "GET pattern…", "CONFIG GET appendonly, save",
                Commands::config, nullptr, InMulti::kWaits},
        Command{"MULTI", 1, "transactions", "", "Begins a list of commands", Commands::multi,
                nullptr, InMulti::kAtOnce},
        Command{"EXEC", 1, "transactions", "", "Carries them out, all or nothing", Commands::exec,
                nullptr, InMulti::kAtOnce},
        Command{"DISCARD", 1, "transactions", "", "Forgets them", Commands::discard, nullptr,
                InMulti::kAtOnce},
        Command{"HX.COMMIT", -1, "hapax", usage_of<wire::CommitFields>(),
                "PrivateServer MULTI: how EXEC commits, and that it tells everything",
                Commands::hx_commit, nullptr, InMulti::kAtOnce},
    };
    all.insert(all.end(), key_value_commands().begin(), key_value_commands().end());
    all.insert(all.end(), read_commands().begin(), read_commands().end());
    for (const OpCommand& op : op_commands()) {
      all.push_back({op.name, -1 - op.required, "hapax", op.usage, op.summary, nullptr, op.read});
    }
    return all;
  }();
  return kCommands;
}

namespace {

// The lines of a header that a browser sends before a body that a page has chosen.
bool is_http(std::string_view name) { return name == "POST" || name.starts_with("HOST:"); }

// Of a long name only the beginning is told.
std::string unknown_command(std::string_view name) {
  const std::string_view told = name.substr(0, 64);
  std::vector<std::string_view> known;
  for (const Command& command : commands()) known.push_back(command.name);
  std::string text = "unknown command '" + std::string(told) + "'";
  if (const auto close = wire::nearest(told, known)) {
    return text + "; did you mean '" + std::string(*close) + "'?";
  }
  return text + "; COMMAND LIST names those there are";
}

}  // namespace

Session::Next Session::run(Arguments arguments) {
  const std::string name = upper(arguments.front());
  if (is_http(name)) {
    closing_ = true;  // A9: what follows may be commands that a page of another site wrote.
    return Commands::error(*this, "ERR", "HTTP is not spoken at this port");
  }
  const Command* found = find_command(name);
  if (found == nullptr) return Commands::error(*this, "ERR", unknown_command(name));
  const bool signs_in = name == "AUTH" || name == "HELLO" || name == "QUIT" || name == "RESET";
  // Answers are told in the names of whoever asked: nobody else signs in before they are.
  if (signs_in && busy()) return Next::kWaitFirst;
  if (admission_ && !context_.authenticator.holds(*admission_)) {
    if (busy()) return Next::kWaitFirst;
    sign_in_again();
  }
  if (!caller_ && !signs_in) {
    return Commands::error(*this, "NOAUTH", "Authentication required: AUTH token");
  }
  const bool about_multi = multi_ && found->in_multi == InMulti::kAtOnce;
  if (caller_ && !signs_in && !about_multi) {
    if (const auto refused = access::let_in(*caller_, permit_)) {
      return Commands::refuse(*this, refused->error);
    }
  }
  if (found->read_op != nullptr) {
    return Commands::hx(*this, found->read_op, arguments.subspan(1));
  }
  const auto count = static_cast<int>(arguments.size());
  const bool fits = found->arity < 0 ? count >= -found->arity : count == found->arity;
  if (!fits) return Commands::wrong_number(*this, lower(name));
  if (multi_ && found->in_multi == InMulti::kWaits) return Commands::queue(*this, arguments);
  if (multi_ && found->in_multi == InMulti::kNever) {
    return Commands::error(*this, "ERR", "Command not allowed inside a transaction");
  }
  return found->run(*this, arguments);
}

}  // namespace hapax::resp
