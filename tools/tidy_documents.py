"""Checks that the documents say what the tree says: counts, tables, names of code.

A count in a sentence is looked for by the words around it. If the sentence is written in another
way its row in COUNTS must follow: a row that fits nothing is a finding too.
"""

import json
import re
from typing import Callable, NamedTuple

from tidy_tree import Finding

WORDS = "zero one two three four five six seven eight nine ten eleven twelve".split()


class Count(NamedTuple):
    document: str
    sentence: str  # a regular expression; its group is the number, as figures or as a word
    source: str  # the file with the truth
    count: Callable  # from that file's text to the number as text, or None


def occurrences(pattern):
    return lambda text: str(len(re.findall(pattern, text, re.MULTILINE)))


def stated(pattern):
    """The number that the file states itself."""

    def read(text):
        found = re.search(pattern, text, re.MULTILINE)
        return found.group(1).replace("'", "") if found else None

    return read


def compilers(text):
    variables = [preset["cacheVariables"] for preset in json.loads(text)["configurePresets"]]
    return str(len({some.get("CMAKE_CXX_COMPILER") for some in variables} - {None}))


def sanitizers(text):
    """Those of the presets with tests; the fuzzers use them too."""
    presets = json.loads(text)
    tested = {preset["name"] for preset in presets["testPresets"]}
    found = set()
    for preset in presets["configurePresets"]:
        if preset["name"] in tested:
            found |= set(preset["cacheVariables"].get("HAPAX_SANITIZE", "").split(","))
    return str(len(found - {""}))


ERRORS = ("include/hapax/errors.def", occurrences(r"^\s*HAPAX_ERROR\("))
THREADS = ("src/engine/embedded_store.h", occurrences(r"^\s*std::thread \w+;"))
PRESETS = "CMakePresets.json"
CMAKE = "CMakeLists.txt"
HTTP_PORT = ("src/config/config.h", stated(r"http\{\"[\d.]+:(\d+)"))
RESP_PORT = ("src/config/config.h", stated(r"resp\{\"[\d.]+:(\d+)"))
TIDY = "tools/tidy.py"

COUNTS = [
    Count("ARCHITECTURE.md", r"one of (\w+) \[error codes\]", *ERRORS),
    Count("ARCHITECTURE.md", r"(\w+) threads besides the callers", *THREADS),
    Count("docs/internals/threads.md", r"has (\w+) threads of its own", *THREADS),
    Count("ARCHITECTURE.md", r"An id is (\d+) bytes",
          "src/core/id_entry.h", stated(r"sizeof\(IdEntry\) == (\d+)")),
    Count("ARCHITECTURE.md", r"settled claim (\d+),",
          "src/core/settled_entry.h", stated(r"sizeof\(SettledEntry\) == (\d+)")),
    Count("ARCHITECTURE.md", r"ends with exit code (\d+)",
          "src/cli/commands.h", stated(r"kExitIo = (\d+)")),
    Count("README.md", r"(\w+) compilers", PRESETS, compilers),
    Count("README.md", r"compilers(?:,| and) (\w+) sanitizers", PRESETS, sanitizers),
    Count("CONTRIBUTING.md", r"(\w+) compilers", PRESETS, compilers),
    Count("CONTRIBUTING.md", r"compilers(?:,| and) (\w+) sanitizers", PRESETS, sanitizers),
    Count("README.md", r"C\+\+(\d+)\.", CMAKE, stated(r"CMAKE_CXX_STANDARD (\d+)")),
    Count("README.md", r"The version is (\d+\.\d+)", CMAKE, stated(r"VERSION (\d+\.\d+)\.")),
    Count("README.md", r"on `127\.0\.0\.1:(\d+)` \(HTTP\)", *HTTP_PORT),
    Count("README.md", r"`(\d+)` \(the Redis protocol\)", *RESP_PORT),
    Count("README.md", r"remembered for a window\*\* \((\d+) hours",
          "include/hapax/limits.h", stated(r"kWindowDefault\{std::chrono::hours\{(\d+)")),
    Count("CONTRIBUTING.md", r"sizes: (\d+) columns", TIDY, stated(r"^COLUMNS_MAX = (\d+)")),
    Count("CONTRIBUTING.md", r"(\d+) lines per function",
          TIDY, stated(r"^FUNCTION_LINES_MAX = (\d+)")),
    Count("CONTRIBUTING.md", r"lines per function, (\d+) per file",
          TIDY, stated(r"^FILE_LINES_MAX = (\d+)")),
]


def check_counts(tree):
    """A number in a sentence is the number in the tree."""
    for row in COUNTS:
        document, source = tree.by_path.get(row.document), tree.by_path.get(row.source)
        if document is None or source is None:
            continue
        truth = row.count(source.text)
        if truth is None:
            what = f"{row.source} does not state what {row.document} counts"
            yield Finding(row.document, 1, what, "correct COUNTS in tools/tidy_documents.py")
            continue
        sentences = list(document.matches(re.compile(row.sentence)))
        if not sentences:
            what = f"no sentence fits {row.sentence!r}, which is checked"
            yield Finding(row.document, 1, what, "correct COUNTS in tools/tidy_documents.py")
        for line, found in sentences:
            told = found.group(1).lower()
            told = str(WORDS.index(told)) if told in WORDS else told
            if told != truth:
                what = f'"{found.group()}", but {row.source} has {truth}'
                yield Finding(row.document, line, what, "correct the number")


ERROR_ROW = re.compile(r'HAPAX_ERROR\(\s*\w+,\s*(\d+),\s*"(\w+)",\s*(\d+),\s*k(\w+)\)')
ERROR_CELLS = re.compile(r"^\| \[HX(\d+)\]\(HX\1\.md\) \| `(\w+)` \| (\w+) \| (\d+) \|$", re.M)


def check_error_table(tree):
    """docs/errors/README.md has every row of errors.def with its word, retry class and status."""
    table = tree.by_path.get("include/hapax/errors.def")
    document = tree.by_path.get("docs/errors/README.md")
    if table is None or document is None:
        return
    rows = {found.group(1): (line, found.groups()) for line, found in document.matches(ERROR_CELLS)}
    known = set()
    for line, found in table.matches(ERROR_ROW):
        number, word, status, retry = found.groups()
        known.add(number)
        at, told = rows.get(number, (1, ()))
        if told != (number, word, retry.lower(), status):
            what = f"HX{number} is not told as {word}, {retry.lower()}, {status}"
            yield Finding(document.path, at, what, f"copy it from {table.path}")
    for number in sorted(set(rows) - known):
        what = f"HX{number} is not in {table.path}"
        yield Finding(document.path, rows[number][0], what, "remove its row")


PAGE = re.compile(r"docs/((?:guide|reference|internals|decisions)/[^/]+\.md)")


def check_index(tree):
    """docs/README.md leads to every page below its folders."""
    index = tree.by_path.get("docs/README.md")
    if index is None:
        return
    linked = set(re.findall(r"\]\(([^)#\s]+)", index.text))
    for source in tree.sources:
        found = PAGE.fullmatch(source.path)
        if found and found.group(1) not in linked:
            yield Finding(index.path, 1, f"{found.group(1)} is not in it", "add its row")


NAMED = re.compile(r"`([^`\n]+)`")
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def check_symbols(tree):
    """What ARCHITECTURE.md names in backticks exists: all words of a name stand in one file."""
    document = tree.by_path.get("ARCHITECTURE.md")
    if document is None:
        return
    prose = FENCED.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), document.text)
    files = [set(re.findall(r"\w+", source.code)) for source in tree.sources if source.is_cpp]
    files.append({part for path in tree.paths for part in re.findall(r"\w+", path)})
    for line, found in document.matches(NAMED, prose):
        words = set(re.findall(r"[A-Za-z_]\w+", found.group(1)))
        if not any(words <= known for known in files):
            what = f"`{found.group(1)}` is nowhere in the tree"
            yield Finding(document.path, line, what, "name what took its place")


def check_diagram(tree):
    """The diagram of ARCHITECTURE.md has every room, and its branches are rooms."""
    document = tree.by_path.get("ARCHITECTURE.md")
    diagram = re.search(r"^```\n(api .*?)^```", document.text, re.M | re.S) if document else None
    if diagram is None or not tree.rooms:
        return
    first = document.line_at(diagram.start(1))
    drawn = set()
    for number, text in enumerate(diagram.group(1).splitlines(), first):
        names = re.match(r"[\s│├└]*(\w+(?:, \w+)*)", text)
        for name in names.group(1).split(", ") if names else []:
            drawn.add(name)
            if name not in tree.rooms:
                what = f"{name} is drawn but is not a room of rooms.txt"
                yield Finding(document.path, number, what, "correct the diagram")
    for name in sorted(set(tree.rooms) - drawn):
        yield Finding(document.path, first, f"the room {name} is not drawn", "add it")


DOOR = ("**For:**", "**Owns:**", "**Must not know:**", "**Start reading at**")


def check_doors(tree):
    """Each room says at its door, in README.md, what it is for and where to start reading."""
    built = {source.room for source in tree.sources if source.is_cpp and source.room in tree.rooms}
    for room in sorted(built - {"api"}) if "ARCHITECTURE.md" in tree.by_path else []:
        path = f"src/{room}/README.md"
        remedy = "write the title and the lines " + ", ".join(DOOR)
        if path not in tree.by_path:
            yield Finding("rooms.txt", tree.rooms[room].line, f"{path} is missing", remedy)
            continue
        lines = [line for line in tree.by_path[path].text.splitlines() if line]
        good = len(lines) == len(DOOR) + 1 and lines[0] == f"# {room}"
        if not good or any(not line.startswith("- " + what) for line, what in zip(lines[1:], DOOR)):
            yield Finding(path, 1, f"this is not how the door of {room} looks", remedy)
