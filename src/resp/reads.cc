#include "resp/reads.h"

#include <algorithm>
#include <array>
#include <deque>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>

#include "resp/argument_fields.h"
#include "resp/conversation.h"
#include "resp/map_reply.h"
#include "wire/answer_fields.h"

namespace hapax::resp {

namespace {

using access::Right;
using AnyRights = std::initializer_list<Right>;

constexpr AnyRights kAnybody{Right::kConsume, Right::kProduce, Right::kAdmin};
constexpr AnyRights kReaders{Right::kConsume};  // as GET and SCAN
constexpr AnyRights kWorkers{Right::kProduce, Right::kAdmin};

// What is asked for, and the bytes it refers to.
template <class What>
struct KeptQuestion {
  What what{};
  std::deque<std::string> bytes;

  std::string_view keep(std::string_view text) { return bytes.emplace_back(text); }
};

// A8: the audit is for administrators.
template <class What>
Status check_asked(const access::Caller& caller, const What& what) {
  if constexpr (requires { what.stream; }) return access::check_stream(caller, what.stream);
  return Ok{};
}

template <class Value>
void say_found(Replies& replies, const std::optional<Value>& found) {
  if (!found) return replies.null();
  reply_map(replies, [&](MapReply& map) { wire::tell(map, *found); });
}

}  // namespace

struct Reads {
  // `read(store, what)` on a thread that may wait; `tell(replies, value)` says what it found.
  template <class What, class Read, class Tell>
  static Next look(Conversation& talk, CommandWords arguments, AnyRights any_of, Read read,
                   Tell tell) {
    const auto question = std::make_shared<KeptQuestion<What>>();
    std::vector<std::string_view> kept;
    for (const std::string_view one : arguments.subspan(1)) kept.push_back(question->keep(one));
    std::deque<std::vector<Header>> no_headers;
    Status good = read_fields(kept, no_headers, question->what);
    if (good) good = access::check_any_right(talk.caller(), any_of);
    if (good) good = check_asked(talk.caller(), question->what);
    if (!good) return talk.refuse(good.error());
    return talk.ask(
        base::upper(arguments.front()),
        [question, read](Store& store) { return read(store, question->what); }, tell);
  }
  // The same for what is there or not.
  template <class What, class Read>
  static Next find(Conversation& talk, CommandWords arguments, AnyRights any_of, Read read) {
    return look<What>(talk, arguments, any_of, read,
                      [](Replies& replies, const auto& found) { say_found(replies, found); });
  }

  static Next read(Conversation& talk, CommandWords arguments) {
    return look<ReadRange>(
        talk, arguments, {Right::kConsume},
        [](Store& store, ReadRange range) {
          range.bytes_max = std::min(range.bytes_max, ReadRange{}.bytes_max);
          return store.read(range);
        },
        [](Replies& replies, const Records& records) {
          reply_map(replies, [&](MapReply& map) { wire::tell(map, records); });
        });
  }
  static Next find_id(Conversation& talk, CommandWords arguments) {
    return find<wire::FindId>(talk, arguments, kWorkers,
                              [](Store& store, const wire::FindId& what) {
                                return store.find_id(what.stream, what.id, what.group);
                              });
  }
  static Next find_claim(Conversation& talk, CommandWords arguments) {
    const auto bodies =
        talk.caller().rights.has(Right::kReadBodies) ? wire::Bodies::kShown : wire::Bodies::kHidden;
    return look<wire::FindClaim>(
        talk, arguments, kWorkers,
        [](Store& store, const wire::FindClaim& what) {
          return store.find_claim(what.scope, what.key);
        },
        [bodies](Replies& replies, const std::optional<ClaimStatus>& found) {
          if (!found) return replies.null();
          reply_map(replies, [&](MapReply& map) { wire::tell(map, *found, bodies); });
        });
  }
  static Next find_register(Conversation& talk, CommandWords arguments) {
    return find<wire::FindRegister>(talk, arguments, kReaders,
                                    [](Store& store, const wire::FindRegister& what) {
                                      return store.find_register(what.name);
                                    });
  }
  static Next find_position(Conversation& talk, CommandWords arguments) {
    return find<wire::FindPosition>(talk, arguments, kWorkers,
                                    [](Store& store, const wire::FindPosition& what) {
                                      return store.find_position(what.source);
                                    });
  }
  static Next find_producer(Conversation& talk, CommandWords arguments) {
    return find<wire::FindProducer>(talk, arguments, kWorkers,
                                    [](Store& store, const wire::FindProducer& what) {
                                      return store.find_producer(what.stream, what.producer);
                                    });
  }
  static Next scan(Conversation& talk, CommandWords arguments) {
    return look<RegisterScan>(
        talk, arguments, kReaders,
        [](Store& store, const RegisterScan& scan) { return store.scan_registers(scan); },
        [](Replies& replies, const RegisterPage& page) {
          reply_map(replies, [&](MapReply& map) { wire::tell(map, page); });
        });
  }
  static Next describe(Conversation& talk, CommandWords arguments) {
    return look<wire::DescribeStream>(
        talk, arguments, kAnybody,
        [](Store& store, const wire::DescribeStream& what) { return store.describe(what.stream); },
        [](Replies& replies, const StreamStats& stats) {
          reply_map(replies, [&](MapReply& map) { wire::tell(map, stats); });
        });
  }
  static Next streams(Conversation& talk, CommandWords) {
    if (const Status allowed = access::check_any_right(talk.caller(), kAnybody); !allowed) {
      return talk.refuse(allowed.error());
    }
    return talk.ask(
        "HX.STREAMS", [](Store& store) { return store.streams(); },
        [](Replies& replies, const std::vector<std::string>& own) {
          replies.array(own.size());
          for (const std::string& stream : own) replies.bulk(stream);
        });
  }
  // They tell of every tenant.
  static Next statistics(Conversation& talk, CommandWords) {
    const access::Caller& who = talk.caller();
    Status allowed = check_right(who, Right::kAdmin);
    if (allowed && !who.tenant.empty()) {
      allowed = Error{Errc::kForbidden,
                      "figures of the whole store are for its operator; describe "
                      "your own streams"};
    }
    if (!allowed) return talk.refuse(allowed.error());
    return talk.ask(
        "HX.STATISTICS", [](Store& store) { return store.statistics(); },
        [](Replies& replies, const Statistics& all) {
          reply_map(replies, [&](MapReply& map) { wire::tell(map, all); });
        });
  }
};

std::span<const Command> read_commands() {
  static const std::array kCommands{
      Command{"HX.READ", -2, "hapax", usage_of<ReadRange>(), "Records of a stream", Reads::read},
      Command{"HX.FIND_ID", -3, "hapax", usage_of<wire::FindId>(), "What became of a message id",
              Reads::find_id},
      Command{"HX.FIND_CLAIM", 3, "hapax", usage_of<wire::FindClaim>(), "How a claim stands",
              Reads::find_claim},
      Command{"HX.FIND_REGISTER", 2, "hapax", usage_of<wire::FindRegister>(),
              "The value of a register", Reads::find_register},
      Command{"HX.SCAN_REGISTERS", -2, "hapax", usage_of<RegisterScan>(),
              "Names of registers, a piece at a time", Reads::scan},
      Command{"HX.FIND_POSITION", 2, "hapax", usage_of<wire::FindPosition>(),
              "Where a source was read to", Reads::find_position},
      Command{"HX.FIND_PRODUCER", 3, "hapax", usage_of<wire::FindProducer>(),
              "How a producer stands", Reads::find_producer},
      Command{"HX.DESCRIBE", 2, "hapax", usage_of<wire::DescribeStream>(),
              "Settings and figures of a stream", Reads::describe},
      Command{"HX.STREAMS", 1, "hapax", "", "Names of all streams", Reads::streams},
      Command{"HX.STATISTICS", 1, "hapax", "", "Figures of the store", Reads::statistics},
  };
  return kCommands;
}

}  // namespace hapax::resp
