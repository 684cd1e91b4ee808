"""Packages of PyPI for tests, each set in a folder of its own below the user's cache."""

import fcntl
import glob
import os
import subprocess
import sys

CACHE = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")


def install(pinned):
    """The folder of a virtual environment that has them. Whoever comes at the same time waits."""
    folder = os.path.join(CACHE, "hapax", "-".join(pinned).replace("=", ""))
    os.makedirs(folder, exist_ok=True)
    done = os.path.join(folder, "installed")
    with open(os.path.join(folder, "lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(done):
            for command in ([sys.executable, "-m", "venv", "--clear", folder + "/venv"],
                            [folder + "/venv/bin/pip", "install", "--quiet", *pinned]):
                subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)
            with open(done, "w", encoding="utf-8"):
                pass
    return folder + "/venv"


def wanted(test, pinned):
    """The same. A machine that cannot get them skips the test, unless it is one of CI."""
    try:
        return install(pinned)
    except (OSError, subprocess.SubprocessError) as error:
        why = f"{pinned[0]} could not be installed: {getattr(error, 'stderr', None) or error}"
        if os.environ.get("CI") == "true":
            test.fail(why)
        return test.skipTest(why)


def importable(test, pinned):
    """Makes them importable in this process, whose Python made the environment."""
    sys.path[:0] = glob.glob(wanted(test, pinned) + "/lib/python3*/site-packages")
