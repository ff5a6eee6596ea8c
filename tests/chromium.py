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

HOW_TO_MEND_PLAYWRIGHT = (
    "Playwright does not start. Install tests/requirements.txt; on Debian also: apt install"
    " libatomic1"
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
    if install_packages("chromium", "fonts-liberation") and (path := find()):
        return path
    as_root = ["--with-deps"] if is_debian_root() else []
    execute(sys.executable, "-m", "playwright", "install", "chromium", *as_root)
    return find()


def install_packages(*names: str) -> bool:
    """False when this is not Debian's root, or when apt-get fails."""
    if not is_debian_root():
        return False
    execute("apt-get", "update")
    return execute("apt-get", "install", "--yes", "--no-install-recommends", *names)


def is_debian_root() -> bool:
    return os.name == "posix" and os.geteuid() == 0 and shutil.which("apt-get") is not None


def execute(*command: str) -> bool:
    """Run a command, with its output where it does not mix with ours."""
    print("$", *command, file=sys.stderr, flush=True)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    run = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=sys.stderr)
    return run.returncode == 0


def driver_fault() -> str:
    """Why Playwright itself does not start, or nothing. Its driver needs a library of its own."""
    run = subprocess.run(
        [sys.executable, "-m", "playwright", "--version"], capture_output=True, text=True
    )
    return "" if run.returncode == 0 else run.stderr.strip()


def main() -> None:
    may_install = "--install" in sys.argv[1:]
    if driver_fault() and may_install:
        install_packages("libatomic1")
    if fault := driver_fault():
        raise SystemExit(f"{fault}\n{HOW_TO_MEND_PLAYWRIGHT}")
    path = find()
    if path is None and may_install:
        path = install()
    if path is None:
        raise SystemExit(HOW_TO_GET_ONE)
    print(path)


if __name__ == "__main__":
    main()
