"""Sentences with a run's own numbers: what to notice, and what a chart shows for who cannot see.

Nothing is typed in: every number comes from the record the sentence is about.
"""

from collections.abc import Sequence

from tinyllm.config import ModelConfig
from tinyllm.experiments.cached_decoding import EqualityRow
from tinyllm.experiments.flops import matrix_flops
from tinyllm.experiments.kv_cache import CacheRecord, CacheRow
from tinyllm.experiments.race import Lane, first_difference
from tinyllm.experiments.settings import RunConfig
from tinyllm.experiments.speculative_record import Record
from tinyllm.experiments.timing import Spread
from tinyllm.speculative import Counters
from tinyllm.ui.text import _, format_bytes, format_count, format_rate, format_seconds

NO_DIFFERENCE = 0.03  # of a speed-up; below what a timing is worth


def race(record: Sequence[Lane], *, finished: bool = True) -> str:
    """What the race shows."""
    if not finished:
        return _("The lanes are running, each on its own clock: {steps}.").format(
            steps=", ".join(
                _("{tokens} tokens in {time}").format(
                    tokens=lane.n_tokens, time=format_seconds(lane.ends[-1])
                )
                for lane in record
            )
        )
    uncached, cached, speculative = record
    place = first_difference(record)
    if place is None:
        sentence = _(
            "All three lanes write the same {tokens} tokens. The cache makes it {cached:.1f} "
            "times faster. Speculation calls the target {calls} times instead of {tokens}, and "
            "runs at {speedup:.2f} times the speed of the cache alone."
        )
    else:
        sentence = _(
            "The lanes write the same {place} tokens and then part: rounding, in the cache or in "
            "the order of sums, changes the logits a little. The cache makes it {cached:.1f} "
            "times faster. Speculation calls the target {calls} times for {tokens} tokens, at "
            "{speedup:.2f} times the speed of the cache alone."
        )
    return sentence.format(
        place=place,
        tokens=speculative.n_tokens,
        cached=cached.tokens_per_second.median / uncached.tokens_per_second.median,
        calls=speculative.calls,
        speedup=speculative.tokens_per_second.median / cached.tokens_per_second.median,
    )


def _cache_words(row: CacheRow) -> dict[str, object]:
    return {
        "position": row.position,
        "cached": format_seconds(row.cached_seconds.median),
        "uncached": format_seconds(row.uncached_seconds.median),
        "ratio": row.uncached_seconds.median / row.cached_seconds.median,
        "used": format_bytes(row.used_bytes),
        "each": format_count(row.used_bytes / row.position),
    }


def cache(row: CacheRow) -> str:
    """What the cache saves and costs at a position."""
    return _(
        "At position {position} a step with the cache is {ratio:.0f} times faster. It pays with "
        "{used} of memory: {each} bytes for every token."
    ).format(**_cache_words(row))


def cache_chart(row: CacheRow) -> str:
    """The cache chart in words."""
    return _(
        "Time of one step against position. At position {position} a step takes {cached} with "
        "the cache and {uncached} without it; the cache then holds {used}."
    ).format(**_cache_words(row))


def cache_numbers(record: CacheRecord, shape: ModelConfig) -> list[tuple[str, str, str]]:
    """Operations of the last step measured, whole generations, and whether both ways agree."""
    position = record.rows[-1].position
    operations = {
        "cached": matrix_flops(shape, 1, position),
        "uncached": matrix_flops(shape, position + 1),
        "engine": matrix_flops(shape, position + 1, rows=1),
    }
    shown = {way: f"{count / 1e6:,.2f} MFLOP" for way, count in operations.items()}
    row = record.generation
    return [
        (_("a step with the cache"), shown["cached"], _("matrix products of one token")),
        (
            _("recomputing everything"),
            shown["uncached"],
            _("every token so far through every layer and the head"),
        ),
        (
            _("recomputing, as this engine does"),
            shown["engine"],
            _("earlier tokens end at the keys and values of the last layer"),
        ),
        (
            _("{tokens} tokens with the cache").format(tokens=record.tokens),
            "-" if row is None else _range(row.cached_seconds),
            _("greedy or drawn as chosen above: median and quartiles"),
        ),
        (
            _("{tokens} tokens without").format(tokens=record.tokens),
            "-" if row is None else _range(row.uncached_seconds),
            _("the same tokens, the whole text read anew for each"),
        ),
        (
            _("the same tokens both ways"),
            "-" if record.equality is None else _equal(record.equality),
            _("greedy, behind the article's prompt, in float32"),
        ),
    ]


def _equal(row: EqualityRow) -> str:
    """Whether all tokens are the same, and how far the logits are apart."""
    sentence = (
        _("all {tokens}; no logit differs by more than {difference:.1e}")
        if row.same_tokens
        else _("not all {tokens}; logits differ by up to {difference:.1e}")
    )
    return sentence.format(tokens=row.tokens, difference=row.largest_difference)


def _range(spread: Spread) -> str:
    """Median and quartiles of seconds."""
    low, middle, high = map(format_seconds, (spread.low, spread.median, spread.high))
    return f"{middle} ({low} - {high})"


def rounds_chart(record: Record) -> str:
    """The chart of the rounds in words."""
    counters = record.counters
    return _(
        "After {rounds} rounds {accepted} of {tested} tested proposals are accepted, with "
        "{per_call:.2f} tokens per target call and at most {most} in the target's cache."
    ).format(
        rounds=counters.drafts,
        accepted=counters.accepted,
        tested=counters.tested,
        per_call=counters.tokens_per_call or 0,
        most=format_bytes(record.most_bytes),
    )


def curve_chart(record: Record) -> str:
    """The chart over k in words."""
    points = record.points.values()
    measured = ", ".join(f"{one.k}: {one.counters.tokens_per_call or 0:.2f}" for one in points)
    return _(
        "Tokens per target call against k, Eq. 1 and measured; measured at k = {list}."
    ).format(list=measured)


def speculative(record: Record, config: RunConfig, finished: bool = True) -> str:
    """Whether speculation pays in this run, and why; of a run in play only its counters."""
    counters, comparison = record.counters, record.comparison
    if not counters.proposed:
        return _(
            "The drafter has proposed nothing so far: no earlier place in the text looks like "
            "its end. Every call of the target gives one token, as in plain decoding."
        )
    words: dict[str, object] = {
        "calls": counters.drafts,
        "tokens": counters.emitted,
        "accepted": counters.accepted,
        "proposed": counters.proposed,
        "tested": counters.tested,
        "k": config.k,
    }
    if comparison is None or not finished:
        return _(
            "{calls} calls of the target made {tokens} tokens: {accepted} of {proposed} proposals "
            "were accepted, {tested} were tested."
        ).format(**words)
    words["speed"] = f"{comparison.speedup.median:.2f}"
    words["fast"] = format_rate(comparison.speculative)
    words["plain"] = format_rate(comparison.plain)
    if abs(comparison.speedup.median - 1) < NO_DIFFERENCE:
        sentence = _(
            "{calls} calls of the target made {tokens} tokens, and it comes to the same: {fast} "
            "tokens/s against {plain} plain. Drafting and checking costs what the calls save."
        )
    elif comparison.speedup.median > 1:
        sentence = _(
            "{calls} calls of the target made {tokens} tokens, and that pays: {fast} tokens/s "
            "against {plain} plain, {speed} times as fast."
        )
    else:
        sentence = _(
            "{calls} calls of the target made {tokens} tokens, yet that does not pay here: "
            "{fast} tokens/s against {plain} plain, {speed} times as fast. Drafting and checking "
            "{k} proposals costs more than the calls it saves."
        )
    return sentence.format(**words)


def counter_rows(counters: Counters) -> list[tuple[str, str, str]]:
    """Every counter with its right name, its value and what it means."""
    return [
        (_("rounds D"), str(counters.drafts), _("calls of the target")),
        (_("proposed P"), str(counters.proposed), _("tokens the drafter gave")),
        (_("tested"), str(counters.tested), _("proposals up to the first rejection of a round")),
        (_("accepted A"), str(counters.accepted), _("proposals kept")),
        (
            _("accepted / tested, α"),
            _share(counters.acceptance_rate),
            _("the acceptance rate of the formulae"),
        ),
        (
            _("accepted / proposed"),
            _share(counters.accepted_per_proposed),
            _("falls with k even when α stays the same"),
        ),
        (
            _("survival by place"),
            " ".join(_share(one) for one in counters.survival),
            _("how often proposal 1, 2, ... was reached and accepted"),
        ),
        (
            _("conditional by place"),
            " ".join(_share(one) for one in counters.conditional),
            _("how often it was accepted once it was reached"),
        ),
        (
            _("tokens per target call"),
            "-" if counters.tokens_per_call is None else f"{counters.tokens_per_call:.3f}",
            _("tokens made / rounds"),
        ),
    ]


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"
