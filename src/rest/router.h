// Finds the act for a method and a path, and the names in the path.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <hapax/result.h>

#include "access/authenticator.h"
#include "access/entry.h"
#include "http/session.h"
#include "wire/request.h"

namespace hapax::rest {

// A request on its way: who asks, and what the path says.
struct Call {
  std::shared_ptr<http::Exchange> exchange;
  access::Admission admission;
  std::vector<std::pair<std::string, std::string>> names;  // of the path: {stream} …
  // Asks the door once more; none: whoever calls may stay.
  std::function<Status(Call&)> ask_door{};

  [[nodiscard]] const access::Caller& caller() const { return admission.caller; }
  // A5: what waits asks again before it hands anything out. An error is the client's answer.
  [[nodiscard]] Status still_admitted() { return ask_door ? ask_door(*this) : Status(Ok{}); }
  [[nodiscard]] const http::Request& request() const { return exchange->request(); }
  // For the entry.
  [[nodiscard]] access::From from() const;
  [[nodiscard]] std::string_view name(std::string_view key) const;
  // Names of the path and the query, as fields of an operation.
  [[nodiscard]] std::vector<wire::TextField> fields() const;
};
using SharedCall = std::shared_ptr<Call>;
using Act = std::function<void(const SharedCall&)>;

// A value in the query that is no field of the operation.
struct QueryField {
  std::string name;
  std::string schema;  // of JSON
  std::string help;
  bool required = false;
};

// The members below `op` describe it; the OpenAPI document is made from them.
struct Route {
  std::string method;
  std::string pattern;  // "/api/v1/streams/{stream}"
  Act act;
  std::string summary;
  std::string op;        // the operation its body describes; empty: none
  bool open = false;     // needs no credential
  std::string list{};    // its body may be several operations, under this name
  std::string answer{};  // what a good answer is, in words of the OpenAPI document; empty: verdicts
  std::vector<QueryField> query{};
  bool keyed = false;      // takes an Idempotency-Key, as every operation does
  bool dedup_key = false;  // {key} is a dedup key, and no key of a claim
  std::string body{};      // JSON Schema of its body, where that describes no operation
};

// kInvalidArgument if the query says something twice, or something that the route does not know.
[[nodiscard]] Status check_query(const Route& route, const http::Request& request);

class Router {
 public:
  void add(Route route);

  struct Found {
    const Route* route = nullptr;
    std::vector<std::pair<std::string, std::string>> names;
    std::string allowed;  // methods of the path, if only the method did not fit
  };
  [[nodiscard]] Found find(std::string_view method, const std::vector<std::string>& path) const;
  [[nodiscard]] const std::vector<Route>& routes() const { return routes_; }

 private:
  std::vector<Route> routes_;
  std::vector<std::vector<std::string>> segments_;  // of each pattern
};

}  // namespace hapax::rest
