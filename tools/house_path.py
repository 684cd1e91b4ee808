"""The path of one append over HTTP, as callgrind sees it.

A debug build of `hapax serve`, without sign-in, runs under callgrind. Appends go through one open
connection; the first ones warm it up, and only the later ones are recorded. What counts is a
function that runs at least once per append, with the file it is written in. Left out are what the
compiler writes (constructors and the like without a body), the standard library and Boost, and the
rooms that are not on the way to Store::submit but below it.

Two counts come out of it:
- whole: every file with a function that runs. A reader who wants to know everything opens these.
- spine: the files with a function inside of which Store::submit is called, or the bytes of the
  answer are handed to the connection and the socket. A reader who follows the request opens these;
  what else runs is called from there and comes back. A function's callers are all that were seen,
  so a callback that several share may add a file to the spine, and never hides one.
"""

import http.client
import re
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

FILES_WANTED, ROOMS_WANTED = 16, 8
BELOW = set("base core journal engine embedded shared shared_postgres ports host digest".split())
WARM_UP, APPENDS = 20, 50
BUILD = "build/house"
ROUTING = re.compile(r"\bRouter::find\(")
# Where the request arrives, and where its answer does.
ENDS = (r"hapax::\w+::\w*Store::submit(_here)?\(.*", r"hapax::net::Connection::send\(.*", "send")


def measure(tree):
    if shutil.which("callgrind_control") is None:
        sys.exit("house: callgrind_control is not installed; it is in Debian's package valgrind")
    server = build(tree.root)
    with tempfile.TemporaryDirectory() as folder:
        texts = [path.read_text(errors="replace") for path in record(server, folder)]
    found = summarize([Profile(text, tree.root) for text in texts], tree)
    if not found["spine"]:
        sys.exit("house: no function of ENDS was called; correct ENDS in tools/house_path.py")
    return found


def build(root):
    """Without optimisation nothing is inlined, so that every function shows. Sources compiled
    together (unity) keep their names in the line tables."""
    say(f"building {BUILD}/bin/hapax")
    configure = ["cmake", "--preset", "debug", "-B", BUILD, "-DHAPAX_TESTS=OFF"]
    configure += ["-DCMAKE_UNITY_BUILD=ON", "-DCMAKE_CXX_FLAGS_DEBUG=-O0 -g1"]
    for command in (configure, ["cmake", "--build", BUILD, "--target", "hapax_exe"]):
        done = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode != 0:
            sys.exit(done.stdout.decode() + f"house: {' '.join(command)} failed")
    return root / BUILD / "bin/hapax"


def record(server, folder):
    """Runs the server, sends the appends, and returns the files that callgrind wrote."""
    say(f"recording {APPENDS} appends under callgrind")
    command = ["valgrind", "--tool=callgrind", "--instr-atstart=no", "--separate-threads=yes"]
    command += ["--compress-strings=no", "--compress-pos=no"]
    command += [f"--callgrind-out-file={folder}/profile"]
    command += [server, "serve", "--data", f"{folder}/data", "--http", "127.0.0.1:0"]
    command += ["--resp", "127.0.0.1:0"]
    with open(f"{folder}/log", "w+", encoding="utf-8") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            address = http_address(process.stdout)
            if address is None:
                log.seek(0)
                sys.exit(log.read() + "house: the server did not start")
            send_appends(address, process.pid)
        finally:
            process.terminate()
            process.wait()
    return sorted(Path(folder).glob("profile*"))


def http_address(lines):
    for line in lines:
        found = re.match(r"HTTP\s+http://([\w.:]+)", line)
        if found:
            return found.group(1)
    return None


def send_appends(address, process):
    link = http.client.HTTPConnection(address, timeout=120)
    ask(link, "PUT", "/api/v1/streams/orders", "")
    for number in range(WARM_UP + APPENDS):
        if number == WARM_UP:
            instrument(process, "on")
        record = f'{{"id":"o-{number}","payload":"tea"}}'
        ask(link, "POST", "/api/v1/streams/orders/records", record)
    instrument(process, "off")
    link.close()


def instrument(process, state):
    command = ["callgrind_control", f"--instr={state}", str(process)]
    subprocess.run(command, check=True, capture_output=True)


def ask(link, method, path, body):
    link.request(method, path, body, {"Content-Type": "application/json"})
    answer = link.getresponse()
    text = answer.read().decode()
    if answer.status >= 300:
        sys.exit(f"house: {method} {path} was answered with {answer.status}: {text}")


class Profile:
    """One thread's, in the format of callgrind without compressed names and positions."""

    def __init__(self, text, root):
        self.calls = defaultdict(int)  # of (file, function)
        self.first_line = {}  # of (file, function), in its own file
        self.callers = defaultdict(set)
        file = function = called_file = called = None
        in_own_file = is_call = False
        for line in text.splitlines():
            key, _, value = line.partition("=")
            if key == "fl":
                file = relative(value, root)
            elif key == "fn":
                function, called_file, in_own_file = (file, value), None, True
            elif key in ("fi", "fe"):
                in_own_file = relative(value, root) == file
            elif key in ("cfi", "cfl"):
                called_file = relative(value, root)
            elif key == "cfn":
                called = (called_file or file, value)
            elif key == "calls":
                self.calls[called] += int(value.split()[0])
                self.callers[called].add(function)
                called_file, is_call = None, True
            elif re.match(r"\d+ \d+$", line):
                if in_own_file and not is_call:
                    number = int(line.split()[0])
                    self.first_line[function] = min(self.first_line.get(function, number), number)
                is_call = False

    def spine(self):
        """What leads to one of ENDS, these included."""
        todo = [function for function in self.calls if is_end(function[1])]
        found = set(todo)
        while todo:
            more = self.callers[todo.pop()] - found
            found |= more
            todo += more
        return found


def is_end(function):
    return any(re.fullmatch(end, function) for end in ENDS) and "{lambda" not in function


def relative(path, root):
    """Our own files as git names them, others as they are. The build cuts the root off the names of
    sources, and then they look as if they were below the build folder."""
    return path.removeprefix(f"{root}/").removeprefix(f"{BUILD}/")


def is_written(source, line):
    """Whether somebody wrote this function: what the compiler adds stands on the line of its class,
    or where it says `= default`."""
    text = source.lines[line - 1] if 0 < line <= len(source.lines) else ""
    return not re.match(r"\s*(?:struct|class|union)\b|.*=\s*default\b", text)


def summarize(profiles, tree):
    """Each thread counts by itself: what another one does now and then does not add up."""
    whole, spine, finds = defaultdict(set), set(), 0
    for profile in profiles:
        on_spine = profile.spine()
        for (path, function), count in profile.calls.items():
            if ROUTING.search(function):
                finds += count
            source = tree.by_path.get(path)
            if source is None or source.room is None or source.room in BELOW or count < APPENDS:
                continue
            if is_written(source, profile.first_line.get((path, function), 0)):
                whole[path].add(function)
                spine |= {path} if (path, function) in on_spine else set()
    return {
        "whole": {path: sorted(whole[path]) for path in sorted(whole)},
        "spine": sorted(spine),
        "rooms": {
            "whole": sorted({tree.by_path[path].room for path in whole}),
            "spine": sorted({tree.by_path[path].room for path in spine}),
        },
        "routings_per_append": finds / APPENDS,
    }


def show(found):
    whole, spine, rooms = found["whole"], found["spine"], found["rooms"]
    pairs = {path.rsplit(".", 1)[0] for path in whole}
    print(f"path of an append: routed {found['routings_per_append']:g} times", end="")
    print(f" (wanted: at most {FILES_WANTED} files in {ROOMS_WANTED} rooms, routed once)")
    print(f"  whole: {len(whole)} files in {len(rooms['whole'])} rooms", end="")
    print(f"; {len(pairs)} if a header and its source are one")
    print(f"  spine: {len(spine)} files in {len(rooms['spine'])} rooms, marked *")
    for path, functions in whole.items():
        print(f"    {'*' if path in spine else ' '} {path}: {len(functions)} functions")


def say(what):
    print(f"house: {what}", file=sys.stderr)
