"""speculate(): a whole run of speculative decoding, an event a round.

What is asked is checked before the first round; the rounds are decoding.py's, or tree.py's.
"""

from collections.abc import Iterator
from typing import Literal

from tinyllm.attention import LARGEST_TREE
from tinyllm.errors import SettingError, whole_number
from tinyllm.model import Transformer
from tinyllm.prompt import Prompt, Stop, prompt_tokens, stop_tokens
from tinyllm.sampling import RandomSampler, Sampler, Sampling
from tinyllm.speculative.auto import AUTO, AutoK
from tinyllm.speculative.costs import Costs
from tinyllm.speculative.decoding import Round, SpeculativeDecoder
from tinyllm.speculative.drafters import Drafter, ModelDrafter, RunShape
from tinyllm.speculative.tree import MAX_WIDTH, TreeDecoder

MAX_K = 64


def speculate(
    target: Transformer,
    drafter: Drafter | Transformer,
    prompt: Prompt,
    *,
    k: int | Literal["auto"] = 4,
    max_new_tokens: int = 96,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float = 1.0,
    seed: int = 0,
    stop: Stop = (),
    kv_dtype: str | None = None,
    sampler: Sampler | None = None,
    verify: str = "token",
    costs: Costs | None = None,
    width: int = 1,
) -> Iterator[Round]:
    """Rounds that together emit the tokens following a prompt, with the target's own law.

    A round proposes at most k tokens, fewer near the end of max_new_tokens, so a run makes
    exactly max_new_tokens tokens unless a stop token ends it. With k="auto" every round has the
    k that promises most at `costs`, and a plain step where none does, see AutoK. verify="block"
    judges the proposals of a round as a whole, see verification.py; proposals that are certain, as
    those of prompt lookup, are judged by drawing, so that a seed's text is that of generate(). With
    a width above 1 every place has that many candidates, which the target checks as a tree, see
    tree.py. `sampler` replaces the seeded one. Raises, before the first round, TokenError,
    SettingError or ContextOverflowError.
    """
    width = whole_number(width, "width, the candidates for a place,", 1, MAX_WIDTH)
    if k == AUTO and width > 1:
        raise SettingError(f'a tree has a fixed k: give a number instead of k="{AUTO}"')
    if k == AUTO and costs is None:
        raise SettingError(
            f'k="{AUTO}" needs costs, what the calls of this pair cost in steps: '
            "give costs=calibrate(target, drafter, prompt)"
        )
    longest = MAX_K if width == 1 else LARGEST_TREE - 1  # the committed token is the root
    fixed = 0 if k == AUTO else whole_number(k, "k, the proposals per round,", 1, longest)
    tokens = prompt_tokens(prompt, target, max_new_tokens)
    stops = stop_tokens(stop, target)
    run = RunShape(
        capacity=len(tokens) + max_new_tokens,
        vocab_size=target.config.vocab_size,
        sampling=Sampling(temperature, top_k, top_p),
        kv_dtype=kv_dtype,
    )
    if isinstance(drafter, Transformer):
        drafter = ModelDrafter(drafter)
    asked = (target, drafter, tokens, run, stops, sampler or RandomSampler(seed), verify)
    decoder = SpeculativeDecoder(*asked) if width == 1 else TreeDecoder(*asked, width=width)
    auto = AutoK(costs, max_new_tokens, decoder.certain) if costs and k == AUTO else None

    def rounds() -> Iterator[Round]:
        sequence = decoder.sequence
        end = len(tokens) + max_new_tokens
        while (room := end - len(sequence)) > 0:
            # The target's own token takes one place of the room.
            wanted = min(auto.k if auto else fixed, room - 1)
            if auto and auto.pause:
                before = len(sequence)
                foreseen = decoder.foresee(auto.watched)
                yield from decoder.steps(min(auto.pause, room))
                auto.paused(sequence[before:], foreseen)
            elif wanted:
                event = decoder.round(wanted)
                if auto:
                    auto.learn(len(event.proposed), event.accepted)
                yield event
            else:
                yield decoder.step()
            if sequence[-1] in stops:
                return

    return rounds()
