#include "metrics/page.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

#include "base/utf8.h"

namespace hapax::metrics {
namespace {

std::string label(std::string_view name) {
  Page page;
  page.gauge("g", "Help.");
  page.sample({{"queue", name}}, std::uint64_t{1});
  const std::string& text = page.text();
  const std::size_t begin = text.find("queue=\"") + 7;
  return text.substr(begin, text.rfind('"') - begin);
}

TEST(Page, EscapesWhatWouldEndALabel) {
  EXPECT_EQ(label("a\"b\\c\nd"), R"(a\"b\\c\nd)");
  EXPECT_EQ(label("J\xc3\xbcrgen"), "J\xc3\xbcrgen");
}

// One name that is not UTF-8, or one series twice, and Prometheus refuses the whole page.
TEST(Page, IsUtf8AndKeepsNamesApart) {
  EXPECT_EQ(label("a\xff"),
            "a\xef\xbf\xbd"
            "ff");
  // The first and the last would be the same if U+FFFD stood for itself.
  constexpr std::string_view kReplacedAndText =
      "\xef\xbf\xbd"
      "ff";
  const std::string_view names[] = {"\xff", "\xfe",         "\xff\xfe",     "\xef\xbf",
                                    "\xc3", "\xed\xa0\x80", "\xef\xbf\xbd", kReplacedAndText};
  std::set<std::string> labels;
  for (const std::string_view name : names) {
    EXPECT_TRUE(base::is_utf8(label(name)));
    EXPECT_TRUE(labels.insert(label(name)).second) << label(name);
  }
}

TEST(Page, AHistogramKeepsItsLabelsInEverySample) {
  Histogram values({0.5, 2});
  values.observe(0.1);
  values.observe(1);
  values.observe(9);
  Page page;
  page.histogram("h", "Help.");
  page.sample({{"workflow", "erp"}}, values);
  EXPECT_EQ(page.text(),
            "# HELP h Help.\n# TYPE h histogram\n"
            "h_bucket{workflow=\"erp\",le=\"0.5\"} 1\n"
            "h_bucket{workflow=\"erp\",le=\"2\"} 2\n"
            "h_bucket{workflow=\"erp\",le=\"+Inf\"} 3\n"
            "h_sum{workflow=\"erp\"} 10.1\nh_count{workflow=\"erp\"} 3\n");
}

}  // namespace
}  // namespace hapax::metrics
