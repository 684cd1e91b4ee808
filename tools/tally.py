#!/usr/bin/env python3
"""Sums the JUnit files of several ctest runs.

Usage: tally.py [--broken=WHAT]... FOLDER
Lists what failed and what was skipped, with the reason, and ends with one line
`N passed, N failed[, N skipped]`. A build or run that gave no results is one failure (--broken).
Exit code 1 if anything failed.
"""

import argparse
import os
import re
import sys
import xml.etree.ElementTree as ElementTree
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

# ctest writes these for tests that chose not to run; any other unrun test (binary not built,
# fixture failed) is a failure.
CHOSEN = ("SKIP_", "Disabled")


class Outcome(NamedTuple):
    run: str
    test: str
    verdict: str  # passed, failed or skipped
    reason: str


def skip_reason(case):
    """GoogleTest prints `file:line: Skipped` and the reason on the lines after it; unittest prints
    `test … skipped 'reason'`."""
    output = case.findtext("system-out") or ""
    if told := re.findall(r"\.\.\. skipped (['\"])(.*)\1$", output, re.MULTILINE):
        return "; ".join(dict.fromkeys(reason for _, reason in told))
    lines = output.splitlines()
    for number, line in enumerate(lines):
        if line.rstrip().endswith(": Skipped"):
            told = takewhile(lambda text: text and text[0] != "[", lines[number + 1 :])
            return " ".join(text.strip() for text in told) or "no reason given"
    return "no reason given"


def outcome_of(run, case):
    name, status = case.get("name"), case.get("status")
    skipped, failure = case.find("skipped"), case.find("failure")
    if status == "run":
        return Outcome(run, name, "passed", "")
    if status == "disabled":
        return Outcome(run, name, "skipped", "disabled")
    if skipped is not None and (skipped.get("message") or "").startswith(CHOSEN):
        return Outcome(run, name, "skipped", skip_reason(case))
    told = failure if failure is not None else skipped
    reason = told.get("message") if told is not None else status
    return Outcome(run, name, "failed", reason or "see its output above")


def outcomes(folder):
    for file in sorted(Path(folder).glob("*.xml")):
        cases = list(ElementTree.parse(file).iter("testcase"))
        if not cases:
            yield Outcome(file.stem, "no test was found", "failed", "nothing was proven")
        for case in cases:
            yield outcome_of(file.stem, case)


def report(results, loud):
    for verdict in ("skipped", "failed"):
        listed = [result for result in results if result.verdict == verdict]
        if not listed:
            continue
        print()
        if loud and verdict == "skipped":
            print(f"!!! {len(listed)} TESTS DID NOT RUN, IN CI !!!")
        for result in listed:
            print(f"{verdict.upper()} {result.run}: {result.test}: {result.reason}")


def closing_line(results):
    count = {verdict: 0 for verdict in ("passed", "failed", "skipped")}
    for result in results:
        count[result.verdict] += 1
    line = f"{count['passed']} passed, {count['failed']} failed"
    return line + (f", {count['skipped']} skipped" if count["skipped"] else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--broken", action="append", default=[])
    parser.add_argument("folder")
    arguments = parser.parse_args()
    results = list(outcomes(arguments.folder))
    for what in arguments.broken:
        results.append(Outcome(what, "gave no results", "failed", "see above"))
    if not results:
        results = [Outcome("all runs", "no test was found", "failed", "nothing was proven")]
    report(results, loud=os.environ.get("CI") == "true")
    print()
    print(closing_line(results))
    return 1 if any(result.verdict == "failed" for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
