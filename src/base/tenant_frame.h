// Tenants share one store. Every name of a tenant begins with its frame, 0x01 TENANT 0x01, which no
// name from outside can have; names without a frame are those of the tenant without a name.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace hapax::base {

inline constexpr char kTenantFrame = '\x01';
inline constexpr std::size_t kTenantBytesMax = 64;
// The store's own tenant, which nobody can sign in to: what servers keep about it.
inline constexpr std::string_view kOwnTenant = "$";

// Whether a name may come from outside: it reaches into no tenant.
[[nodiscard]] constexpr bool from_outside(std::string_view name) {
  return name.empty() || name.front() != kTenantFrame;
}

// What stands in front of a name: the frame of its tenant, or nothing.
[[nodiscard]] constexpr std::string_view frame_of(std::string_view name) {
  if (from_outside(name)) return {};
  const std::size_t end = name.substr(0, kTenantBytesMax + 2).find(kTenantFrame, 1);
  return end == std::string_view::npos ? std::string_view{} : name.substr(0, end + 1);
}

[[nodiscard]] inline std::string frame_for(std::string_view tenant) {
  if (tenant.empty()) return {};
  return std::string(1, kTenantFrame).append(tenant).append(1, kTenantFrame);
}

// A name of the store, taken apart.
struct StoreName {
  std::string_view tenant{};  // empty: of the tenant without a name
  std::string_view name{};    // as its tenant knows it
  friend bool operator==(const StoreName&, const StoreName&) = default;

  // As the store knows it.
  [[nodiscard]] std::string text() const { return frame_for(tenant).append(name); }
};
[[nodiscard]] constexpr StoreName split_name(std::string_view name) {
  const std::string_view frame = frame_of(name);
  if (frame.empty()) return {{}, name};
  return {frame.substr(1, frame.size() - 2), name.substr(frame.size())};
}

}  // namespace hapax::base
