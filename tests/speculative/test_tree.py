"""Trees of proposals: the call's arithmetic, what stays in the cache, and the law of the output."""

from itertools import product

import numpy as np
import pytest

from tests.families import CONFIGS, TOKENS, family_weights
from tinyllm.attention import LARGEST_TREE, Tree
from tinyllm.config import ModelConfig
from tinyllm.errors import SettingError
from tinyllm.experiments.enumeration import largest_difference, law
from tinyllm.generation import generate
from tinyllm.model import Transformer
from tinyllm.sampling import RandomSampler, Sampling
from tinyllm.speculative import (
    EarlyExitDrafter,
    HeadsDrafter,
    ModelDrafter,
    NGramDrafter,
    TreeDecoder,
    speculate,
)
from tinyllm.speculative.drafters import RunShape
from tinyllm.speculative.drafters.heads import head_shapes
from tinyllm.speculative.tree import Candidate, chosen, siblings

PROMPT = "    return self.x == self."
P, Q = np.array([0.6, 0.3, 0.1]), np.array([0.5, 0.2, 0.3])
# Two branches that part at the root, one of which parts again.
PARENTS = [-1, 0, 1, 1, 0, 4]


def random_heads():
    rng = np.random.default_rng(0)
    shapes = head_shapes(3, 96, 96).items()
    return HeadsDrafter({name: rng.normal(0, 0.3, shape) for name, shape in shapes})


def drafters(draft64):
    return {
        "draft": ModelDrafter(draft64),
        "n-gram": NGramDrafter(shortest=1),
        "early exit": EarlyExitDrafter(1),
        "heads": random_heads(),
    }


NAMES = ["draft", "n-gram", "early exit", "heads"]


def branch_to(node):
    path = [node]
    while PARENTS[path[0]] >= 0:
        path.insert(0, PARENTS[path[0]])
    return path


@pytest.mark.parametrize("dtype", ["float64", "int8"])
def test_a_trees_rows_are_those_of_its_branches_alone(target64, dtype):
    prompt, nodes = target64.tokenizer.encode(PROMPT), [10, 20, 30, 40, 50, 60]
    cache = target64.new_cache(dtype)
    target64.forward(prompt, cache)
    together = target64.forward(nodes, cache, tree=Tree.of(PARENTS))
    for node in range(len(nodes)):
        fresh = target64.new_cache(dtype)
        target64.forward(prompt, fresh)
        alone = target64.forward([nodes[i] for i in branch_to(node)], fresh)
        assert np.abs(together[node] - alone[-1]).max() <= 1e-9


@pytest.mark.parametrize("dtype", ["float64", "float16", "int8", "int4_g8"])
@pytest.mark.parametrize("node", range(len(PARENTS)))
def test_keeping_a_branch_leaves_what_it_alone_would_have_written(target64, node, dtype):
    prompt, nodes = target64.tokenizer.encode(PROMPT), [10, 20, 30, 40, 50, 60]
    cache, fresh = target64.new_cache(dtype), target64.new_cache(dtype)
    for one in (cache, fresh):
        target64.forward(prompt, one)
    branch = branch_to(node)
    target64.forward(nodes, cache, tree=Tree.of(PARENTS))
    target64.forward([nodes[i] for i in branch], fresh)
    cache.keep(len(prompt), branch)
    assert cache.length == fresh.length
    for held, expected in zip(cache.layers, fresh.layers, strict=True):
        for one, other in zip(held, expected, strict=True):
            gap = np.abs(one.read(cache.length) - other.read(cache.length)).max()
            assert gap <= 1e-9


@pytest.mark.parametrize("parents", [[-1, 1], [0], [-1, 2, 0], [-2], [-1] * (LARGEST_TREE + 1)])
def test_what_is_no_tree_is_refused(parents):
    with pytest.raises(SettingError, match="each after its parent"):
        Tree.of(parents)


def test_a_tree_goes_with_its_tokens_and_a_cache_that_can_hold_it(target):
    for cache, tokens, rows in (
        (None, [1, 2, 3], None),
        (None, [1, 2], 1),
        (None, [1, 2, 3], 2),
        (target.new_cache("int8_channel"), [1, 2], None),
    ):
        with pytest.raises(SettingError, match="a tree of 2 nodes needs"):
            target.forward(tokens, cache, rows, tree=Tree.of([-1, 0]))


def test_the_published_acceptance_of_two_drafts():
    """4/5 with one draft, 47/50 with two drawn with replacement, 67/70 without."""

    def accepted(replace, count):
        def run(sampler):
            first = Candidate(sampler.draw(Q), Q)
            more = [Candidate(sampler.draw(Q), Q) for _ in range(count - 1)]
            found = [first, *(more if replace else siblings(first, count - 1, sampler))]
            return chosen(found, P, sampler)[0] is not None

        return law(run)[True]

    # With replacement the further draws are made whether they are needed or not.
    assert accepted(True, 1) == pytest.approx(4 / 5, abs=1e-12)
    assert accepted(True, 2) == pytest.approx(47 / 50, abs=1e-12)
    assert accepted(False, 2) == pytest.approx(67 / 70, abs=1e-12)


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_whatever_the_candidates_the_token_has_the_law_p(count):
    rng = np.random.default_rng(1)
    for _ in range(20):
        p, q = rng.dirichlet(np.ones(3)), rng.dirichlet(np.full(3, 0.5))

        def run(sampler, p=p, q=q):
            first = Candidate(sampler.draw(q), q)
            found = [first, *siblings(first, count - 1, sampler)]
            index, left = chosen(found, p, sampler)
            return sampler.draw(left) if index is None else found[index].token

        emitted = law(run)
        assert max(abs(emitted.get(x, 0.0) - p[x]) for x in range(3)) <= 1e-12


def test_siblings_are_all_different_and_end_where_q_does():
    for seed in range(20):
        sampler = RandomSampler(seed)
        found = siblings(Candidate(1, np.array([0.5, 0.2, 0.3, 0.0])), 5, sampler)
        assert sorted(one.token for one in found) == [0, 2]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("k", "width", "top_k"), [(1, 2, 3), (2, 2, 2), (2, 3, 2)])
def test_three_tokens_have_the_joint_law_of_plain_decoding(
    target64, draft64, name, k, width, top_k
):
    settings = {"max_new_tokens": 3, "temperature": 1.0, "top_k": top_k}
    drafter = drafters(draft64)[name]

    def plain(sampler):
        return tuple(t.id for t in generate(target64, PROMPT, sampler=sampler, **settings))

    def speculative(sampler):
        rounds = speculate(target64, drafter, PROMPT, k=k, width=width, sampler=sampler, **settings)
        return tuple(token for event in rounds for token in event.tokens)

    expected, emitted = law(plain), law(speculative)
    assert len(expected) >= 8
    assert largest_difference(expected, emitted) <= 1e-12


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("k", "width"), [(1, 2), (4, 3)])
def test_greedy_tokens_are_those_of_plain_decoding(target64, draft64, prompts, name, k, width):
    for prompt in prompts[:3]:
        rounds = speculate(target64, drafters(draft64)[name], prompt, k=k, width=width)
        tokens = [token for event in rounds for token in event.tokens]
        assert tokens == [token.id for token in generate(target64, prompt)]


def loop_of(target, drafter, width, temperature=1.0, stops=frozenset()):
    run = RunShape(300, 96, Sampling(temperature))
    tokens = target.tokenizer.encode(PROMPT)
    return TreeDecoder(target, drafter, tokens, run, stops, RandomSampler(2), width=width)


def test_the_cache_keeps_the_accepted_branch_alone(target64, draft64):
    """After every round it equals a fresh prefill of what was committed, siblings or not."""
    loop = loop_of(target64, ModelDrafter(draft64), 3)
    by_sibling = 0
    for _ in range(30):
        event = loop.round(4)
        kept = event.tokens[: event.accepted]
        by_sibling += bool(kept) and kept != event.proposed[: event.accepted]
        fresh = target64.new_cache()
        target64.forward(loop.sequence[:-1], fresh)
        assert loop.cache.length == fresh.length == event.target_cache_length
        assert loop.draft.cache.length == fresh.length
        for held, expected in zip(loop.cache.layers, fresh.layers, strict=True):
            for one, other in zip(held, expected, strict=True):
                gap = np.abs(one.read(fresh.length) - other.read(fresh.length)).max()
                assert gap <= 1e-9
    assert by_sibling > 3


def test_siblings_stand_beside_their_proposals(target, draft):
    for temperature, width in product((0.0, 0.8), (2, 4)):
        event = loop_of(target, ModelDrafter(draft), width, temperature).round(3)
        assert len(event.siblings) == len(event.proposed) == 3
        for token, beside in zip(event.proposed, event.siblings, strict=True):
            assert len({token, *beside}) == width
        assert event.target_cache_peak == len(PROMPT) + 3 * width


def test_a_wider_tree_makes_no_fewer_tokens_a_call(target, draft, prompts):
    """Greedily, prompt by prompt: the spine is the same, and siblings only add to it."""
    for prompt in prompts:
        calls = [
            len(list(speculate(target, draft, prompt, k=3, width=width))) for width in (1, 2, 4)
        ]
        assert calls[0] >= calls[1] >= calls[2]


def test_a_stop_token_ends_the_run_also_as_a_sibling(target64, draft64):
    stop = "\n"
    ends = set()
    for seed in range(12):
        settings = {"temperature": 1.0, "seed": seed, "stop": stop, "max_new_tokens": 60}
        events = list(speculate(target64, draft64, PROMPT, k=4, width=4, **settings))
        made = [token for event in events for token in event.tokens]
        newline = target64.tokenizer.encode(stop)[0]
        assert newline not in made[:-1]
        ends.add(events[-1].closing)
    assert "stopped" in ends


def test_near_the_end_of_the_context_the_tree_shrinks(target, draft):
    prompt = [7] * 490
    events = list(speculate(target, draft, prompt, k=8, width=4, max_new_tokens=22))
    assert sum(len(event.tokens) for event in events) == 22
    assert max(event.target_cache_peak for event in events) <= target.config.context_length


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"width": 0}, "width, the candidates for a place, must be"),
        ({"width": 9}, "width, the candidates for a place, must be"),
        ({"width": 2, "k": "auto"}, "a tree has a fixed k"),
        ({"width": 2, "k": 64}, "k, the proposals per round, must be a whole number from 1 to 63"),
        ({"width": 2, "verify": "block"}, "judged token by token"),
        ({"width": 2, "kv_dtype": "int4_channel"}, "without scales by channel"),
    ],
)
def test_what_a_tree_does_not_go_with_is_refused(target, draft, settings, message):
    with pytest.raises(SettingError, match=message):
        speculate(target, draft, PROMPT, **settings)


@pytest.mark.parametrize("name", ["gpt2", "qwen3"])
def test_positions_are_depths_in_either_family(name):
    """Learned or rotary: a node's position is its depth, not its place in the cache."""
    config = ModelConfig.from_json(CONFIGS[name])
    model = Transformer(config, family_weights(name), "float64")
    cache, fresh, nodes = model.new_cache(), model.new_cache(), [10, 20, 30, 40, 50, 60]
    for one in (cache, fresh):
        model.forward(TOKENS, one)
    together = model.forward(nodes, cache, tree=Tree.of(PARENTS))
    branch = branch_to(5)
    alone = model.forward([nodes[i] for i in branch], fresh)
    assert np.abs(together[branch] - alone).max() <= 1e-10
    cache.keep(len(TOKENS), branch)
    following = [one.forward([7], where) for one, where in ((model, cache), (model, fresh))]
    assert np.abs(following[0] - following[1]).max() <= 1e-10
