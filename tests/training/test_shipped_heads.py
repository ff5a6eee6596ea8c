"""Shipped heads keep their cards' promises on the sample text, and the README tells them."""

import json
import re
from pathlib import Path

import pytest

from tinyllm.experiments.prompts import validation_text
from tinyllm.loading import MODELS
from tinyllm.speculative.drafters import HEADS_FILE, heads_of, load_heads
from tinyllm.training.checkpoint import load_parameters
from tinyllm.training.corpus import encode
from tinyllm.training.heads import HeadsNetwork, acceptance
from tinyllm.training.network import Network
from tinyllm.training.parameters import NamedVector

ROOT = Path(__file__).parents[2]
FOLDERS = sorted(path.parent for path in MODELS.glob(f"*/{HEADS_FILE}"))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_heads_are_accepted_as_their_card_says(folder: Path) -> None:
    """On the sample of the unseen files that ships."""
    card = json.loads((folder / "card.json").read_text("utf-8"))
    assert heads_of(card["target"]) == folder
    drafter = load_heads(folder)
    parts = {
        f"{j}.{part}.weight": getattr(head, part)
        for j, head in enumerate(drafter.heads, start=1)
        for part in ("hidden", "token", "out")
    }
    parameters = NamedVector({name: one.shape for name, one in parts.items()})
    parameters.assign(parts)
    assert parameters.vector.size == card["parameters"]
    target = Network(load_parameters(MODELS / card["target"]))
    sample = card["sample_text"]
    found = acceptance(
        target, HeadsNetwork(parameters), encode(validation_text()), sample["windows"]
    )
    assert found == pytest.approx(sample["by_head"], abs=0.002)  # the weights became float16


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_readme_tells_the_cards_figures(folder: Path) -> None:
    text = " ".join((ROOT / "README.md").read_text("utf-8").split())
    card = json.loads((folder / "card.json").read_text("utf-8"))
    first, second, third, fourth = card["acceptance"]["by_head"]
    shown = re.escape(f"**{first:.2f}**, {second:.2f}, {third:.2f} and {fourth:.2f}")
    parameters = rf"\({card['parameters']:,} parameters[^)]*\)"
    assert re.search(rf"`{folder.name}` {parameters}: {shown}", text)
