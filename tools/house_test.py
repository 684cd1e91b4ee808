#!/usr/bin/env python3
"""Tests of house.py on small sample trees, and of house_path.py on a profile written by hand."""

import tempfile
import unittest
from pathlib import Path

import house
import house_path
from tidy_tree import Tree

ROOMS = """[rooms]
api      -
base     api
http     api base ; tests: net
net      api

[public]
hapax/result.h base
"""


def tree_of(files):
    with tempfile.TemporaryDirectory() as root:
        for path, text in ({"rooms.txt": ROOMS} | files).items():
            file = Path(root) / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        return Tree(root)


class Types(unittest.TestCase):
    def shared(self, one, other):
        found = house.measure_types(tree_of({"src/net/a.h": one, "src/http/b.cc": other}))
        return list(found["shared"])

    def test_a_name_of_two_rooms(self):
        for one in ("struct Watch {};", "class Watch final : public net::X<int> {};"):
            for other in ("enum class Watch : int { kA };", "using Watch = std::function<void()>;"):
                text = "namespace hapax::http {\nvoid f();\n" + other + "\n}"
                self.assertEqual(self.shared(one, text), ["Watch"], (one, other))

    def test_templates_and_attributes(self):
        one = "template <class T>\nclass [[nodiscard]] Watch {\n  T x;\n};"
        self.assertEqual(self.shared(one, "struct alignas(8) Watch {};"), ["Watch"])

    def test_the_name_of_a_declaration_or_of_the_same_type_is_no_second_one(self):
        one = "struct Watch {};"
        for other in ("struct Watch;", "using Watch = net::Watch;", "using net::Watch;",
                      "void f(struct Watch* w) {}", "// struct Watch {};"):
            self.assertEqual(self.shared(one, other), [], other)

    def test_inner_types_have_their_own_address(self):
        self.assertEqual(self.shared("struct Found {};", "class Router { struct Found {}; };"), [])
        self.assertEqual(self.shared("struct Found {};", "void f() { struct Found {}; }"), [])

    def test_hidden_types_count_beside_a_known_one_only(self):
        hidden = "namespace {\nstruct Row {};\n}"
        self.assertEqual(self.shared("struct Row {};", hidden), ["Row"])
        self.assertEqual(self.shared(hidden, hidden), [])

    def test_idioms_hold_for_their_rooms_only(self):
        self.assertEqual(self.shared("class Session {};", "class Session {};"), [])
        third = {"src/net/a.h": "class Session {};", "src/base/b.h": "class Session {};"}
        self.assertEqual(list(house.measure_types(tree_of(third))["shared"]), ["Session"])


class Edges(unittest.TestCase):
    def test_unused_edges(self):
        files = {
            "src/base/a.h": "#include <hapax/x.h>\n",
            "src/http/b.cc": '#include "base/a.h"\n',
            "src/net/c.cc": "#include <hapax/x.h>\n",
        }
        found = house.measure_edges(tree_of(files))
        self.assertEqual(found, {"code": ["http api"], "tests": ["http net"]})
        files["src/http/b_test.cc"] = '#include "net/c.h"\n#include <hapax/x.h>\n'
        found = house.measure_edges(tree_of(files))
        self.assertEqual(found, {"code": ["http api"], "tests": []})

    def test_a_public_header_uses_the_room_with_its_code(self):
        found = house.measure_edges(tree_of({"src/http/b.cc": "#include <hapax/result.h>\n"}))
        self.assertNotIn("http base", found["code"])


class Sizes(unittest.TestCase):
    def test_shares_and_lengths(self):
        text = "// Why.\n\nint f() {\n  return 1;\n}\nint g() { return 2; }\n"
        found = house.measure_sizes(tree_of({"src/net/a.cc": text, "src/net/a_test.cc": "int x;"}))
        self.assertEqual(found["net"]["files"], 1)
        self.assertEqual(found["net"]["comments"], 0.2)
        self.assertEqual(found["net"]["function_lines"], {"median": 1, "p90": 3, "max": 3})
        self.assertEqual(found["all"]["file_lines"]["max"], 6)


PROFILE = """
fl=/x/boost/asio.hpp
fn=run
7 1
cfi=build/house/src/http/door.cc
cfn=http::Door::serve(int)
calls=50 3
7 900
fl=build/house/src/http/door.cc
fn=http::Door::serve(int)
3 10
cfn=rest::Router::find(int) const
calls=100 9
4 90
cfi=build/house/src/net/link.h
cfn=net::Link::Link()
calls=50 2
4 90
cfi=/tree/src/net/timer.cc
cfn=net::Timer::tick()
calls=3 1
4 5
cfi=build/house/src/engine/store.cc
cfn=hapax::engine::MachineStore::submit(hapax::Commit const&, X)
calls=50 2
4 5
fn=rest::Router::find(int) const
9 80
cfi=build/house/src/http/names.cc
cfn=http::is_name(int)
calls=100 1
4 5
fi=build/house/src/net/link.h
1 2
fe=build/house/src/http/door.cc
8 80
fl=build/house/src/net/link.h
fn=net::Link::Link()
2 1
"""


class Paths(unittest.TestCase):
    def setUp(self):
        self.profile = house_path.Profile(PROFILE, "/tree")

    def test_calls_and_first_lines(self):
        for file, function, calls, line in (
            ("src/http/door.cc", "http::Door::serve(int)", 50, 3),
            ("src/http/door.cc", "rest::Router::find(int) const", 100, 8),
            ("src/net/link.h", "net::Link::Link()", 50, 2),
        ):
            self.assertEqual(self.profile.calls[file, function], calls)
            self.assertEqual(self.profile.first_line[file, function], line)

    def test_the_path_has_what_somebody_wrote_and_every_append_runs(self):
        files = {
            "src/http/door.cc": "\n" * 9,
            "src/http/names.cc": "bool is_name(int);\n",
            "src/net/link.h": "\nstruct Link {\n};\n",
            "src/net/timer.cc": "void tick() {}\n",
        }
        found = house_path.summarize([self.profile], tree_of(files))
        self.assertEqual(list(found["whole"]), ["src/http/door.cc", "src/http/names.cc"])
        self.assertEqual(found["spine"], ["src/http/door.cc"])
        self.assertEqual(found["rooms"], {"whole": ["http"], "spine": ["http"]})
        self.assertEqual(found["routings_per_append"], 2)


if __name__ == "__main__":
    unittest.main()
