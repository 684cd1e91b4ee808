// Rules of alerts over what a server sees of itself: its workflows, its queues, its tenants.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <hapax/store.h>

#include "alerts/keeper.h"
#include "alerts/rule.h"
#include "alerts/shares.h"
#include "metrics/meter.h"
#include "serve/backlogs.h"
#include "serve/survey.h"
#include "workflows/delivery_rows.h"

namespace hapax::serve {

// What there is to see at the time of the survey.
struct Sights {
  const Survey& survey;
  const BacklogBoard::All& backlogs;
  const metrics::Meter& meter;
  const workflows::EachEndpoint& each_endpoint;
};

// What one rule sees of it. Names that are not UTF-8 are not watched: no message could tell them.
class RuleSight {
 public:
  explicit RuleSight(const alerts::Rule& rule) : rule_(rule) {}
  [[nodiscard]] std::vector<alerts::Observation> see(const Sights& sights);

 private:
  void see_backlogs(const Sights& sights);
  void see_rates(const Sights& sights);
  void see_disabled(const Sights& sights);
  void see_queues(const Sights& sights);
  void see_quotas(const Sights& sights);
  void add(alerts::Subject subject, double value, bool known = true);

  const alerts::Rule& rule_;
  alerts::Shares shares_;
  std::vector<alerts::Observation> seen_;
};

class AlertWatch {
 public:
  struct Ports {
    std::function<Store&(std::string_view tenant)> store_of;  // the store as that tenant sees it
    std::string process;  // the name of this one among those that share the store
    std::function<void(const alerts::Rule& rule, const alerts::Notice& notice)> told;
    std::function<void(const alerts::Rule& rule, const std::string& what)> failed;
  };

  // The rules outlive it.
  AlertWatch(const std::vector<alerts::Rule>& rules, const Ports& ports);
  AlertWatch(const AlertWatch&) = delete;
  AlertWatch& operator=(const AlertWatch&) = delete;

  // A survey that was looked at already says nothing new, and is left alone.
  void look(const Sights& sights);

 private:
  struct Watched {
    explicit Watched(const alerts::Rule& rule, alerts::Keeper::Ports ports)
        : sight(rule), keeper(rule, std::move(ports)) {}
    RuleSight sight;
    alerts::Keeper keeper;
  };

  const Ports ports_;
  std::vector<std::unique_ptr<Watched>> watched_;
  Time looked_{};
};

}  // namespace hapax::serve
