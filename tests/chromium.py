"""Which Chromium the browser tests drive; with --install, brings one when there is none.

Prints the path of the browser and nothing else, or fails and says what to do. CHROMIUM in the
environment comes first, then the usual names on the PATH, then Playwright's own download.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MAC_APPS = (
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
ASK = """\
from playwright.sync_api import sync_playwright
with sync_playwright() as playwright:
    print(playwright.chromium.executable_path)
"""
HOW_TO_GET_ONE = (
    "The browser tests need Chromium and none was found. Install one (Debian: apt install"
    " chromium; elsewhere: python -m playwright install chromium), or name it: CHROMIUM=/path/to/it"
)


def find() -> str | None:
    """The path of a browser that starts, or None. A CHROMIUM that does not start is an error."""
    named = os.environ.get("CHROMIUM")
    if named:
        path = shutil.which(named)
        if path is None or not starts(path):
            raise SystemExit(f"CHROMIUM is {named!r}, which does not start.")
        return path
    return next((path for path in candidates() if starts(path)), None)


def candidates() -> Iterator[str]:
    yield from filter(None, map(shutil.which, NAMES))
    yield from filter(os.path.exists, MAC_APPS)
    # In a process of its own: the caller may be inside Playwright's event loop already.
    answer = subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True)
    if answer.returncode == 0 and Path(answer.stdout.strip()).exists():
        yield answer.stdout.strip()


def starts(path: str) -> bool:
    """Some systems ship a chromium-browser that only says where to get the real one."""
    try:
        return subprocess.run([path, "--version"], capture_output=True, timeout=60).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def install() -> str | None:
    """Debian's package when root, else Playwright's own; each is tried before it is believed."""
    playwright = [sys.executable, "-m", "playwright", "install", "chromium"]
    if os.name == "posix" and os.geteuid() == 0 and shutil.which("apt-get"):
        packages = ["chromium", "fonts-liberation"]
        attempts = [
            [["apt-get", "update"], ["apt-get", "install", "--yes", *packages]],
            [[*playwright, "--with-deps"]],
        ]
    else:
        attempts = [[playwright]]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for commands in attempts:
        for command in commands:
            print("$", *command, file=sys.stderr, flush=True)
            subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=sys.stderr)
        if path := find():
            return path
    return None


def main() -> None:
    path = find()
    if path is None and "--install" in sys.argv[1:]:
        path = install()
    if path is None:
        raise SystemExit(HOW_TO_GET_ONE)
    print(path)


if __name__ == "__main__":
    main()
