#!/usr/bin/env python3
"""Measures how well the house reads.

Usage: house.py [--json] [types | edges | sizes | path]...
Without a word: types, edges and sizes, which only read the sources. `path` builds a server and runs
it under callgrind (house_path.py says how).

types  names of types that mean something in several rooms, at most 20 wanted
edges  edges of rooms.txt that no include uses, none wanted
sizes  comments, functions and files, room by room
path   the files and rooms between the bytes of one append over HTTP and Store::submit, and back;
       at most 16 and 8 wanted

Nothing fails here: it prints numbers. The rules that must hold are in tidy.py.
"""

import json
import re
import statistics
import sys
from collections import defaultdict
from pathlib import Path

from tidy import FUNCTION_LINES_MAX, functions
from tidy_tree import Tree, unused_edges

ROOT = Path(__file__).resolve().parent.parent
TYPES_WANTED = 20

# A name may stand in these rooms because they say the same thing in each; with the reason.
TWINS = "the same role, once per database"
PROTOCOLS = "the same role, once per protocol"
FILE_SECTION = "config names each part of hapax.yaml after what it sets up"
IDIOMS = {
    "Connection": ({"net", "postgres", "sqlite"}, "to a peer or a database, always with its room"),
    "CheckupOptions": ({"postgres", "sqlite"}, TWINS),
    "MigrateOptions": ({"postgres", "sqlite"}, TWINS),
    "OutboxSource": ({"postgres", "sqlite"}, TWINS),
    "OutboxSourceOptions": ({"postgres", "sqlite"}, TWINS),
    "Parser": ({"http", "resp"}, PROTOCOLS),
    "ParserLimits": ({"http", "resp"}, PROTOCOLS),
    "Session": ({"http", "net", "resp"}, "net's port and its body in each protocol"),
    "Jwt": ({"auth", "config"}, FILE_SECTION),
    "Log": ({"config", "serve"}, FILE_SECTION),
    "Outbox": ({"api", "config"}, FILE_SECTION),
    "Server": ({"config", "net"}, FILE_SECTION),
    "Stream": ({"config", "core"}, FILE_SECTION),
    "TenantLimits": ({"config", "access"}, FILE_SECTION),
    "Tenants": ({"config", "core"}, FILE_SECTION),
}

TYPE = re.compile(
    r"\b(?:class|struct|union|enum(?:\s+(?:class|struct))?)\s+(?:\[\[.*?\]\]\s*)?(\w+)\s*"
    r"(?:final\s*)?(?::(?!:)[^;{}]*)?$",
    re.DOTALL,
)
ALIAS = re.compile(r"\busing\s+(\w+)\s*=(.*)$", re.DOTALL)


def declared_types(source):
    """(name, line, place) of each type that is defined; place is file, room or inner.

    `file` is an anonymous namespace, `inner` a class or a function. A declaration without a body,
    and an alias that keeps its target's name, define nothing.
    """
    stack, start = [], 0
    for found in re.finditer(r"[{};]", source.code):
        text, start = source.code[start : found.start()], found.end()
        line = source.line_at(found.start())
        if found.group() == "}":
            del stack[-1:]
        elif found.group() == ";":
            alias = ALIAS.search(text)
            if alias and not re.search(rf"\b{alias.group(1)}\s*(<.*>)?\s*$", alias.group(2), re.S):
                yield alias.group(1), line, place_of(stack)
        else:
            scope, name = opened_by(text)
            if name:
                yield name, line, place_of(stack)
            stack.append(scope)


def opened_by(text):
    """The scope that the brace after this text opens, and the name of the type it defines."""
    text = re.sub(r"^\s*#.*$|\balignas\s*\([^()]*\)", "", text, flags=re.MULTILINE)
    while text != (bare := re.sub(r"<[^<>]*>", "", text)):
        text = bare
    space = re.search(r"\bnamespace\s*([\w:]*)\s*$", text)
    if space:
        return ("room" if space.group(1) else "file"), None
    if re.search(r"\bextern\s*$", text):
        return "room", None
    found = TYPE.search(text)
    return "inner", found.group(1) if found else None


def place_of(stack):
    return next((kind for kind in ("inner", "file") if kind in stack), "room")


def measure_types(tree):
    """Names of types that several rooms define.

    An inner type is read with the name of its class before it and does not count. A type of an
    anonymous namespace counts if it takes the name of another room's own type; two that are both
    hidden in a file never meet.
    """
    places, total = defaultdict(lambda: defaultdict(list)), 0
    for source in tree.sources:
        if not source.is_cpp or source.is_test or source.room not in tree.rooms:
            continue
        for name, line, place in declared_types(source):
            if place != "inner":
                total += 1
                places[name][source.room].append((place, f"{source.path}:{line}"))
    shared, idioms = {}, {}
    for name, rooms in sorted(places.items()):
        known = any(place == "room" for found in rooms.values() for place, _ in found)
        if len(rooms) < 2 or not known:
            continue
        allowed, _ = IDIOMS.get(name, (set(), ""))
        where = {room: [at for _, at in found] for room, found in sorted(rooms.items())}
        (idioms if set(rooms) <= allowed else shared)[name] = where
    return {"types": total, "shared": shared, "idioms": idioms}


def measure_edges(tree):
    unused = {"code": [], "tests": []}
    for room, other, for_tests in unused_edges(tree):
        unused["tests" if for_tests else "code"].append(f"{room} {other}")
    return unused


def spread(values):
    """Median, 90th percentile and maximum."""
    if not values:
        return {"median": 0, "p90": 0, "max": 0}
    ordered = sorted(values)
    return {
        "median": statistics.median_low(ordered),
        "p90": ordered[min(len(ordered) - 1, len(ordered) * 9 // 10)],
        "max": ordered[-1],
    }


def measure_sizes(tree):
    """Comment lines as a share of the lines that are not blank; tests are left out."""
    rooms = {}
    for name in [*tree.rooms, "all"]:
        sources = [
            source
            for source in tree.sources
            if source.is_cpp
            and not source.is_test
            and source.room in tree.rooms
            and name in (source.room, "all")
        ]
        lines = [line.strip() for source in sources for line in source.lines if line.strip()]
        lengths = [length for source in sources for _, length in functions(source)]
        comments = sum(line.startswith("//") for line in lines)
        rooms[name] = {
            "files": len(sources),
            "comments": round(comments / len(lines), 3) if lines else 0,
            "functions": len(lengths),
            "too_long": sum(length > FUNCTION_LINES_MAX for length in lengths),
            "function_lines": spread(lengths),
            "file_lines": spread([len(source.lines) for source in sources]),
        }
    return rooms


def measure_path(tree):
    import house_path  # Only this one needs a server.

    return house_path.measure(tree)


def print_types(found):
    shared = found["shared"]
    print(f"types: {len(shared)} of {found['types']} names mean something in several rooms", end="")
    print(f" (wanted: at most {TYPES_WANTED}), and {len(found['idioms'])} are idioms")
    for name, rooms in shared.items():
        print(f"  {name}: " + ", ".join(at for found in rooms.values() for at in found))


def print_edges(found):
    for kind, edges in found.items():
        print(f"edges for {kind}: {len(edges)} unused (wanted: 0)")
        for edge in edges:
            print("  " + " → ".join(edge.split()))


def print_sizes(found):
    head = ("room", "files", "comments", "functions", "median", "p90", "max")
    head += (f"over {FUNCTION_LINES_MAX}", "file: median", "p90", "max")
    print(("{:10}" + " {:>9}" * 7 + " {:>13}" + " {:>5}" * 2).format(*head))
    for room, sizes in found.items():
        function, file = sizes["function_lines"], sizes["file_lines"]
        row = (room, sizes["files"], f"{sizes['comments']:.1%}", sizes["functions"])
        row += (*function.values(), sizes["too_long"], *file.values())
        print(("{:10}" + " {:>9}" * 7 + " {:>13}" + " {:>5}" * 2).format(*row))


def print_path(found):
    import house_path

    house_path.show(found)


MEASURES = {
    "types": (measure_types, print_types),
    "edges": (measure_edges, print_edges),
    "sizes": (measure_sizes, print_sizes),
    "path": (measure_path, print_path),
}


def main():
    wanted = [word for word in sys.argv[1:] if word != "--json"] or ["types", "edges", "sizes"]
    if set(wanted) - set(MEASURES):
        sys.exit(__doc__)
    tree = Tree(ROOT)
    found = {name: MEASURES[name][0](tree) for name in wanted}
    if "--json" in sys.argv:
        print(json.dumps(found, indent=2, ensure_ascii=False))
        return
    for name in wanted:
        MEASURES[name][1](found[name])


if __name__ == "__main__":
    main()
