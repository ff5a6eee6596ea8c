"""The app's server as a visitor meets it: a process of its own on a free port."""

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 120


@dataclass(frozen=True)
class Server:
    """Where the app answers, and its process."""

    address: str
    process: subprocess.Popen[bytes]
    log: Path

    def cpu_seconds(self) -> float:
        """Processor time used so far; to hundredths where Linux tells it, else to seconds."""
        told = Path(f"/proc/{self.process.pid}/stat")
        if told.exists():
            fields = told.read_text().rpartition(")")[2].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        command = ["ps", "-o", "time=", "-p", str(self.process.pid)]
        shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        seconds = 0.0
        for part in shown.strip().replace("-", ":").split(":"):
            seconds = seconds * 60 + float(part)
        return seconds


# Sends what a script has drawn three times a second, as a server does that has much else to do.
_SLOWLY = (
    "import streamlit.runtime.runtime as runtime; from streamlit.web.cli import main; "
    "assert runtime.MESSAGE_FLUSH_INTERVAL_SECS < 0.3; "
    "runtime.MESSAGE_FLUSH_INTERVAL_SECS = 0.3; main()"
)


@contextmanager
def serving(log: Path, *, slowly: bool = False) -> Iterator[Server]:
    """A fresh server; it is ended by its process id, whatever happens."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    streamlit = ["-c", _SLOWLY] if slowly else ["-m", "streamlit"]
    command = [sys.executable, *streamlit, "run", "app.py", f"--server.port={port}"]
    command += ["--server.headless=true"]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=output, stderr=output, env={**os.environ}
        )
    try:
        address = f"http://localhost:{port}"
        _await(f"{address}/_stcore/health", process, log)
        yield Server(address, process, log)
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _await(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended at once:\n{log.read_text()}")
        try:
            with urllib.request.urlopen(address, timeout=1):
                return
        except (urllib.error.URLError, TimeoutError, ConnectionError):
            time.sleep(0.1)
    raise RuntimeError(f"no answer after {START_SECONDS} s:\n{log.read_text()}")
