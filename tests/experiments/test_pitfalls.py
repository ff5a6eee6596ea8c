"""Each fault does what it is known for, and the loop the faults are made from has none."""

from collections.abc import Iterator
from fractions import Fraction
from inspect import getsource

import numpy as np
import pytest

from tinyllm.experiments.pitfalls import PITFALLS, Bench, PitfallRow, Seen, Texts, laws, measured
from tinyllm.experiments.pitfalls.loop import Loop
from tinyllm.experiments.pitfalls.rounds import DraftLacksLastProposal
from tinyllm.experiments.reference import PlainCache, causal_mask, plain_forward
from tinyllm.generation import generate
from tinyllm.loading import MODELS, load_weights
from tinyllm.model import Transformer
from tinyllm.sampling import RandomSampler
from tinyllm.speculative import speculate


@pytest.fixture(scope="module")
def bench(target: Transformer, draft: Transformer) -> Bench:
    weights = load_weights(MODELS / "target", target.config)
    return Bench(target, draft, weights, tokens=40)


@pytest.fixture(scope="module")
def seen(bench: Bench) -> dict[str, tuple[PitfallRow, Seen]]:
    return {row.name: (row, seen) for row, seen in measured(bench)}


def test_every_pitfall_has_a_row_and_its_code(seen) -> None:
    assert list(seen) == list(PITFALLS)
    for name, (row, _) in seen.items():
        assert row.measure
        assert row.wrong != row.right, name
        assert row.engine
        assert getsource(PITFALLS[name].fault)
        assert getsource(PITFALLS[name].right)


def test_measured_is_lazy(bench: Bench) -> None:
    rows = measured(bench, ["vocabulary-of-one", "no such pitfall"])
    assert isinstance(rows, Iterator)
    assert next(rows)[0].name == "vocabulary-of-one"


@pytest.mark.parametrize("k", [1, 3, 6])
@pytest.mark.parametrize("temperature", [0.0, 0.9])
def test_the_loop_without_a_fault_is_the_engines(bench, k, temperature) -> None:
    loop = Loop(bench, bench.draft, temperature=temperature, sampler=RandomSampler(4))
    assert loop.run(30, [k]) == "length"
    settings = {"max_new_tokens": 30, "temperature": temperature, "seed": 4}
    events = list(speculate(bench.target, bench.draft, bench.prompt, k=k, **settings))
    made = [token for event in events for token in event.tokens]
    assert loop.sequence[len(bench.prompt) :] == made
    assert loop.accepted == sum(event.accepted for event in events)
    assert loop.tested == sum(event.tested for event in events)
    assert loop.target_cache.length == loop.draft_cache.length == len(loop.sequence) - 1


def test_the_loop_without_a_fault_accepts_its_own_and_stops(bench: Bench) -> None:
    loop = Loop(bench, bench.target)
    loop.run(30, [0, 4])
    assert loop.accepted == loop.tested > 0
    plain = [token.id for token in generate(bench.target, bench.prompt, max_new_tokens=30)]
    stop = plain[7]
    stopped = Loop(bench, bench.target, stops=[stop])
    assert stopped.run(30, [4]) == "stop"
    assert stopped.sequence[len(bench.prompt) :] == plain[: plain.index(stop) + 1]


@pytest.mark.parametrize(
    ("name", "wrong", "right"),
    [
        ("argmax-proposal", (1, 0, 0), ("3/5", "3/10", "1/10")),
        ("target-after-refusal", ("31/50", "13/50", "3/25"), ("3/5", "3/10", "1/10")),
        ("filter-on-the-draw-only", ("5/6", "1/6", 0), ("2/3", "1/3", 0)),
        ("token-zero-is-nothing", ("7/20", "11/20", "1/10"), ("3/5", "3/10", "1/10")),
        ("unnormalised-p", ("13/25", "11/50", "13/50"), ("3/5", "3/10", "1/10")),
        ("temperature-on-the-draw-only", None, ("18/23", "9/46", "1/46")),
    ],
)
def test_laws_are_the_known_fractions(seen, name, wrong, right) -> None:
    bars = seen[name][1].bars
    if wrong is not None:
        assert bars.wrong == pytest.approx([float(Fraction(one)) for one in wrong], abs=1e-12)
    assert bars.right == pytest.approx([float(Fraction(one)) for one in right], abs=1e-12)
    assert sum(bars.wrong) == pytest.approx(1)


def test_a_softmaxed_residual_emits_the_published_law(seen) -> None:
    assert seen["softmax-residual"][0].wrong == "0.569, 0.269, 0.162"


def test_a_one_hot_q_is_right_for_a_certain_proposal() -> None:
    one_hot = np.eye(3)[laws.Q.argmax()]
    found = laws.exact_law(laws.argmax_proposal, laws.P, one_hot)
    assert found == pytest.approx(laws.P, abs=1e-12)


def test_errors_are_numpys_own_and_the_engines(seen) -> None:
    said = {name: row for name, (row, _) in seen.items()}
    assert "(4,23,24) into shape (4,9,24)" in said["cache-overflow"].wrong
    assert "room for 32 tokens and 46 would be needed" in said["cache-overflow"].engine
    assert said["cache-overflow"].right.endswith("holds 23")
    assert "shapes (690,96) (512,96)" in said["position-overflow"].wrong
    assert "512 positions and 690" in said["position-overflow"].engine
    assert "Probabilities do not sum to 1" in said["unnormalised-p"].wrong
    assert "NaN" in said["empty-residual"].wrong
    assert said["empty-residual"].right == "0.600, 0.300, 0.100"
    assert said["whole-prompt-reused"].wrong.startswith("IndexError")
    assert "at least one token" in said["whole-prompt-reused"].engine
    assert "out of bounds" in said["vocabulary-of-one"].wrong
    assert said["vocabulary-of-one"].right == "p = [1.0]"


def test_caches_out_of_step(seen, bench: Bench) -> None:
    forgotten, shown = seen["forgotten-truncate"]
    plain = [token.id for token in generate(bench.target, bench.prompt, max_new_tokens=40)]
    assert list(shown.texts.right) == plain
    assert int(forgotten.wrong) == shown.texts.first_difference < 40
    bars = seen["draft-lacks-last-proposal"][1].bars
    assert bars.right == (1, 1, 1, 1)
    assert max(bars.wrong) < 0.95
    loop = DraftLacksLastProposal(bench, bench.target)
    loop.round(3)
    assert loop.draft_cache.length == loop.target_cache.length - 1  # one place is missing
    bars = seen["idle-rounds-skip-draft"][1].bars
    assert bars.right == (1,)
    assert bars.wrong[0] < 0.95
    assert max(seen["rollback-one-too-far"][1].bars.right) <= 5e-6
    assert min(seen["rollback-one-too-far"][1].bars.wrong) > 0.1


def test_counting_and_stopping(seen) -> None:
    row, shown = seen["counts-behind-refusal"]
    assert row.wrong.startswith("3;")
    assert row.right == "1; none"
    assert shown.texts.first_difference is not None
    row, shown = seen["stop-inside-a-round"]
    assert len(shown.texts.wrong) > len(shown.texts.right) == shown.texts.first_difference
    assert shown.texts.right[-1] not in shown.texts.right[:-1]
    row, _ = seen["length-before-stop"]
    assert (row.wrong, row.right) == ("length", "stop")


def test_storage(seen) -> None:
    row, _ = seen["leaked-blocks"]
    assert int(row.wrong) < int(row.right) == 64
    assert row.engine.endswith("64 free + 0 used")
    row, _ = seen["refused-in-the-index"]
    assert float(row.wrong) > 0.1
    assert float(row.right) <= 5e-6
    assert float(row.engine.split()[-1]) <= 5e-6
    row, _ = seen["whole-prompt-reused"]
    assert row.engine.endswith("a paged cache reuses 17 of these 18 tokens")
    bars = seen["outlier-key-channel"][1].bars
    loss, error = zip(bars.wrong, bars.right, strict=True)
    assert loss[0] > 20 * abs(loss[1])  # per token loses far more ...
    assert error[0] < error[1]  # ... and has the smaller mean-square error


def test_an_outlier_channel_leaves_the_function_alone(bench: Bench) -> None:
    """Keys times 50 and queries over 50 are the same scores."""
    config = bench.target.config
    scaled = {name: value.copy() for name, value in bench.weights.items()}
    for layer in range(config.n_layer):
        products = scaled[f"h.{layer}.attn.c_attn.weight"]
        products[:, 0] /= 50
        products[:, config.width] *= 50
    tokens = bench.prompt_tokens
    logits = [
        plain_forward(weights, config, tokens, PlainCache(config, len(tokens)))
        for weights in (bench.weights, scaled)
    ]
    assert abs(logits[0] - logits[1]).max() < 1e-4


def test_masks_and_widths(seen, bench: Bench) -> None:
    row, _ = seen["no-causal-mask"]
    wrong, right = float(row.wrong.split(";")[0]), float(row.right)
    assert wrong > 0.1
    assert right < 1e-5
    row, _ = seen["widths-round-differently"]
    assert row.right == "40 by argmax"
    assert int(row.wrong.split()[0]) < 40
    config, tokens = bench.target.config, bench.prompt_tokens
    mask = causal_mask(len(tokens), 0, np.dtype("float32"))
    given = plain_forward(bench.weights, config, tokens, PlainCache(config, 32), mask)
    assert (given == plain_forward(bench.weights, config, tokens, PlainCache(config, 32))).all()


@pytest.mark.parametrize(
    ("wrong", "right", "place"),
    [((1, 2), (1, 2), None), ((1, 3), (1, 2), 1), ((1, 2, 3), (1, 2), 2), ((), (), None)],
)
def test_first_difference(wrong, right, place) -> None:
    assert Texts(wrong, right).first_difference == place


@pytest.mark.parametrize("changes", [{"k": 1}, {"k": 8, "tokens": 8}, {"prompt": "x"}])
def test_other_settings_run_too(bench: Bench, changes) -> None:
    other = Bench(bench.target, bench.draft, bench.weights, **({"tokens": 24} | changes))
    assert len(list(measured(other))) == len(PITFALLS)
