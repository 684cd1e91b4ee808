#!/usr/bin/env python3
"""Checks the rules of the house that no compiler knows.

Usage: tidy.py [ROOT]
Prints one line per finding, `file:line: what; what to do`, and exits 1 if there is any.
The rooms and their edges come from rooms.txt. Reading is line by line and approximate on purpose:
a rule that needs a real parser belongs to clang-tidy.
"""

import re
import sys
from pathlib import Path

from tidy_documents import (
    check_counts,
    check_diagram,
    check_doors,
    check_error_table,
    check_index,
    check_symbols,
)
from tidy_tree import Finding, Tree, unused_edges

ROOT_ALLOWED = set(
    """.ci .clang-format .clang-tidy .editorconfig .gitignore ARCHITECTURE.md CHANGELOG.md
    CMakeLists.txt CMakePresets.json CONTRIBUTING.md LICENSE README.md SECURITY.md bench changes
    cmake dev docs examples include migrations packaging rooms.txt sdk src tests tools
    web""".split()
)
COLUMNS_MAX = 100
FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 600
# Both quote what the rules forbid.
EXEMPT = {"tools/tidy.py", "tools/tidy_test.py"}

PHRASES = re.compile(
    r"\b(for now|in a real|placeholder|simplified|not implemented yet)\b"
    r"|(?-i:\b(?:FIXME|XXX)\b|\bTODO\b(?!\(#\d+\)))",
    re.IGNORECASE,
)
BANNED_WORDS = {"manager", "processor", "helper", "helpers", "util", "utils", "common", "misc"}
BANNED_TYPE = re.compile(r"\b(?:class|struct)\s+(\w*(?:Manager|Processor|Helper|Util)\w*)")
SLEEP = re.compile(r"\b(?:sleep_for|sleep_until|usleep|nanosleep|time\.sleep)\b")
MACHINE = re.compile(
    r"(?<![\w.}])/(?:work|root|home)/"
    r"|\b(?:registry|artifactory|nexus|mirrors?)\.[\w-]+\.\w+"
    r"|\b(?:localhost|127\.0\.0\.1):\d+/(?:pypi|npm|simple|debian|maven)\b"
)
# rows.at(0, 3), rows[0][3], row[3].bytes, static_cast<Column>(3), and the libraries' own functions.
POSITION = re.compile(
    r"(?:\.|->)(?:at|text|number|bytes|is_null|is_true)\(\s*[\w.>-]+,\s*\d+\s*\)"
    r"|(?:\brow|[\])])\s*\[\s*\d+\s*\]\s*\.(?:bytes|number|kind|is_null)\b"
    r"|\bstatic_cast<\w*Columns?>\(\s*\d+\s*\)"
    r"|\bPQ(?:getvalue|getlength|getisnull)\([^;]*,\s*\d+\s*\)"
    r"|\bsqlite3_column_(?:text|blob|bytes|int|int64|double|type|value)\([^;]*,\s*\d+\s*\)"
)
AWAITED_TEMPORARY = re.compile(r"(?<![\w\])])\[[^\]]*\]\s*[({m]|\b[A-Z]\w*\s*\{|[(,]\s*\{")


def check_edges(tree):
    """Includes go only where rooms.txt lets them."""
    for source in tree.sources:
        if not source.is_cpp or not (source.room in tree.rooms or source.folder == "examples"):
            continue
        room = tree.rooms.get(source.room)
        may = {"api"} if room is None else {source.room, *room.may}
        if room and source.is_test:
            may |= set(room.tests_may)
        for include in source.includes:
            target = "api" if include.name.startswith("hapax/") else include.name.split("/")[0]
            if target in tree.rooms and target not in may:
                what = f"{source.room or source.folder} may not include {target} (see rooms.txt)"
                remedy = "move the code, or decide on a new edge"
                yield Finding(source.path, include.line, what, remedy)
            if source.room and include.quoted and target not in tree.rooms:
                remedy = f'write "room/file.h" for our headers, <{include.name}> for others'
                yield Finding(source.path, include.line, "include without its room", remedy)


def check_mentions(tree):
    """A room keeps its promise: core has no clock, no thread, no chance."""
    for source in tree.sources:
        if not source.is_cpp or source.is_test or source.room not in tree.rooms:
            continue
        for word in tree.rooms[source.room].forbidden:
            before = r"\b" if word[0].isalnum() else ""
            after = r"\b" if word[-1].isalnum() else ""
            pattern = re.compile(before + re.escape(word) + after)
            for line, _ in source.matches(pattern, source.code):
                what = f"{source.room} must not mention {word} (see rooms.txt)"
                yield Finding(source.path, line, what, "pass what is needed as a parameter")


def check_libraries(tree):
    """Each library we did not write is included by one room. An example is a stranger's program."""
    for source in tree.sources:
        if source.folder == "examples" or source.path.startswith("tests/install/"):
            continue
        homes = {source.room, source.folder, "tests" if source.is_test else None}
        for include in source.includes if source.is_cpp else []:
            for prefix, home in tree.headers.items():
                if include.name.startswith(prefix) and home not in homes:
                    where = "used nowhere" if home == "-" else f"known to {home} only"
                    what = f"<{include.name}> is {where} (see rooms.txt)"
                    remedy = "go through that room's own interface"
                    yield Finding(source.path, include.line, what, remedy)


def check_rooms_file(tree):
    """rooms.txt lists rooms top down, and CMakeLists.txt says the same."""
    if not tree.rooms:
        return
    cmake = tree.by_path.get("CMakeLists.txt")
    built = dict(re.findall(r"hapax_room\((\w+)([^)]*)\)", cmake.text)) if cmake else {}
    seen = set()
    for name, room in tree.rooms.items():
        for other in set(room.may) - seen:
            what = f"{name} includes {other}, which is not listed above it"
            yield Finding("rooms.txt", room.line, what, "keep the graph without circles")
        seen.add(name)
        if cmake and cmake_edges(built.get(name, "")) != (set(room.may), set(room.tests_may)):
            what = f"hapax_room({name} …) in CMakeLists.txt has other edges"
            yield Finding("rooms.txt", room.line, what, "make DEPENDS and TEST_DEPENDS agree")
    for source in tree.sources:
        if source.room and source.is_cpp and source.room not in tree.rooms:
            yield Finding(source.path, 1, f"room {source.room} is not in rooms.txt", "list it")


def check_unused_edges(tree):
    """An edge that nobody uses lets in whoever comes next. A room without files is not built."""
    if "CMakeLists.txt" not in tree.by_path:
        return
    built = {source.room for source in tree.sources if source.is_cpp}
    for name, other, for_tests in unused_edges(tree):
        if name not in built:
            continue
        what = f"no {'test' if for_tests else 'code'} of {name} includes {other}"
        remedy = "remove the edge here and in CMakeLists.txt"
        yield Finding("rooms.txt", tree.rooms[name].line, what, remedy)


def cmake_edges(arguments):
    edges = {"DEPENDS": set(), "TEST_DEPENDS": set()}
    keyword = ""
    for word in arguments.split():
        if word.isupper():
            keyword = word
        else:
            edges.setdefault(keyword, set()).add(word)
    return edges["DEPENDS"], edges["TEST_DEPENDS"]


def check_phrases(tree):
    for source in tree.sources:
        if source.path in EXEMPT:
            continue
        for line, found in source.matches(PHRASES):
            remedy = "finish it, or write down the limit (TODO needs its issue: TODO(#12))"
            yield Finding(source.path, line, f'"{found.group()}" announces unfinished work', remedy)
        for line, found in source.matches(MACHINE):
            what = f'"{found.group()}" exists on one machine only'
            yield Finding(source.path, line, what, "use a relative path or a public name")


def check_sizes(tree):
    for source in tree.sources:
        if not source.is_code:
            continue
        for number, line in enumerate(source.lines, 1):
            if len(line) > COLUMNS_MAX:
                what = f"{len(line)} columns, at most {COLUMNS_MAX}"
                yield Finding(source.path, number, what, "break the line")
        if source.folder not in ("src", "include"):
            continue
        if len(source.lines) > FILE_LINES_MAX:
            what = f"{len(source.lines)} lines, at most {FILE_LINES_MAX} per file"
            yield Finding(source.path, 1, what, "find the second idea in it and give it a file")
        for line, length in functions(source) if source.is_cpp else []:
            if length > FUNCTION_LINES_MAX:
                what = f"function of {length} lines, at most {FUNCTION_LINES_MAX}"
                yield Finding(source.path, line, what, "split it where the comments would go")


def functions(source):
    """(first line, number of lines) of each function body, found by counting braces."""
    stack, start = [], 0
    for found in re.finditer(r"[{};]", source.code):
        if found.group() == "{":
            outside = all(kind == "scope" for kind, _ in stack)
            text = source.code[start : found.start()]
            # The declaration begins after blank lines, preprocessor lines and `public:`.
            skipped = re.match(r"(?:\s|#[^\n]*\n|\w+:(?!:))*", text).end()
            stack.append((block_kind(text) if outside else "inner", start + skipped))
        elif found.group() == "}" and stack:
            kind, begin = stack.pop()
            if kind == "body":
                line = source.line_at(begin)
                yield line, source.line_at(found.start()) - line + 1
        if all(kind == "scope" for kind, _ in stack):
            start = found.end()


def block_kind(text):
    """What the brace after this declaration opens: scope, body or data."""
    text = re.sub(r"^\s*#.*$|\balignas\s*\([^()]*\)", "", text, flags=re.MULTILINE)
    while text != (bare := re.sub(r"<[^<>]*>", "", text)):
        text = bare
    if re.search(r"\bnamespace\b|\bextern\s*$|\b(?:class|struct|union|enum)\b[^()]*$", text):
        return "scope"
    # An empty text is the body after a constructor's last {member}.
    is_body = (")" in text and not re.search(r"=\s*$", text)) or not text.strip()
    return "body" if is_body else "data"


def check_names(tree):
    for source in tree.sources:
        if source.folder in ("docs", "") or source.path in EXEMPT:
            continue
        bad = BANNED_WORDS & set(re.split(r"[_\W]+", source.path.lower()))
        for word in sorted(bad):
            remedy = "name the file after its idea"
            yield Finding(source.path, 1, f'"{word}" says nothing as a file name', remedy)
        for line, found in source.matches(BANNED_TYPE, source.code) if source.is_cpp else []:
            what = f"{found.group(1)} is named after a role, not an idea"
            yield Finding(source.path, line, what, "use a word of the glossary")


def check_code_habits(tree):
    for source in tree.sources:
        if source.is_test and source.path not in EXEMPT:
            for line, found in source.matches(SLEEP):
                remedy = "wait for a signal or use the simulated clock"
                yield Finding(source.path, line, f"{found.group()} in a test", remedy)
        if not source.is_cpp:
            continue
        for line, found in source.matches(re.compile(r"\bco_await\b[^;]*"), source.code):
            if AWAITED_TEMPORARY.search(found.group()):
                remedy = "name the lambda or {…} first; g++ 12 frees it twice inside co_await"
                yield Finding(source.path, line, "temporary inside co_await", remedy)
        if source.room and not source.is_test:
            for line, _ in source.matches(re.compile(r"\bassert\s*\("), source.code):
                remedy = "use HAPAX_ASSERT"
                yield Finding(source.path, line, "assert() is gone in release", remedy)


def check_columns(tree):
    """Columns of SQL results have names. An example is a stranger's program."""
    for source in tree.sources:
        if not source.is_cpp or source.folder == "examples":
            continue
        for line, found in source.matches(POSITION, source.code):
            remedy = "name its columns in an enum beside the statement (src/tables/columns.h)"
            yield Finding(source.path, line, f'"{found.group()}" is a column by position', remedy)


def check_headers(tree):
    included = {include.name for source in tree.sources for include in source.includes}
    for source in tree.sources:
        if source.suffix != ".h":
            continue
        if not source.text.startswith("//"):
            remedy = "say what it owns, may touch and must never do"
            yield Finding(source.path, 1, "the header does not open with a comment", remedy)
        if "#pragma once" not in source.text:
            yield Finding(source.path, 1, "no #pragma once", "add it below the first comment")
        short = re.sub(r"^(src|include)/", "", source.path)
        if source.folder == "src" and short not in included:
            yield Finding(source.path, 1, "nobody includes this header", "use it or delete it")


def check_markdown(tree):
    for source in tree.sources:
        if source.suffix != ".md":
            continue
        prose = re.sub(
            r"^(```|~~~).*?^\1|`[^`\n]+`",
            lambda found: re.sub(r"[^\n]", " ", found.group()),
            source.text,
            flags=re.MULTILINE | re.DOTALL,
        )
        titles = re.findall(r"^# .+", prose, re.MULTILINE)
        if len(titles) != 1:
            yield Finding(source.path, 1, f"{len(titles)} lines `# Title`", "keep exactly one")
        for line, found in source.matches(re.compile(r"\]\(([^)\s#]+)[^)]*\)"), prose):
            link = found.group(1)
            if re.match(r"[a-z]+:", link):
                continue
            target = (tree.root / source.path).parent.joinpath(link).resolve()
            if not target.exists() or not target.is_relative_to(tree.root):
                yield Finding(source.path, line, f"the link {link} leads nowhere", "correct it")


def check_error_pages(tree):
    table = tree.by_path.get("include/hapax/errors.def")
    entries = table.matches(re.compile(r"^\s*HAPAX_ERROR\(\s*\w+,\s*(\d+)", re.M)) if table else []
    numbers = {}
    for line, found in entries:
        number = int(found.group(1))
        if number in numbers:
            what = f"number {number} is already taken"
            yield Finding(table.path, line, what, "take a new one, they are never reused")
        numbers[number] = line
        page = f"docs/errors/HX{number:04}.md"
        if page not in tree.by_path:
            yield Finding(table.path, line, f"HX{number:04} has no page", f"write {page}")
    for source in tree.sources:
        found = re.fullmatch(r"docs/errors/HX(\d+)\.md", source.path)
        if found and int(found.group(1)) not in numbers:
            yield Finding(source.path, 1, "no such error in errors.def", "delete the page")


LIMIT = re.compile(r"^inline\s+constexpr\s+([\w:]+)\s+(k\w+)\b([^;]*);", re.MULTILINE)
UNITS = {
    "Duration": 1,
    "milliseconds": 1,
    "seconds": 1_000,
    "minutes": 60_000,
    "hours": 3_600_000,
    "days": 86_400_000,
}


def declared_limit(kind, value):
    """(number, unit) of a declaration in limits.h; the unit is "ms" for a span of time, else ""."""
    value = value.replace("'", "")
    span = re.search(r"std::chrono::(\w+)\s*\{\s*(\d+)", value)
    if span:
        return int(span.group(2)) * UNITS[span.group(1)], "ms"
    numbers = [int(number) for number in re.findall(r"(?<![\w:])\d+", value)]
    number = numbers[0] << numbers[1] if "<<" in value else numbers[0]
    if value.endswith("- 1"):
        number -= 1
    unit = UNITS.get(kind.removeprefix("std::chrono::"))
    return (number, "") if unit is None else (number * unit, "ms")


def documented_limit(cell):
    """(number, unit) of a cell such as `86,400 s (24 h)`."""
    found = re.match(r"\s*([\d,]+)\s*(ms|s)?\b", cell)
    if not found:
        return None
    number = int(found.group(1).replace(",", ""))
    if found.group(2) is None:
        return number, ""
    return number * (1_000 if found.group(2) == "s" else 1), "ms"


def check_limits(tree):
    """docs/reference/limits.md has every limit of limits.h with its value, and no other."""
    header = tree.by_path.get("include/hapax/limits.h")
    document = tree.by_path.get("docs/reference/limits.md")
    if header is None or document is None:
        return
    rows = document.matches(re.compile(r"^\| `(k\w+)` \|([^|]*)\|", re.MULTILINE))
    documented = {found.group(1): (line, found.group(2)) for line, found in rows}
    declared = set()
    for line, found in header.matches(LIMIT, header.code):
        kind, name, value = found.groups()
        declared.add(name)
        if name not in documented:
            yield Finding(header.path, line, f"{name} is not in {document.path}", "add its row")
            continue
        number, unit = declared_limit(kind, value)
        place, cell = documented[name]
        if documented_limit(cell) != (number, unit):
            what = f"{name} is {number:,}{' ' + unit if unit else ''}, not{cell.rstrip()}"
            yield Finding(document.path, place, what, f"correct it, or {header.path}")
    for name, (line, _) in documented.items():
        if name not in declared:
            yield Finding(document.path, line, f"{name} is not in {header.path}", "remove its row")


def check_invariants(tree):
    """Every numbered invariant has a place in the code and a test, and none is cited that is not.

    A citation is `// L2:` with a letter of the document; other letters number other things.
    """
    document = tree.by_path.get("docs/internals/invariants.md")
    if document is None:
        return
    rows = document.matches(re.compile(r"^\|\s*([A-Z]\d{1,2})\s*\|", re.MULTILINE))
    defined = {found.group(1): line for line, found in rows}
    cpp = [source for source in tree.sources if source.is_cpp]
    for name, line in defined.items():
        word = re.compile(rf"\b{name}\b")
        places = {source.is_test for source in cpp if word.search(source.text)}
        for is_test, kind in ((False, "line of code"), (True, "test")):
            if is_test not in places:
                what = f"no {kind} mentions {name}"
                yield Finding(document.path, line, what, f"write `// {name}:` where it is kept")
    letters = "".join({name[0] for name in defined}) or "-"
    for source in cpp:
        for line, found in source.matches(re.compile(rf"//\s*([{letters}]\d{{1,2}}):")):
            if found.group(1) not in defined:
                what = f"{found.group(1)} is not an invariant of {document.path}"
                yield Finding(source.path, line, what, "define it or correct the number")


def check_root(tree):
    for name in sorted({path.split("/")[0] for path in tree.paths} - ROOT_ALLOWED):
        remedy = "put it into a folder, or add it to ROOT_ALLOWED in tools/tidy.py"
        yield Finding(name, 1, "does not belong in the root", remedy)


CHECKS = [check for name, check in list(globals().items()) if name.startswith("check_")]


def findings(root):
    tree = Tree(root)
    return [finding for check in CHECKS for finding in check(tree)]


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    found = findings(root)
    for finding in sorted(found):
        print(finding)
    if found:
        print(f"tidy: {len(found)} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
