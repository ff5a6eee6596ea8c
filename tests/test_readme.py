"""The README tells the truth: its library example runs and the files it names exist."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_library_example_runs() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    run = subprocess.run([sys.executable, "-c", example], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip()


def test_files_and_links_exist() -> None:
    (file_map,) = re.findall(r"## Map of files\n+```text\n(.*?)```", README, flags=re.DOTALL)
    mapped, folder = [], ""
    for line in file_map.splitlines():
        name = line.split()[0]
        if not line.startswith(" "):
            folder = name
        mapped.append(folder + name if line.startswith(" ") else name)
    linked = [link for link in re.findall(r"\]\(([^)#:]+)\)", README) if link]
    assert mapped
    assert linked
    assert [path for path in [*mapped, *linked] if not (ROOT / path).exists()] == []


def test_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = set(re.findall(r"(?:^|`)make ([a-z]+)", README, flags=re.MULTILINE))
    assert {"run", "test"} <= named
    assert named <= set(re.findall(r"^([a-z]+):", makefile, flags=re.MULTILINE))
