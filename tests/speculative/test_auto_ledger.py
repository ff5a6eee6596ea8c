"""AutoK by itself, on proposals that are kept by chance: what it may lose and what it wins."""

import itertools
import random
from statistics import mean

import pytest

from tests.speculative.pair_costs import COSTS, TOKENS, WIDTHS
from tinyllm.speculative import Costs
from tinyllm.speculative.auto import LOSS, OWN, AutoK

PROFILES = {f"constant {tenth / 10}": [tenth / 10] * 8 for tenth in range(11)} | {
    "falling": [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2],
    "first only": [1.0] + [0.0] * 7,
    "rising": [0.3, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9],
}


class Fixed:
    """What AutoK is compared with: one k from beginning to end."""

    pause = 0

    def __init__(self, k):
        self.k = k

    def learn(self, proposed, accepted):
        pass


def cost_a_token(chooser, costs, profile, seed, share=1.0):
    """Steps a token of a run in which proposal i is kept with probability profile[i], and in which
    the drafter has proposals with probability `share`."""
    rng = random.Random(seed)

    def kept(k):
        return next((i for i in range(k) if rng.random() >= profile[i]), k)

    made, spent, behind = 0, 0.0, True
    while made < TOKENS:
        room = TOKENS - made
        k = min(chooser.k, room - 1)
        if chooser.pause or not k:
            steps = min(chooser.pause, room) or 1
            spent += steps + costs.resuming * (not behind)
            behind = True
            made += steps
            if chooser.pause:
                watched = chooser.watched
                spent += (costs.round(0) - 1) * (watched > 0)
                foreseen = watched if rng.random() < share else 0
                right = kept(foreseen)
                chooser.paused([1] * steps, [1] * right + [0] * (foreseen - right))
        elif rng.random() < share:
            accepted = kept(k)
            made += accepted + 1
            spent += costs.round(k) + costs.catch_up * (accepted == k) + costs.returning * behind
            behind = False
            chooser.learn(k, accepted)
        else:
            made += 1
            spent += costs.round(0) + costs.resuming * (not behind)
            behind = True
            chooser.learn(0, 0)
    return spent / TOKENS


@pytest.mark.parametrize("certain", [False, True])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.7, 1.0])
@pytest.mark.parametrize("costs", COSTS.values(), ids=list(COSTS))
@pytest.mark.parametrize("name", PROFILES)
def test_no_run_loses_more_than_it_may(costs, name, share, certain):
    for seed in range(60):
        chooser = AutoK(costs, TOKENS, certain)
        own = OWN * (costs.asking + costs.per_round) / TOKENS
        assert own + cost_a_token(chooser, costs, PROFILES[name], seed, share) <= 1 + LOSS + 1e-9


@pytest.mark.parametrize(("certain", "near", "soon"), [(False, 1.09, 1.2), (True, 1.12, 1.3)])
@pytest.mark.parametrize("costs", COSTS.values(), ids=list(COSTS))
@pytest.mark.parametrize("name", PROFILES)
def test_the_mean_is_near_the_best_k(costs, name, certain, near, soon):
    """What is watched first begins later, and is worse off where all is kept."""
    profile = PROFILES[name]
    best = min(
        mean(cost_a_token(Fixed(k), costs, profile, seed) for seed in range(60))
        for k in WIDTHS[:-1]
    )
    runs = [cost_a_token(AutoK(costs, TOKENS, certain), costs, profile, seed) for seed in range(60)]
    # Where the first place refuses most, or a call of two tokens costs two, a round or two have
    # spent what trying may lose, and the rest is plain.
    soon_spent = name == "rising" or costs is COSTS["steep"]
    assert mean(runs) <= (soon if soon_spent else near) * min(best, 1)


def test_what_is_watched_loses_nothing_but_looks_where_it_is_never_right():
    """Where a try would take most of what may be lost, and without watching does."""
    costs = COSTS["steep"]
    never = [0.0] * 8
    looks = cost_a_token(AutoK(costs, TOKENS, certain=True), costs, never, 0) - 1
    tries = cost_a_token(AutoK(costs, TOKENS), costs, never, 0) - 1
    assert 0 < looks < tries / 2
    assert looks * TOKENS == pytest.approx(5 * costs.asking)  # before pauses of 2, 6, 18, 54, 64


def test_it_follows_a_text_that_changes():
    """Refused for 200 tokens, then kept: the pauses grow, and end when it pays."""
    costs, chooser = COSTS["large"], AutoK(COSTS["large"], 400)
    tries, lost, behind, made = [], 0.0, True, 0
    while made < 200:
        if chooser.pause:
            made += chooser.pause
            lost += costs.resuming * (not behind)
            behind = True
            chooser.paused([0] * chooser.pause, [])
            continue
        tries.append(made)
        lost += costs.round(chooser.k) + costs.returning * behind - 1
        behind = False
        made += 1
        chooser.learn(chooser.k, 0)
    gaps = [later - earlier for earlier, later in itertools.pairwise(tries)]
    assert len(tries) <= 12
    assert max(gaps) >= 32
    assert lost <= LOSS * 200 + 1e-9
    asked = []
    while made < 1_000:
        if chooser.pause:
            made += chooser.pause
            chooser.paused([0] * chooser.pause, [])
            continue
        asked.append(chooser.k)
        made += chooser.k + 1
        chooser.learn(chooser.k, chooser.k)
    assert min(asked[-60:]) == 8


def test_what_loses_even_when_all_is_kept_is_never_tried():
    costs = Costs(0.1, {1: 1.0, 2: 1.8}, catch_up=0.2)
    assert costs.round(1) < 2 < costs.round(1) + costs.catch_up
    chooser = AutoK(costs, TOKENS)
    assert chooser.pause >= TOKENS
