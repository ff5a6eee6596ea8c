"""The shipped models keep their promises, and the README tells their cards' figures."""

import json
import shlex
from pathlib import Path

import pytest

from tinyllm.config import PRESETS, ModelConfig
from tinyllm.loading import MODELS, shipped_models

ROOT = Path(__file__).parents[1]
SCRATCH = "-scratch"  # ends the name of a model that has another twin of its shape
CARDS = {
    name: json.loads((MODELS / name / "card.json").read_text("utf-8")) for name in shipped_models()
}


def preset(name: str) -> ModelConfig:
    """The shape a shipped model has by its name."""
    return PRESETS[name.removesuffix(SCRATCH)]


def readme_row(name: str) -> str:
    """The line of the README's table for a model, worked out from its card."""
    card, config = CARDS[name], preset(name)
    training = card["training"]
    cells = [
        name,
        f"{config.n_parameters:,}",
        str(config.n_layer),
        str(config.width),
        f"{config.n_head} / {config.n_kv_head}",
        f"{card['validation']['nats_per_character']:.3f}",
        f"{training['steps']:,} steps, {training['seconds'] / 60:.0f} min",
    ]
    return f"| {' | '.join(cells)} |"


@pytest.mark.parametrize("name", CARDS)
def test_a_model_has_the_shape_of_its_name(name):
    assert ModelConfig.load(MODELS / name / "config.json") == preset(name)
    assert CARDS[name]["parameters"] == preset(name).n_parameters


@pytest.mark.parametrize("name", CARDS)
def test_the_readme_tells_the_cards_figures(name):
    assert readme_row(name) in (ROOT / "README.md").read_text("utf-8")


@pytest.mark.parametrize("name", ["draft", "base-draft"])
def test_the_readme_tells_the_drafts_acceptance(name):
    acceptance = CARDS[name]["agreement_with_teacher"]["acceptance"]
    assert f"**{acceptance:.3f}**" in (ROOT / "README.md").read_text("utf-8")


def test_the_target_predicts_unseen_files():
    assert CARDS["target"]["validation"]["nats_per_character"] <= 1.25


def test_the_draft_agrees_with_the_target():
    assert CARDS["draft"]["agreement_with_teacher"]["acceptance"] >= 0.72


def test_base_predicts_unseen_files_better_than_the_target():
    losses = {name: card["validation"]["nats_per_character"] for name, card in CARDS.items()}
    assert losses["base"] <= losses["target"] - 0.10
    assert 4e6 <= CARDS["base"]["parameters"] <= 7e6


@pytest.mark.parametrize(
    "name", ["target", "target-kv2", "target-kv1", "target-kv2-scratch", "base"]
)
def test_far_positions_are_trained(name):
    bands = CARDS[name]["validation"]["by_position"]
    assert bands["256-511"] <= bands["64-255"]


def test_one_head_from_scratch_predicts_far_positions_no_better():
    """As the README says; the one that was pooled from four heads does."""
    scratch = CARDS["target-kv1-scratch"]["validation"]["by_position"]
    pooled = CARDS["target-kv1"]["validation"]["by_position"]
    assert scratch["256-511"] - scratch["64-255"] > pooled["256-511"] - pooled["64-255"]
    assert scratch["0-15"] - pooled["0-15"] < 0.01 < scratch["256-511"] - pooled["256-511"]


def test_all_models_learned_and_were_judged_on_the_same_text():
    assert len({card["corpus"]["sha256"] for card in CARDS.values()}) == 1


@pytest.mark.parametrize("name", CARDS)
def test_a_cards_trainings_lead_to_its_model(name):
    """In order: whatever a command begins with or learns from was made by one before it."""
    made = set()
    for command in CARDS[name]["trainings"]:
        words = shlex.split(command)
        options = dict(zip(words[4::2], words[5::2], strict=True))
        for source in (options.get("--init-from"), options.get("--distil-from")):
            assert source is None or source in made
        made.add(options["--out"])
        made |= {model for model in CARDS if CARDS[model]["command"] == command}
    assert CARDS[name]["trainings"][-1] == CARDS[name]["command"]


def test_every_card_names_its_command_and_versions():
    for name, card in CARDS.items():
        shape = name.removesuffix(SCRATCH)
        assert card["command"].startswith(f"python -m tinyllm train --preset {shape} ")
        assert {"python", "numpy", "blas"} <= set(card["versions"])


@pytest.mark.parametrize("name", [name for name in CARDS if name.endswith(SCRATCH)])
def test_from_scratch_means_as_the_target_was(name):
    assert len(CARDS[name]["trainings"]) == 1
    plans = [CARDS[one]["training"]["plan"] for one in (name, "target")]
    assert plans[0] == plans[1]
