#!/usr/bin/env python3
"""Tests of tidy.py on small sample trees: each rule fires once and stays quiet next door."""

import tempfile
import unittest
from pathlib import Path

import tidy

ROOMS = """[rooms]
api      -
base     api
core     api base ; must not mention: <thread> ::now(
           virtual rand(
journal  api base ; tests: sim
sim      api base journal

[headers]
sodium   base
gtest/   tests
boost/   -
"""

HEADER = "// What it owns.\n#pragma once\n"


class TidyTest(unittest.TestCase):
    def findings(self, files):
        with tempfile.TemporaryDirectory() as root:
            for path, text in files.items():
                file = Path(root) / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
            return [str(finding) for finding in tidy.findings(root)]

    def quiet(self, files):
        self.assertEqual(self.findings(files), [])

    def fires(self, files, *expected):
        found = self.findings(files)
        self.assertEqual(len(found), len(expected), found)
        for text in expected:
            self.assertTrue(any(text in line for line in found), f"{text!r} not in {found}")


class Rooms(TidyTest):
    def tree(self, path, text):
        return {"rooms.txt": ROOMS, path: text}

    def test_listed_edges_are_fine(self):
        self.quiet(self.tree("src/core/a.cc", '#include "base/x.h"\n#include <hapax/ids.h>\n'))

    def test_an_unlisted_edge(self):
        tree = self.tree("src/core/a.cc", '#include <vector>\n#include "journal/x.h"\n')
        self.fires(tree, "src/core/a.cc:2: core may not include journal")

    def test_api_includes_no_room(self):
        tree = self.tree("include/hapax/a.h", HEADER + '#include "base/x.h"\n')
        self.fires(tree, "include/hapax/a.h:3: api may not include base")

    def test_examples_see_the_public_headers_only(self):
        self.quiet(self.tree("examples/a.cc", "#include <hapax/ids.h>\n#include <sodium.h>\n"))
        tree = self.tree("examples/a.cc", '#include "base/x.h"\n')
        self.fires(tree, "examples may not include base")

    def test_only_tests_use_the_rooms_listed_for_tests(self):
        self.quiet(self.tree("src/journal/a_test.cc", '#include "sim/x.h"\n'))
        tree = self.tree("src/journal/a.cc", '#include "sim/x.h"\n')
        self.fires(tree, "journal may not include sim")

    def test_an_include_names_its_room(self):
        self.fires(self.tree("src/core/a.cc", '#include "b.h"\n'), "include without its room")

    def test_forbidden_words(self):
        text = "#include <thread>\nauto t = Clock::now();\nvirtual int f();\nint r = rand();\n"
        expected = [f"core must not mention {word}" for word in ("<thread>", "::now(", "virtual")]
        tree = self.tree("src/core/a.cc", text)
        self.fires(tree, *expected, "src/core/a.cc:4: core must not mention rand(")

    def test_forbidden_words_may_stand_in_comments_strings_and_longer_names(self):
        text = '// virtual\nauto s = "virtual"; int operand(int); int virtually;\n'
        self.quiet(self.tree("src/core/a.cc", text))

    def test_a_library_has_one_room(self):
        self.quiet(self.tree("src/base/a.cc", "#include <sodium.h>\n"))
        tree = self.tree("src/core/a.cc", "#include <sodium.h>\n")
        self.fires(tree, "<sodium.h> is known to base only")
        tree = self.tree("src/base/a.cc", "#include <boost/url.hpp>\n")
        self.fires(tree, "<boost/url.hpp> is used nowhere")

    def test_test_libraries_stay_in_tests(self):
        self.quiet(self.tree("src/core/a_test.cc", "#include <gtest/gtest.h>\n"))
        tree = self.tree("src/core/a.cc", "#include <gtest/gtest.h>\n")
        self.fires(tree, "known to tests only")

    def test_a_folder_that_is_no_room(self):
        self.fires(self.tree("src/attic/a.cc", ""), "room attic is not in rooms.txt")

    def test_a_circle(self):
        tree = {"rooms.txt": "[rooms]\nbase core\ncore base\n"}
        self.fires(tree, "rooms.txt:2: base includes core, which is not listed above it")

    def test_cmake_agrees(self):
        rooms = "[rooms]\napi -\nbase api ; tests: api\n"
        agrees = "hapax_room(api)\nhapax_room(base DEPENDS api\n  TEST_DEPENDS api LIBS x::y)\n"
        self.quiet({"rooms.txt": rooms, "CMakeLists.txt": agrees})
        differs = "hapax_room(api)\nhapax_room(base TEST_DEPENDS api)\n"
        tree = {"rooms.txt": rooms, "CMakeLists.txt": differs}
        self.fires(tree, "rooms.txt:3: hapax_room(base …) in CMakeLists.txt has other edges")


    def test_an_edge_that_nobody_uses(self):
        rooms = "[rooms]\napi -\nbase -\ncore api base\nsim api\n\n[public]\nhapax/a.h base\n"
        cmake = "hapax_room(api)\nhapax_room(base)\nhapax_room(core DEPENDS api base)\n"
        cmake += "hapax_room(sim DEPENDS api)\n"
        tree = {"rooms.txt": rooms, "CMakeLists.txt": cmake}
        self.quiet(tree)
        both = "#include <hapax/b.h>\n#include \"base/c.h\"\n"
        self.quiet(tree | {"src/core/a.cc": both})
        self.quiet(tree | {"src/core/a.cc": "#include <hapax/a.h>\n"})
        one = tree | {"src/core/a.cc": "#include <hapax/b.h>\n", "src/core/a_test.cc": both}
        self.fires(one, "rooms.txt:4: no code of core includes base")

    def test_an_edge_that_no_test_uses(self):
        rooms = "[rooms]\napi -\ncore - ; tests: api\n"
        cmake = "hapax_room(api)\nhapax_room(core TEST_DEPENDS api)\n"
        tree = {"rooms.txt": rooms, "CMakeLists.txt": cmake}
        self.quiet(tree | {"src/core/a_test.cc": "#include <hapax/a.h>\n"})
        self.fires(tree | {"src/core/a_test.cc": ""}, "no test of core includes api")


class Documents(TidyTest):
    ERRORS = {
        "include/hapax/errors.def": 'HAPAX_ERROR(kIo, 1020, "io", 500, kStop)\n',
        "docs/errors/HX1020.md": "# HX1020\n",
    }

    def test_counts(self):
        def tree(number):
            text = f"# A\n\nIt is one of {number} [error codes](docs/errors/HX1020.md).\n"
            return self.ERRORS | {"ARCHITECTURE.md": text}

        for number in ("1", "one", "One"):
            self.quiet(tree(number))
        for number in ("2", "two", "many"):
            what = f'ARCHITECTURE.md:3: "one of {number} [error codes]", but'
            self.fires(tree(number), what)

    def test_a_count_whose_sentence_is_gone(self):
        tree = self.ERRORS | {"ARCHITECTURE.md": "# A\n\nErrors have codes.\n"}
        self.fires(tree, "ARCHITECTURE.md:1: no sentence fits")

    def test_a_count_whose_source_is_gone(self):
        text = "# A\n\nAn id is 48 bytes in memory, a settled claim 72, plus an index.\n"
        tree = {"ARCHITECTURE.md": text, "src/core/id_entry.h": HEADER + "struct IdEntry;\n"}
        tree["src/core/a.cc"] = '#include "core/id_entry.h"\n'
        self.fires(tree, "src/core/id_entry.h does not state what ARCHITECTURE.md counts")

    def test_counts_from_presets(self):
        presets = """{"configurePresets": [
          {"name": "a", "cacheVariables": {"CMAKE_CXX_COMPILER": "g++"}},
          {"name": "b", "cacheVariables": {"CMAKE_CXX_COMPILER": "clang++",
                                           "HAPAX_SANITIZE": "address,undefined"}},
          {"name": "fuzz", "cacheVariables": {"HAPAX_SANITIZE": "fuzzer"}}],
          "testPresets": [{"name": "a"}, {"name": "b"}]}"""

        def tree(told):
            return {"CMakePresets.json": presets, "CONTRIBUTING.md": f"# C\n\n{told}\n"}

        self.quiet(tree("two compilers and two sanitizers"))
        self.fires(tree("two compilers and three sanitizers"), "CMakePresets.json has 2")

    def test_the_table_of_errors(self):
        def tree(row):
            return self.ERRORS | {"docs/errors/README.md": "# E\n\n" + row}

        good = "| [HX1020](HX1020.md) | `io` | stop | 500 |\n"
        self.quiet(tree(good))
        for old, new in (("stop", "later"), ("500", "503"), ("`io`", "`disk`")):
            told = "README.md:3: HX1020 is not told as io, stop, 500"
            self.fires(tree(good.replace(old, new)), told)
        self.fires(tree(""), "README.md:1: HX1020 is not told")
        more = {"docs/errors/HX1021.md": "# X\n"}
        other = good + good.replace("1020", "1021")
        self.fires(tree(other) | more, "HX1021 is not in include", "no such error in errors.def")

    def test_every_page_is_in_the_index(self):
        page = {"docs/guide/a.md": "# A\n"}
        self.quiet(page | {"docs/README.md": "# D\n\n[a](guide/a.md)\n"})
        self.fires(page | {"docs/README.md": "# D\n"}, "docs/README.md:1: guide/a.md is not in it")

    def test_symbols(self):
        code = {"src/a.cc": "// gone()\nvoid Turn::emit() {}\n", "src/b.cc": "int other;\n"}

        def tree(text):
            return code | {"ARCHITECTURE.md": f"# A\n\n{text}\n"}

        self.quiet(tree("`Turn::emit`, `Turn`, `src/`, `b.cc`\n\n```\n`fenced`\n```\n"))
        for name in ("Turn::other", "gone", "Turn::emit(Batch)"):
            what = f"ARCHITECTURE.md:3: `{name}` is nowhere in the tree"
            self.fires(tree(f"`{name}`"), what)

    def test_the_diagram(self):
        def tree(drawn):
            rooms = "[rooms]\napi -\nbase -\nhttp -\nresp -\n"
            return {"rooms.txt": rooms, "ARCHITECTURE.md": f"# A\n\n```\n{drawn}```\n"}

        self.quiet(tree("api (x)\n └ base   words, more\n    ├ resp, http  the protocols\n"))
        lacks = tree("api (x)\n └ base\n    ├ http  the protocols\n")
        self.fires(lacks, "ARCHITECTURE.md:4: the room resp is not drawn")
        more = tree("api (x)\n └ base\n    ├ attic\n    └ resp, http\n")
        self.fires(more, "ARCHITECTURE.md:6: attic is drawn but is not a room")

    def test_the_door_of_a_room(self):
        def tree(door):
            files = {"rooms.txt": "[rooms]\nbase -\n", "src/base/a.cc": "int a;\n"}
            files["ARCHITECTURE.md"] = "# A\n"
            return files | ({"src/base/README.md": door} if door else {})

        lines = "- **For:** a\n- **Owns:** b\n- **Must not know:** c\n- **Start reading at** d\n"
        self.quiet(tree("# base\n\n" + lines))
        self.fires(tree(""), "rooms.txt:2: src/base/README.md is missing")
        self.fires(tree("# core\n\n" + lines), "src/base/README.md:1: this is not how the door")
        self.fires(tree("# base\n\n" + lines[13:]), "src/base/README.md:1: this is not how")


class Text(TidyTest):
    def test_unfinished_work(self):
        for text in ("For now it", "in a real system", "TODO later", "FIXME", "a placeholder"):
            self.fires({"docs/a.md": f"# A\n\n{text}\n"}, "docs/a.md:3:")

    def test_a_todo_with_its_issue_is_fine(self):
        self.quiet({"src/a.cc": "// TODO(#12): fence it.\nchar name[] = \"/tmp/XXXXXX\";\n"})

    def test_machine_paths_and_hosts(self):
        for text in ("see /home/me/x", "(/work/x)", "https://registry.example.com/x"):
            self.fires({"docs/a.md": f"# A\n\n{text}\n"}, "exists on one machine only")
        self.quiet({"docs/a.md": "# A\n\nhttps://example.com/home/x and tests/root/a\n"})

    def test_columns(self):
        self.quiet({"src/a.cc": "/" * 100 + "\n"})
        self.fires({"src/a.cc": "/" * 101 + "\n"}, "src/a.cc:1: 101 columns")

    def test_root_allow_list(self):
        self.fires({"PLAN.txt": ""}, "PLAN.txt:1: does not belong in the root")

    def test_one_title_and_living_links(self):
        good = "# A\n\n```\n# no title\n[x](gone.md)\n```\n[b](b.md#part) [c](http://c.org) `[](y)`"
        self.quiet({"docs/a.md": good, "docs/b.md": "# B\n"})
        self.fires({"docs/a.md": "# A\n\n# B\n"}, "2 lines `# Title`")
        self.fires({"docs/a.md": "# A\n[b](b.md)\n"}, "docs/a.md:2: the link b.md leads nowhere")

    def test_links_stay_inside(self):
        self.fires({"README.md": "# A\n[b](../)\n"}, "the link ../ leads nowhere")

    def test_error_pages(self):
        table = 'HAPAX_ERROR(kIo, 7, "io", 500, kStop)\n'
        page = "# HX0007\n"
        self.quiet({"include/hapax/errors.def": table, "docs/errors/HX0007.md": page})
        self.fires({"include/hapax/errors.def": table}, "write docs/errors/HX0007.md")
        self.fires({"docs/errors/HX0007.md": page}, "no such error in errors.def")
        twice = {"include/hapax/errors.def": table * 2, "docs/errors/HX0007.md": page}
        self.fires(twice, "errors.def:2: number 7 is already taken")

    def test_limits(self):
        header = HEADER + (
            "inline constexpr std::size_t kOpsMax = 10'000;  // a number\n"
            "inline constexpr std::size_t kBytesMax = std::size_t{8} << 20;\n"
            "inline constexpr std::chrono::seconds kWindowMin{1};\n"
            "inline constexpr Duration kLeaseMin{1};\n"
            "inline constexpr Duration kDelayMax{\n    std::chrono::days{30}};\n"
        )
        rows = {
            "kOpsMax": "10,000",
            "kBytesMax": "8,388,608 (8 MiB)",
            "kWindowMin": "1 s",
            "kLeaseMin": "1 ms",
            "kDelayMax": "2,592,000 s (30 days)",
        }

        def tree(rows):
            table = "".join(f"| `{name}` | {value} | of what |\n" for name, value in rows.items())
            return {
                "include/hapax/limits.h": header,
                "docs/reference/limits.md": "# Limits\n\n" + table,
            }

        self.quiet(tree(rows))
        for name, value in rows.items():
            wrong = value.replace("1", "2").replace("8", "9").replace("2,592", "2,593")
            where = f"docs/reference/limits.md:{3 + list(rows).index(name)}: {name} is"
            self.fires(tree(rows | {name: wrong}), where)
            rest = {other: row for other, row in rows.items() if other != name}
            self.fires(tree(rest), f"{name} is not in docs/reference/limits.md")
        self.fires(tree(rows | {"kOldMax": "7"}), "kOldMax is not in include/hapax/limits.h")
        self.fires(tree(rows | {"kLeaseMin": "1"}), "kLeaseMin is 1 ms, not 1")

    def test_invariants(self):
        document = {"docs/internals/invariants.md": "# I\n\n| L2 | a failed sync is final |\n"}
        code, test = {"src/a.cc": "// L2: stop.\n"}, {"src/a_test.cc": "// L2: stops.\n"}
        self.quiet(document | code | test)
        self.fires(document | code, "invariants.md:3: no test mentions L2")
        self.fires(document | test, "no line of code mentions L2")
        self.quiet(document | code | test | {"src/b.cc": "// M9: of another list.\n"})
        unknown = {"src/b.cc": "// L9: what?\n"}
        self.fires(document | code | test | unknown, "src/b.cc:1: L9 is not an invariant")


class Code(TidyTest):
    def body(self, lines):
        return "{\n" + "  step();\n" * (lines - 2) + "}\n"

    def test_long_functions(self):
        self.quiet({"src/a.cc": f"void f() {self.body(70)}void g() {self.body(70)}"})
        self.fires({"src/a.cc": f"\nvoid f() {self.body(71)}"}, "src/a.cc:2: function of 71 lines")

    def test_long_functions_hide_nowhere(self):
        body = self.body(75)
        for text in (
            f"namespace a {{\nclass B {{\n public:\n  void f() {body}}};\n}}\n",
            f"template <class T>\nstruct A {{\n  A() : x_{{1}}, y_{{2}} {body}}};\n",
            f"template <class T>\nResult<T> f(T x) const noexcept {body}",
            f"TEST(A, Works) {body}",
        ):
            found = self.findings({"src/a.cc": text})
            self.assertEqual(len(found), 1, text)

    def test_long_classes_and_tables_are_no_functions(self):
        many = "  int x(int y);\n" * 80
        self.quiet({"src/a.cc": f"class A : public B<C> {{\n{many}}};\n"})
        self.quiet({"src/a.cc": f"template <class T>\nstruct alignas(8) A {{\n{many}}};\n"})
        rows = "  {1, f(2)},\n" * 80
        self.quiet({"src/a.cc": f"constexpr Row kRows[] = {{\n{rows}}};\n"})

    def test_long_files(self):
        self.quiet({"src/a.cc": "//\n" * 600, "tests/a.cc": "//\n" * 601})
        self.fires({"src/a.cc": "//\n" * 601}, "601 lines")

    def test_names(self):
        self.fires({"src/id_manager.cc": ""}, '"manager" says nothing')
        self.fires({"src/a.cc": "class StoreHelper {};\n"}, "StoreHelper is named after a role")
        self.quiet({"src/managed.cc": "class Processing;\n"})

    def test_no_sleeping_tests(self):
        text = "std::this_thread::sleep_for(1s);\n"
        self.fires({"src/a_test.cc": text}, "src/a_test.cc:1: sleep_for in a test")
        self.quiet({"src/a.cc": text})

    def test_columns_have_names(self):
        for read in (
            "rows.at(0, 3)",
            "rows->number(row, 12)",
            "(*rows)[i][0].bytes",
            "(*row)[1].number",
            "row[2].is_null()",
            "rows.at(0, static_cast<Column>(2))",
            "::PQgetvalue(result, cell(row), 1)",
            "sqlite3_column_int64(statement, 0)",
        ):
            self.fires({"src/a.cc": f"use({read});\n"}, "is a column by position")
            self.quiet({"examples/a.cc": f"use({read});\n"})
        for read in ("rows.at(0, kName)", "row[kName].bytes", "list.at(0)", "row[0] = 1"):
            self.quiet({"src/a.cc": f"use({read});\n"})

    def test_temporaries_inside_co_await(self):
        for call in ("f([x] { g(); })", "f(Opts{.name = n})", "f(\n    {a, b})"):
            self.fires({"src/a.cc": f"auto r = co_await {call};\n"}, "temporary inside co_await")
        self.quiet({"src/a.cc": "auto r = co_await f(std::move(opts), list[i](2), T(3));\n"})

    def test_assert_stays_on(self):
        self.fires({"rooms.txt": ROOMS, "src/base/a.cc": "assert(x);\n"}, "use HAPAX_ASSERT")
        self.quiet({"rooms.txt": ROOMS, "src/base/a.cc": "static_assert(x);\n"})

    def test_headers(self):
        user = {"src/b.cc": '#include "a.h"\n'}
        self.quiet(user | {"src/a.h": HEADER})
        self.fires(user | {"src/a.h": "#pragma once\n"}, "does not open with a comment")
        self.fires(user | {"src/a.h": "// A.\n"}, "no #pragma once")
        self.fires({"src/a.h": HEADER}, "nobody includes this header")


if __name__ == "__main__":
    unittest.main()
