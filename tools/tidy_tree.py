"""The repository as tidy.py sees it: its text files, its rooms, its known libraries."""

import re
import subprocess
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

CODE = (".h", ".cc", ".def", ".py", ".sh", ".cmake", ".txt")
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', re.MULTILINE)
NOISE = re.compile(
    r"//[^\n]*|/\*.*?\*/"  # comments
    r'|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"'  # raw strings and strings
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'",  # characters, but not the mark in 1'000
    re.DOTALL,
)


class Finding(NamedTuple):
    path: str
    line: int
    what: str
    remedy: str

    def __str__(self):
        return f"{self.path}:{self.line}: {self.what}; {self.remedy}"


class Include(NamedTuple):
    line: int
    name: str
    quoted: bool


class Source:
    """One text file of the tree."""

    def __init__(self, root, path):
        self.path = path
        self.text = (root / path).read_text(encoding="utf-8", errors="replace")
        self.name = Path(path).name
        self.suffix = Path(path).suffix
        parts = Path(path).parts
        self.folder = parts[0] if len(parts) > 1 else ""
        self.room = parts[1] if self.folder == "src" and len(parts) > 2 else None
        if path.startswith("include/hapax/"):
            self.room = "api"
        self.is_cpp = self.suffix in (".h", ".cc")
        self.is_code = self.suffix in CODE or path in ("dev", ".ci/run")
        test_ends = ("_test.cc", "_test.h", "_test.py")
        self.is_test = self.folder == "tests" or self.name.endswith(test_ends)

    @cached_property
    def lines(self):
        return self.text.splitlines()

    @cached_property
    def code(self):
        """The text with comments and literals blanked, at the same positions."""
        return NOISE.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), self.text)

    @cached_property
    def includes(self):
        return [
            Include(line, found.group(2), found.group(1) == '"')
            for line, found in self.matches(INCLUDE)
        ]

    def line_at(self, position):
        return self.text.count("\n", 0, position) + 1

    def matches(self, pattern, text=None):
        """(line, match) of each place of the pattern, in the text unless told otherwise."""
        for found in pattern.finditer(self.text if text is None else text):
            spaces = len(found.group()) - len(found.group().lstrip())
            yield self.line_at(found.start() + spaces), found


class Room(NamedTuple):
    line: int
    may: list
    tests_may: list
    forbidden: list


class RoomsFile(NamedTuple):
    rooms: dict  # room: Room
    headers: dict  # how the name of a library's header begins: its one room
    public: dict  # public header: the room with its code


class Tree:
    """The repository as the checks see it."""

    def __init__(self, root):
        self.root = Path(root).resolve()
        self.paths = self.list_paths()
        texts = (path for path in self.paths if self.is_text(path))
        self.sources = [Source(self.root, path) for path in texts]
        self.by_path = {source.path: source for source in self.sources}
        self.rooms, self.headers, self.public = read_rooms(self.by_path.get("rooms.txt"))

    def list_paths(self):
        found = (path.relative_to(self.root) for path in self.root.rglob("*"))
        walked = {str(path) for path in found if path.parts[0] not in ("build", ".git")}
        paths = (walked & self.known_to_git()) or walked
        return sorted(path for path in paths if (self.root / path).is_file())

    def known_to_git(self):
        """What git tracks or would add; nothing for a tree without git, such as a tarball."""
        if not (self.root / ".git").exists():
            return set()
        command = ["git", "-c", "safe.directory=*", "ls-files", "-zco", "--exclude-standard"]
        try:
            listed = subprocess.run(command, cwd=self.root, capture_output=True, check=True).stdout
        except (OSError, subprocess.CalledProcessError):
            return set()
        return set(listed.decode().split("\0"))

    def is_text(self, path):
        known = (*CODE, ".md", ".json", ".yaml", ".yml", ".sql", ".in", ".js", ".html", ".css")
        return path.endswith(known) or path in ("dev", ".ci/run", ".clang-tidy", ".gitignore")


    def edge_uses(self):
        """{(room, other): {is_test, …}} of the edges that some include uses.

        A public header is api's, and to link needs the room that has its code: it uses both edges.
        """
        uses = {}
        for source in self.sources:
            for include in source.includes if source.is_cpp and source.room in self.rooms else []:
                for target in self.rooms_behind(include.name):
                    uses.setdefault((source.room, target), set()).add(source.is_test)
        return uses

    def rooms_behind(self, name):
        if not name.startswith("hapax/"):
            return {name.split("/")[0]} & set(self.rooms)
        return {"api", self.public.get(name, "api")}


def unused_edges(tree):
    """(room, other, whether for tests only) of each edge of rooms.txt that no include uses."""
    uses = tree.edge_uses()
    for name, room in tree.rooms.items():
        for other in room.may:
            if False not in uses.get((name, other), ()):
                yield name, other, False
        for other in room.tests_may:
            if True not in uses.get((name, other), ()):
                yield name, other, True


def read_rooms(source):
    """What rooms.txt says."""
    rooms, headers, public, section = {}, {}, {}, ""
    lines = re.sub(r"\n[ \t]+(?=\S)", " ", source.text).splitlines() if source else []
    for text in lines:
        words = text.split("#")[0].split()
        if not words:
            continue
        if text.startswith("["):
            section = words[0]
        elif section == "[headers]":
            headers[words[0]] = words[1]
        elif section == "[public]":
            public[words[0]] = words[1]
        else:
            rooms[words[0]] = read_room(source, text)
    return RoomsFile(rooms, headers, public)


def read_room(source, text):
    name, rest = text.split(maxsplit=1)
    may, *clauses = rest.split(";")
    told = {clause.split(":", 1)[0].strip(): clause.split(":", 1)[1].split() for clause in clauses}
    line = next(n for n, old in enumerate(source.lines, 1) if old.startswith(name + " "))
    listed = [word for word in may.split() if word != "-"]
    return Room(line, listed, told.get("tests", []), told.get("must not mention", []))
