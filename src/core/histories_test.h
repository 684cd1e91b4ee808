// For property tests over long histories: how a failing one is made smaller. RapidCheck takes away
// every run of steps in turn, however much they overlap: of n steps that is n²/2 tries for each
// that helps. With hundreds of steps it outlasts the time a test has, and the timeout tells neither
// what failed nor how to see it again. No part of the product.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include <rapidcheck.h>

namespace hapax::core::rig {

inline constexpr int kSmallerTriesMax = 500;  // of one failing history

// The history without its first half, without its second, without each quarter, and so on.
template <class Step>
rc::Seq<std::vector<Step>> without_parts(const std::vector<Step>& steps) {
  std::vector<std::pair<std::size_t, std::size_t>> parts;
  for (std::size_t size = (steps.size() + 1) / 2; size > 0; size /= 2) {
    for (std::size_t at = 0; at < steps.size(); at += size) {
      parts.emplace_back(at, std::min(at + size, steps.size()));
    }
  }
  return rc::seq::map(rc::seq::fromContainer(std::move(parts)), [steps](const auto& part) {
    std::vector<Step> rest(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(part.first));
    rest.insert(rest.end(), steps.begin() + static_cast<std::ptrdiff_t>(part.second), steps.end());
    return rest;
  });
}

// Histories of such steps. The steps themselves stay as they are.
template <class Step>
rc::Gen<std::vector<Step>> histories(rc::Gen<Step> step) {
  const auto left = std::make_shared<int>(kSmallerTriesMax);
  const auto may_try = [left](const std::vector<Step>&) { return (*left)-- > 0; };
  const auto smaller = [may_try](const std::vector<Step>& steps) {
    return rc::seq::takeWhile(without_parts(steps), may_try);
  };
  return rc::gen::shrink(rc::gen::noShrink(rc::gen::container<std::vector<Step>>(std::move(step))),
                         smaller);
}

}  // namespace hapax::core::rig
