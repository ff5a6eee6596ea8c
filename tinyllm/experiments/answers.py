"""bench guide: the questions readers ask about all this, each answered with a number from here.

The questions are the article's own. Every answer is a short measurement with the shipped models,
made by the experiment that its page shows at length.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from tinyllm.experiments import decode, head_quality
from tinyllm.experiments.head_quality import Variant
from tinyllm.experiments.memory import cache_size
from tinyllm.experiments.messages import _
from tinyllm.experiments.prompts import validation_prompts, validation_text
from tinyllm.experiments.settings import RunConfig
from tinyllm.experiments.speculative import compare
from tinyllm.experiments.timing import Case, Spread, in_turn
from tinyllm.generation import generate
from tinyllm.memory import plan, preset
from tinyllm.model import Transformer
from tinyllm.speculative import Counters, NGramDrafter, speculate

KS = (1, 2, 3, 4, 6, 8)
PUBLIC_MODEL = "Qwen3-8B"


@dataclass(frozen=True, slots=True)
class Answer:
    """One question, the answer with its numbers, and the figure it rests on."""

    question: str
    sentence: str  # with named places for the values
    values: Mapping[str, Any]
    figure: str  # what the number is
    spread: Spread

    def text(self, translate: Callable[[str], str] = str) -> str:
        """The sentence with its numbers, in another language if there is one."""
        return translate(self.sentence).format(**self.values)

    def row(self) -> dict[str, Any]:
        """As one flat object."""
        return {
            "question": self.question,
            "answer": self.text(),
            "figure": self.figure,
            "median": self.spread.median,
            "low": self.spread.low,
            "high": self.spread.high,
            "count": self.spread.count,
        }


@dataclass(frozen=True, slots=True)
class Asked:
    """The models that are asked, and how much is asked of them."""

    target: Transformer
    draft: Transformer
    known: Sequence[Variant]  # the targets with fewer KV heads, the first with most
    variants: Sequence[Transformer]
    prompts: int = 8
    tokens: int = 96
    prefill: int = 256
    windows: int = 16

    @property
    def runs(self) -> list[RunConfig]:
        """Greedy runs of the validation prompts."""
        prompts = validation_prompts(self.prompts)
        return [RunConfig(prompt=one, tokens=self.tokens, temperature=0.0) for one in prompts]


def rows(asked: Asked) -> Iterator[Answer]:
    """Every answer as soon as it is measured."""
    for question in (_same_output, _queries, _capacity, _same_quality, _any_draft):
        yield question(asked)
    yield from _best_k(asked)
    for question in (_prefill, _heads):
        yield question(asked)


def _same_output(asked: Asked) -> Answer:
    found = decode.equality(asked.target)
    same = _(
        "No: all {tokens} tokens are the same, and no logit differs by more than {difference:.1e}, "
        "which is rounding. A quantised cache rounds more, and may."
    )
    other = _("Here it does: of {tokens} tokens some differ, the logits by up to {difference:.1e}.")
    values = {"tokens": decode.EQUALITY_TOKENS, "difference": max(found.differences)}
    return Answer(
        _("Does a KV cache change the output?"),
        same if found.same_tokens else other,
        values,
        "largest difference of two logits",
        Spread.of(found.differences),
    )


def _queries(asked: Asked) -> Answer:
    config = asked.target.config
    cache = asked.target.new_cache()
    query = config.n_layer * config.width * asked.target.dtype.itemsize
    return Answer(
        _("Why is the query not cached?"),
        _(
            "No later step reads it. A step at a full context reads {held:,} bytes of earlier keys "
            "and values, and one query of {query:,} bytes: its own."
        ),
        {"held": cache.nbytes, "query": query},
        "bytes of keys and values that one step reads",
        Spread.of([cache.nbytes]),
    )


def _capacity(asked: Asked) -> Answer:
    config = asked.target.config
    size = cache_size(config, "float32", config.context_length)
    public = plan(preset(PUBLIC_MODEL).config).bytes(tokens=1)
    agree = _(
        "2 × layers × KV heads × head_dim × tokens × bytes: {formula:,} for our target at {tokens} "
        "tokens, and its arrays hold {arrays:,}. {model} in bfloat16 needs {kib:.0f} KiB a token."
    )
    return Answer(
        _("How do I estimate the size of a KV cache?"),
        agree,
        {
            "formula": size.formula,
            "arrays": size.arrays,
            "tokens": config.context_length,
            "model": PUBLIC_MODEL,
            "kib": public / 1024,
        },
        "bytes of the cache's arrays",
        Spread.of([size.arrays]),
    )


def _same_quality(asked: Asked) -> Answer:
    same = 0
    for run in asked.runs:
        plain = [token.id for token in generate(asked.target, run.prompt, **run.run_settings)]
        rounds = speculate(asked.target, asked.draft, run.prompt, k=run.k, **run.run_settings)
        same += plain == [token for event in rounds for token in event.tokens]
    no = _(
        "No. At temperature 0 {same} of {prompts} texts of {tokens} tokens are the very ones that "
        "plain decoding writes; above 0 the law of the output stays the target's."
    )
    ties = _(
        "Here {same} of {prompts} texts of {tokens} tokens are those of plain decoding: in the "
        "others two tokens are as likely up to rounding. The law of the output is the target's."
    )
    return Answer(
        _("Does speculative decoding make the text worse?"),
        no if same == asked.prompts else ties,
        {"same": same, "prompts": asked.prompts, "tokens": asked.tokens},
        "share of texts that are the same",
        Spread.of([same / asked.prompts]),
    )


def _any_draft(asked: Asked) -> Answer:
    rates = {}
    for name, drafter in (("draft", asked.draft), ("lookup", NGramDrafter())):
        counters = Counters()
        for run in asked.runs:
            for event in speculate(asked.target, drafter, run.prompt, k=run.k, **run.run_settings):
                counters = counters.add(event)
        rates[name] = counters.tokens_per_call or 0.0
    return Answer(
        _("Will any draft do?"),
        _(
            "For the text, yes; for the speed, no. A call of the target gives {draft:.2f} tokens "
            "with the draft model and {lookup:.2f} with prompt lookup. It must share the "
            "vocabulary, agree often and be light."
        ),
        rates,
        "tokens per target call with the draft model",
        Spread.of([rates["draft"]]),
    )


def _best_k(asked: Asked) -> Iterator[Answer]:
    """Which k is fastest at temperature 0, and what that k gives when tokens are drawn."""
    speedups = {k: _speedup(asked, k, temperature=0.0) for k in KS}
    best = max(KS, key=lambda k: speedups[k].median)
    yield Answer(
        _("Which k is best?"),
        _(
            "Here k = {best}, at {speed:.2f} times the speed of plain decoding; k = {last} gives "
            "{far:.2f}. It depends on how much is accepted and on what checking costs: measure."
        ),
        {
            "best": best,
            "speed": speedups[best].median,
            "last": KS[-1],
            "far": speedups[KS[-1]].median,
        },
        "speed against plain decoding at the best k",
        speedups[best],
    )
    drawn = _speedup(asked, best, temperature=0.7)
    yield Answer(
        _("Does speculation help on a CPU?"),
        _(
            "With k = {k}: {greedy:.2f} times the speed at temperature 0 and {drawn:.2f} at 0.7. "
            "The larger the target, the more a call costs reading weights, and the more it helps."
        ),
        {"k": best, "greedy": speedups[best].median, "drawn": drawn.median},
        "speed against plain decoding at temperature 0.7",
        drawn,
    )


def _speedup(asked: Asked, k: int, temperature: float) -> Spread:
    """Speculative against plain decoding, a pair of runs for every prompt."""
    ratios = []
    for run in asked.runs:
        config = run.with_(k=k, temperature=temperature)
        (pair,) = compare(config, asked.target, asked.draft, repeats=1)
        ratios.append(pair.speculative / pair.plain)
    return Spread.of(ratios)


def _prefill(asked: Asked, turns: int = 5) -> Answer:
    """As many tokens in one call, and one by one, in turn."""
    model, count = asked.target, asked.prefill
    fed = model.tokenizer.encode(validation_text()[:count])

    def feed(size: int) -> None:
        cache = model.new_cache(capacity=count)
        for start in range(0, count, size):
            model.forward(fed[start : start + size], cache, rows=1)

    cases = {"one by one": Case(partial(feed, 1)), "at once": Case(partial(feed, count))}
    seconds = in_turn(cases, turns, warm_up=1)
    ratios = [a / b for a, b in zip(seconds["one by one"], seconds["at once"], strict=True)]
    spread = Spread.of(ratios)
    return Answer(
        _("Why are prefill and decoding so different in speed?"),
        _(
            "Prefill multiplies many rows in one call, decoding reads all weights for one row. The "
            "same {tokens} tokens go in {ratio:.1f} times faster at once than one by one."
        ),
        {"tokens": count, "ratio": spread.median},
        "time one by one / time at once",
        spread,
    )


def _heads(asked: Asked) -> Answer:
    times = head_quality.variant_times(asked.variants, validation_text(), asked.windows)
    rows = head_quality.quality_rows(asked.known, times)
    first = rows[0]
    fewest = head_quality.best_of_fewest(rows)
    little = _(
        "A little: trained with one KV head for {most} query heads, the loss on unseen text is "
        "{above:+.3f} ± {error:.3f} nats a character, for a cache {saved:.0f} times smaller."
    )
    unseen = _(
        "Not that these {windows} windows could tell: trained with one KV head for {most} query "
        "heads, the loss is {above:+.3f} ± {error:.3f} nats a character, for a cache {saved:.0f} "
        "times smaller."
    )
    return Answer(
        _("Do fewer KV heads harm the quality?"),
        little if fewest.above > 2 * fewest.above_error else unseen,
        {
            "windows": fewest.windows,
            "most": asked.target.config.n_head,
            "above": fewest.above,
            "error": fewest.above_error,
            "saved": first.bytes_per_token / fewest.bytes_per_token,
        },
        "loss above that of all KV heads, nats a character",
        Spread.of([fewest.above]),
    )
