"""The architecture as a test: who may import whom, and what no module may contain.

Reads the source with ast and runs none of it, but for the last test, which imports the engine
where streamlit and plotly cannot be had. The rules stand in the first lines; when a new part joins
tinyllm/, give it a place in LEVELS.
"""

import ast
import graphlib
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# Arrows point down this list: a part imports from its own line or from those above it.
# "tinyllm" is the package's own __init__.py, "pages" is every page together with app.py.
LEVELS = (
    ("errors", "machine", "quantities", "memory"),
    ("arena", "config", "config_json", "tokenizer"),
    ("layers", "attention", "stored", "folding", "untrained"),
    ("model", "overflow", "cache", "sampling", "calibration"),
    ("prompt", "loading", "options"),
    ("generation", "speculative"),
    ("tinyllm",),
    ("training",),
    ("experiments",),
    ("ui", "__main__"),
    ("pages",),
)
LEVEL_OF = {part: level for level, parts in enumerate(LEVELS) for part in parts}
# Narrower than the levels: these import from here alone, besides themselves.
ONLY = {"memory": {"errors"}, "__main__": set(LEVEL_OF) - {"ui", "pages"}}
DRAWING = {"streamlit", "plotly"}
MAY_DRAW = {"ui", "pages"}
# These need requirements-llm.txt, and are imported in the functions that use them.
OPTIONAL = {
    "tinyllm.loading.gguf_file",
    "tinyllm.tokenizer.bpe",
    "tinyllm.tokenizer.chat",
    "tinyllm.tokenizer.files",
}
PICKLES = {"pickle", "_pickle", "cPickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}


@dataclass(frozen=True)
class Module:
    """One source file: its dotted name, the part of the layout it belongs to, its syntax tree."""

    name: str
    part: str
    path: str
    is_package: bool
    tree: ast.Module


def read_modules(root: Path) -> dict[str, Module]:
    """Every module of tinyllm/ and pages/, and app.py, by its dotted name."""
    paths = [*(root / "tinyllm").rglob("*.py"), *(root / "pages").rglob("*.py")]
    paths += [root / "app.py"] if (root / "app.py").exists() else []
    modules = {}
    for path in sorted(paths):
        relative = path.relative_to(root)
        names = relative.with_suffix("").parts
        is_package = names[-1] == "__init__"
        names = names[:-1] if is_package else names
        part = "pages" if names[0] != "tinyllm" else names[1] if names[1:] else "tinyllm"
        tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(relative))
        name = ".".join(names)
        modules[name] = Module(name, part, relative.as_posix(), is_package, tree)
    return modules


def imports(module: Module, known: set[str]) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of all that a module imports, wherever in the file it does so.

    `from a import b` is an import of a.b when that is one of our modules, else of a.
    """
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                keep = -node.level + (1 if module.is_package else 0)
                parents = module.name.split(".")[: keep or None]
                base = ".".join([*parents, *filter(None, [base])])
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                yield node.lineno, inner if inner in known else base


def arrow_faults(modules: dict[str, Module]) -> list[str]:
    """Imports that point the wrong way, a line each."""
    faults = []
    for module in modules.values():
        if module.part not in LEVEL_OF:
            faults.append(f"{module.path}: {module.part!r} has no place in LEVELS of {__file__}")
            continue
        for line, name in imports(module, set(modules)):
            top, _, rest = name.partition(".")
            if top == "tinyllm":
                part = rest.partition(".")[0] or "tinyllm"
            elif top in ("pages", "app"):
                part = "pages"
            else:
                continue
            a_page = part == "pages"  # not even a page or app.py imports one
            too_high = LEVEL_OF.get(part, len(LEVELS)) > LEVEL_OF[module.part]
            outside = part != module.part and part not in ONLY.get(module.part, {part})
            if a_page or too_high or outside:
                faults.append(f"{module.path}:{line} imports {name}")
    return faults


def drawing_faults(modules: dict[str, Module]) -> list[str]:
    return [
        f"{module.path}:{line} imports {name}"
        for module in modules.values()
        if module.part not in MAY_DRAW
        for line, name in imports(module, set(modules))
        if name.partition(".")[0] in DRAWING
    ]


def pickle_faults(path: str, tree: ast.Module) -> list[str]:
    """Imports of a pickling library, and allow_pickle with anything but False."""
    module = Module("", "", path, False, tree)
    faults = [
        f"{path}:{line} imports {name}"
        for line, name in imports(module, set())
        if name.partition(".")[0] in PICKLES
    ]
    for node in ast.walk(tree):
        if not isinstance(node, ast.keyword) or node.arg != "allow_pickle":
            continue
        if not isinstance(node.value, ast.Constant) or node.value.value is not False:
            faults.append(f"{path}:{node.value.lineno} allows pickle")
    return faults


def imported(modules: Iterable[Module]) -> set[str]:
    """The foreign packages that modules import."""
    known = {module.name for module in modules}
    names = {name.partition(".")[0] for m in modules for _, name in imports(m, known)}
    return names - sys.stdlib_module_names - {"tinyllm"}


def listed(file: str) -> set[str]:
    """The packages of a requirements file, as they are imported."""
    lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
    return {line.partition("~=")[0] for line in lines if not line.startswith("#")}


@pytest.fixture(scope="module")
def modules() -> dict[str, Module]:
    return read_modules(ROOT)


def test_arrows_point_one_way(modules: dict[str, Module]) -> None:
    assert arrow_faults(modules) == []


def test_only_ui_and_pages_draw(modules: dict[str, Module]) -> None:
    assert drawing_faults(modules) == []


def test_requirements_are_what_is_imported(modules: dict[str, Module]) -> None:
    """So that nothing is installed for nothing, or comes only because another package brings it."""
    assert imported(modules.values()) == listed("requirements.txt") | listed("requirements-llm.txt")


def test_language_models_packages_are_imported_where_they_are_optional(
    modules: dict[str, Module],
) -> None:
    """Nothing outside these modules needs them; nothing imports these when it is imported."""
    needs = listed("requirements-llm.txt")
    found = {name for name, module in modules.items() if imported([module]) & needs}
    assert found == OPTIONAL
    top = [
        (module.path, node.lineno)
        for module in modules.values()
        if module.name not in OPTIONAL
        for node in module.tree.body
        if isinstance(node, ast.Import | ast.ImportFrom)
        and (getattr(node, "module", None) or node.names[0].name) in OPTIONAL
    ]
    assert top == []


def test_no_import_cycle(modules: dict[str, Module]) -> None:
    graph = {
        name: {found for _, found in imports(module, set(modules)) if found in modules} - {name}
        for name, module in modules.items()
    }
    graphlib.TopologicalSorter(graph).prepare()  # raises CycleError, which names the modules


def test_no_pickle_anywhere() -> None:
    paths = [path for top in ("tinyllm", "pages", "tests") for path in (ROOT / top).rglob("*.py")]
    faults = []
    for path in [*paths, *ROOT.glob("*.py")]:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        faults += pickle_faults(path.relative_to(ROOT).as_posix(), tree)
    assert faults == []


def test_every_public_module_says_what_it_is(modules: dict[str, Module]) -> None:
    public = [m for m in modules.values() if not m.path.rpartition("/")[2].startswith("_")]
    packages = [m for m in modules.values() if m.is_package]
    assert [m.path for m in [*public, *packages] if not ast.get_docstring(m.tree)] == []


def test_engine_runs_without_streamlit_and_plotly(modules: dict[str, Module]) -> None:
    """What ast cannot see: importlib with a computed name, or a library that pulls one in."""
    names = [name for name, module in modules.items() if module.part not in MAY_DRAW]
    blocked = "".join(f"sys.modules[{name!r}] = None\n" for name in sorted(DRAWING))
    lines = "".join(f"import {name}\n" for name in names)
    program = f"import sys\n{blocked}{lines}"
    run = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize(
    ("path", "source", "fault"),
    [
        ("tinyllm/layers.py", "from tinyllm.model import Transformer", "arrow"),
        ("tinyllm/layers.py", "def f():\n    import tinyllm.cache.dense", "arrow"),
        ("tinyllm/sampling.py", "from . import generation", "arrow"),
        ("tinyllm/cache/dense.py", "from ..speculative import theory", "arrow"),
        ("tinyllm/cache/__init__.py", "from ..generation import generate", "arrow"),
        ("tinyllm/model.py", "import tinyllm", "arrow"),
        ("tinyllm/memory/plan.py", "from tinyllm import config", "arrow"),
        ("tinyllm/training/loop.py", "from tinyllm.ui.text import _", "arrow"),
        ("tinyllm/__main__.py", "from tinyllm.ui import text", "arrow"),
        ("tinyllm/unheard_of.py", "", "arrow"),
        ("tinyllm/ui/controls.py", "import pages.home", "arrow"),
        ("pages/home.py", "from pages.kv_cache import draw", "arrow"),
        ("tinyllm/experiments/race.py", "import plotly.graph_objects", "drawing"),
        ("tinyllm/model.py", "def f():\n    from streamlit import cache_data", "drawing"),
        ("tinyllm/model.py", "import pickle", "pickle"),
        ("tinyllm/model.py", "numpy.load(path, allow_pickle=True)", "pickle"),
        ("tinyllm/sampling.py", "from tinyllm.layers import softmax", None),
        ("tinyllm/cache/dense.py", "from .protocol import KVCache", None),
        ("tinyllm/ui/figures.py", "import plotly\nfrom tinyllm.experiments import race", None),
        ("tinyllm/__main__.py", "import tinyllm\nfrom tinyllm.training import loop", None),
        ("pages/home.py", "import streamlit\nfrom tinyllm.ui import text", None),
        ("tinyllm/model.py", "numpy.load(path, allow_pickle=False)", None),
    ],
)
def test_the_rules_bite(path: str, source: str, fault: str | None, tmp_path: Path) -> None:
    for name in ("__init__", "model", "generation", "cache/__init__", "speculative/theory"):
        file = tmp_path / "tinyllm" / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(source, encoding="utf-8")
    modules = read_modules(tmp_path)
    found = {
        "arrow": arrow_faults(modules),
        "drawing": drawing_faults(modules),
        "pickle": pickle_faults(path, ast.parse(source)),
    }
    assert [kind for kind, faults in found.items() if faults] == ([fault] if fault else [])
