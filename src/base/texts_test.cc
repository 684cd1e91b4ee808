// The small texts of the room: numbers, hexadecimal digits, UTF-8, framed names.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/dedup_key.h"
#include "base/filled.h"
#include "base/hex.h"
#include "base/queue_of.h"
#include "base/tenant_frame.h"
#include "base/utf8.h"
#include "base/whole_number.h"

namespace hapax::base {
namespace {

TEST(WholeNumber, StandsAsItWouldBeWritten) {
  EXPECT_EQ(whole_number("0"), 0);
  EXPECT_EQ(whole_number("-1"), -1);
  EXPECT_EQ(whole_number("9223372036854775807"), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(whole_number("-9223372036854775808"), std::numeric_limits<std::int64_t>::min());
  for (const std::string_view text : {"", "-", "+1", " 1", "1 ", "01", "-0", "1.0", "1e3", "0x1",
                                      "9223372036854775808", "-9223372036854775809"}) {
    EXPECT_EQ(whole_number(text), std::nullopt) << text;
  }
  EXPECT_EQ(whole_number(std::string_view("1\0", 2)), std::nullopt);
}

RC_GTEST_PROP(WholeNumber, EveryNumberIsReadBack, (std::int64_t number)) {
  RC_ASSERT(whole_number(std::to_string(number)) == number);
}

TEST(Hex, EveryByteIsTwoDigits) {
  EXPECT_EQ(hex(""), "");
  EXPECT_EQ(hex(std::string_view("\0\x0f\x7f\x80\xff", 5)), "000f7f80ff");
}

TEST(Utf8, TakesEachBoundaryOfTheEncoding) {
  for (const std::string_view text :
       {"\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
        "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_EQ(utf8_size(text), text.size()) << hex(text);
  }
  EXPECT_EQ(utf8_size(std::string_view("\0", 1)), 1U);
}

TEST(Utf8, RefusesWhatDecodersDisagreeAbout) {
  for (const std::string_view text : {"\x80",              // a continuation that continues nothing
                                      "\xc0\x80",          // NUL in two bytes
                                      "\xc1\xbf",          // DEL in two bytes
                                      "\xe0\x9f\xbf",      // overlong
                                      "\xed\xa0\x80",      // a surrogate
                                      "\xf0\x8f\xbf\xbf",  // overlong
                                      "\xf4\x90\x80\x80",  // above U+10FFFF
                                      "\xf5\x80\x80\x80", "\xff", "\xc2", "\xe2\x82",
                                      "\xf0\x9f\x98", "\xc2\x7f", "\xe2\x82\xc0"}) {
    EXPECT_EQ(utf8_size(text), 0U) << hex(text);
    EXPECT_FALSE(is_utf8("a" + std::string(text) + "b")) << hex(text);
  }
  EXPECT_EQ(utf8_size(""), 0U);
  EXPECT_TRUE(is_utf8(""));
}

std::string encoded(std::uint32_t point) {
  const auto tail = [&](unsigned shift) {
    return static_cast<char>(0x80 | ((point >> shift) & 0x3f));
  };
  if (point < 0x80) return {static_cast<char>(point)};
  if (point < 0x800) return {static_cast<char>(0xc0 | (point >> 6)), tail(0)};
  if (point < 0x10000) return {static_cast<char>(0xe0 | (point >> 12)), tail(6), tail(0)};
  return {static_cast<char>(0xf0 | (point >> 18)), tail(12), tail(6), tail(0)};
}

TEST(Utf8, HasEveryPointButTheSurrogates) {
  for (std::uint32_t point = 0; point < 0x110000; ++point) {
    const bool surrogate = point >= 0xd800 && point < 0xe000;
    const std::string text = encoded(point);
    ASSERT_EQ(utf8_size(text), surrogate ? 0U : text.size()) << point;
  }
}

TEST(TenantFrame, IsTakenOffAndNamesTheTenant) {
  EXPECT_EQ(split_name("\x01"
                       "acme\x01orders"),
            (StoreName{"acme", "orders"}));
  EXPECT_EQ(split_name("orders"), (StoreName{"", "orders"}));
  EXPECT_EQ(split_name(""), (StoreName{}));
  EXPECT_EQ(StoreName({"acme", "orders"}).text(),
            "\x01"
            "acme\x01orders");
  EXPECT_EQ(StoreName({"", "orders"}).text(), "orders");
}

// A frame ends where its tenant's name does; what follows may have the same byte.
TEST(TenantFrame, EndsAtItsSecondByteAndIsNeverLongerThanATenantCanBe) {
  EXPECT_EQ(split_name("\x01"
                       "a\x01x\x01y"),
            (StoreName{"a", "x\x01y"}));
  EXPECT_EQ(frame_of("\x01"
                     "open"),
            "");
  EXPECT_EQ(frame_of("a\x01"
                     "b\x01"),
            "");
  const std::string longest = '\x01' + std::string(kTenantBytesMax, 't') + '\x01';
  EXPECT_EQ(frame_of(longest + "name"), longest);
  const std::string longer = '\x01' + std::string(kTenantBytesMax + 1, 't') + "\x01name";
  EXPECT_EQ(frame_of(longer), "");
  EXPECT_EQ(split_name(longer), (StoreName{"", longer}));
}

RC_GTEST_PROP(TenantFrame, PutTogetherAndTakenApartItIsTheSame, (const std::string& name)) {
  auto tenant = *rc::gen::container<std::string>(rc::gen::inRange('!', '~'));
  tenant.resize(std::min(tenant.size(), kTenantBytesMax));
  RC_PRE(!tenant.empty() || from_outside(name));
  RC_ASSERT(split_name(StoreName{tenant, name}.text()) == (StoreName{tenant, name}));
}

RC_GTEST_PROP(TenantFrame, FrameAndRestAreTheName, (const std::string& name)) {
  RC_ASSERT(std::string(frame_of(name)) + std::string(split_name(name).name) == name);
}

TEST(QueueOf, IsTheStreamTheScopeOrWhatThePlainKeySays) {
  const std::string acme = frame_for("acme");
  const std::string names[] = {acme + "orders", acme + "dedup:mail:7", acme + "other"};
  EXPECT_EQ(queue_of(Append{.stream = "orders"}), (StoreName{"", "orders"}));
  EXPECT_EQ(queue_of(Append{.stream = names[0]}), (StoreName{"acme", "orders"}));
  EXPECT_EQ(queue_of(Claim{.scope = names[0]}), (StoreName{"acme", "orders"}));
  EXPECT_EQ(queue_of(Set{.name = names[1], .mode = SetMode::kAbsent}), (StoreName{"acme", "mail"}));
  EXPECT_FALSE(queue_of(Set{.name = names[1], .mode = SetMode::kAlways}));
  EXPECT_FALSE(queue_of(Set{.name = names[2], .mode = SetMode::kAbsent}));
  EXPECT_FALSE(queue_of(Get{.name = names[1]}));
}

TEST(DedupKey, HasAQueueAndAJob) {
  const auto key = parse_dedup_key("dedup:mail:order:7");
  ASSERT_TRUE(key);
  EXPECT_EQ(key->queue, "mail");
  EXPECT_EQ(key->job, "order:7") << "a job may have colons in its name";
  for (const std::string_view name :
       {"", "dedup:", "dedup:mail", "dedup::7", "Dedup:mail:7", "x:dedup:mail:7", "dedup"}) {
    EXPECT_FALSE(parse_dedup_key(name)) << name;
  }
}

TEST(Filled, AnEmptyTextIsNone) {
  EXPECT_EQ(if_filled(""), std::nullopt);
  EXPECT_EQ(if_filled(std::string_view("\0", 1)), std::string_view("\0", 1));
}

}  // namespace
}  // namespace hapax::base
