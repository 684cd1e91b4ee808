// A complete use of the embedded store: an order service whose requests may arrive twice.
//
//   c++ -std=c++20 embedded.cc $(pkg-config --cflags --libs --static hapax) -o embedded
#include <cstdio>
#include <cstdlib>
#include <string>

#include <hapax/hapax.h>

namespace {

// Ends the program with the reason when something is not as it must be.
void demand(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "embedded: %s\n", what);
  std::exit(1);
}

hapax::Verdict commit_one(hapax::Store& store, const hapax::Op& op) {
  const auto answer = store.commit({.ops = {&op, 1}});
  if (!answer) {
    std::fprintf(stderr, "embedded: %s\n", answer.error().text().c_str());
    std::exit(1);
  }
  return answer->verdicts.front();
}

}  // namespace

int main() {
  auto opened = hapax::open_embedded("orders-data");
  if (!opened) {
    std::fprintf(stderr, "embedded: %s\n", opened.error().text().c_str());
    return 1;
  }
  hapax::Store& store = **opened;
  commit_one(store, hapax::CreateStream{.stream = "orders"});

  // An order arrives, and its sender repeats it because the answer was lost.
  const hapax::Append order{.stream = "orders", .payload = R"({"item":"tea"})", .id = "order-1"};
  commit_one(store, order);
  const hapax::Verdict again = commit_one(store, order);
  demand(std::holds_alternative<hapax::Duplicate>(again), "the repeat is recognised");
  std::printf("order-1: %s\n", std::string(hapax::word_of(again)).c_str());

  // The same id with other content is refused: nothing is overwritten.
  const hapax::Append other{.stream = "orders", .payload = R"({"item":"gin"})", .id = "order-1"};
  demand(std::holds_alternative<hapax::Conflict>(commit_one(store, other)), "a conflict is seen");

  // A worker takes the order, charges the card once, and finishes both in one commit.
  const auto received = std::get<hapax::Received>(commit_one(
      store, hapax::Receive{.stream = "orders", .consumer = "charge", .owner = "worker-7"}));
  if (received.deliveries.empty()) return 0;  // A second run of this program: all is done.
  const hapax::Delivery& delivery = received.deliveries.front();
  const auto claimed =
      std::get<hapax::Claimed>(commit_one(store, hapax::Claim{.scope = "charge",
                                                              .key = delivery.record.id,
                                                              .content = delivery.record.payload,
                                                              .owner = "worker-7"}));
  const hapax::Op finish[] = {
      hapax::Settle{.scope = "charge",
                    .key = delivery.record.id,
                    .fence = claimed.fence,
                    .result = {.status = 200, .headers = "", .body = "charged"}},
      hapax::Ack{.stream = "orders",
                 .consumer = "charge",
                 .receipt = {delivery.record.sequence, delivery.token}}};
  const auto finished = store.commit({.ops = finish});
  demand(finished.ok() && finished->committed, "result and ack are one commit");

  // Whoever asks again gets the first result, byte for byte.
  const auto repeated = std::get<hapax::DuplicateClaim>(
      commit_one(store, hapax::Claim{.scope = "charge",
                                     .key = delivery.record.id,
                                     .content = delivery.record.payload,
                                     .owner = "worker-8"}));
  demand(repeated.result && repeated.result->body == "charged", "the result is replayed");
  std::printf("charged once: %s\n", repeated.result->body.c_str());
  return 0;
}
