"""The decision table: a symptom, the techniques against it, what each costs, and its flags.

Facts only: nothing is measured here. The flags are those of the engines' own documentation, named
in SOURCES; an engine changes its flags now and then, so its `--help` has the last word.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from tinyllm.errors import SettingError
from tinyllm.experiments.messages import _

ENGINES = ("vLLM", "SGLang", "llama.cpp")
SOURCES = {
    "vLLM": _(
        "vLLM's documentation, version 0.32: *Engine Arguments*, *Optimization and Tuning*, "
        "*Automatic Prefix Caching*, *Quantized KV Cache*, *Speculative Decoding*."
    ),
    "SGLang": _(
        "SGLang's documentation, version 0.5: *Server Arguments*, *Hyperparameter Tuning*, "
        "*Quantized KV Cache*, *Speculative Decoding*."
    ),
    "llama.cpp": _(
        "llama.cpp, tree of October 2026: the options in *tools/server/README.md*, and "
        "*docs/speculative.md*."
    ),
}

SYMPTOMS = {
    "slow_first": _("First token comes late"),
    "same_start": _("Requests begin with the same text"),
    "slow_tokens": _("Tokens come slowly, few users"),
    "many_users": _("Out of memory with many users"),
    "long_context": _("Long contexts do not fit"),
    "no_start": _("Server does not start: no memory"),
    "large_batch": _("Many users, too few tokens/s in all"),
    "low_acceptance": _("Few drafted tokens are accepted"),
}
DEFAULT_SYMPTOMS = ("slow_tokens",)


@dataclass(frozen=True, slots=True)
class Flag:
    """How an engine turns a technique on; without a command the note says why."""

    engine: str
    command: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Technique:
    """One answer to some symptoms."""

    name: str
    symptoms: tuple[str, ...]  # keys of SYMPTOMS
    does: str
    costs: str
    page: str  # stem of the page of this app that shows it
    flags: tuple[Flag, ...]  # one for each of ENGINES

    def flag(self, engine: str) -> Flag:
        """The flag of one engine."""
        return next(flag for flag in self.flags if flag.engine == engine)


def _flags(*commands: str | tuple[str, str]) -> tuple[Flag, ...]:
    """One command, or command and note, for each of ENGINES."""
    pairs = (one if isinstance(one, tuple) else (one, "") for one in commands)
    return tuple(Flag(engine, *pair) for engine, pair in zip(ENGINES, pairs, strict=True))


TECHNIQUES = (
    Technique(
        _("Prefill in larger chunks"),
        ("slow_first",),
        _("More of the prompt goes through the model in one call."),
        _("While a large chunk runs, everybody else waits longer for the next token."),
        "prefill",
        _flags(
            ("--max-num-batched-tokens 8192", _("Chunked prefill is on by default.")),
            "--chunked-prefill-size 8192",
            ("-b 4096 -ub 2048", _("Logical and physical batch; more memory for activations.")),
        ),
    ),
    Technique(
        _("Reuse of a shared beginning"),
        ("slow_first", "same_start", "many_users"),
        _("Keys and values of the same first tokens are kept and used again."),
        _("Memory for what is kept; one different token and all behind it is computed anew."),
        "prefill",
        _flags(
            ("--enable-prefix-caching", _("On by default.")),
            ("", _("RadixAttention is on by default; --disable-radix-cache turns it off.")),
            ("--cache-reuse 256", _("--cache-prompt is on by default; this also shifts chunks.")),
        ),
    ),
    Technique(
        _("A draft model"),
        ("slow_tokens",),
        _("A small model proposes k tokens, the target checks them in one call."),
        _("The draft's weights and cache; slower than without when few tokens are accepted."),
        "speculative",
        _flags(
            '--speculative-config \'{"method": "draft_model", "model": "DRAFT", '
            '"num_speculative_tokens": 4}\'',
            "--speculative-algorithm STANDALONE --speculative-draft-model-path DRAFT "
            "--speculative-num-steps 4 --speculative-eagle-topk 1 "
            "--speculative-num-draft-tokens 5",
            "-md DRAFT.gguf --spec-type draft-simple --spec-draft-n-max 4",
        ),
    ),
    Technique(
        _("Prompt lookup"),
        ("slow_tokens", "low_acceptance"),
        _("What followed the same tokens earlier in the text is proposed; there is no draft."),
        _("Proposals in vain, unless the answer repeats its prompt, as in code and summaries."),
        "drafters",
        _flags(
            '--speculative-config \'{"method": "ngram", "num_speculative_tokens": 4, '
            '"prompt_lookup_max": 4}\'',
            (
                "--speculative-algorithm NGRAM --speculative-num-draft-tokens 8",
                _("On CUDA only."),
            ),
            "--spec-type ngram-simple",
        ),
    ),
    Technique(
        _("A drafter trained for the target"),
        ("slow_tokens", "low_acceptance"),
        _("EAGLE-3 or MTP heads read the target's hidden states, so more is accepted."),
        _("Somebody must have trained them for exactly this target."),
        "drafters",
        _flags(
            '--speculative-config \'{"method": "eagle3", "model": "HEADS", '
            '"num_speculative_tokens": 3}\'',
            "--speculative-algorithm EAGLE3 --speculative-draft-model-path HEADS "
            "--speculative-num-steps 3 --speculative-eagle-topk 1 "
            "--speculative-num-draft-tokens 4",
            "-md HEADS.gguf --spec-type draft-eagle3 --spec-draft-n-max 3",
        ),
    ),
    Technique(
        _("A smaller k"),
        ("low_acceptance", "large_batch"),
        _("Fewer proposals are drafted and checked in vain."),
        _("Fewer tokens per call where the text is easy to guess."),
        "sweep",
        _flags(
            ('"num_speculative_tokens": 2', _("Inside --speculative-config.")),
            "--speculative-num-steps 2 --speculative-num-draft-tokens 3",
            "--spec-draft-n-max 2",
        ),
    ),
    Technique(
        _("No speculation at all"),
        ("large_batch",),
        _("A full batch keeps the processor busy: checking k tokens more is no longer free."),
        _("With few users every token comes later again."),
        "sweep",
        _flags(
            ("", _("Leave --speculative-config out.")),
            ("", _("Leave --speculative-algorithm out.")),
            ("--spec-type none", _("The default.")),
        ),
    ),
    Technique(
        _("More requests in a batch"),
        ("large_batch",),
        _("The weights are read once for all requests of a step."),
        _("Each request's tokens come later, and each needs room in the cache."),
        "memory",
        _flags(
            "--max-num-seqs 256 --max-num-batched-tokens 16384",
            "--max-running-requests 256",
            ("-np 16 -c 131072", _("-c is the total of all slots: here 8,192 tokens each.")),
        ),
    ),
    Technique(
        _("Blocks instead of slabs"),
        ("many_users",),
        _("Memory is taken block by block as a request grows, not for its longest length."),
        _("On average half a block a request stays empty; attention follows a table."),
        "paging",
        _flags(
            (
                "--gpu-memory-utilization 0.92",
                _("Always on, 16 a block; this sizes the pool."),
            ),
            ("--mem-fraction-static 0.9", _("Always on; this sizes the pool.")),
            ("--kv-unified", _("One buffer for all slots; the default unless -np is given.")),
        ),
    ),
    Technique(
        _("A cache of 8 bits"),
        ("many_users", "long_context", "no_start"),
        _("Half the bytes of bfloat16 for every token."),
        _("Rounded keys and values: measure your own texts. Faster only with fused attention."),
        "kv_dtype",
        _flags(
            "--kv-cache-dtype fp8",
            "--kv-cache-dtype fp8_e4m3",
            ("-ctk q8_0 -ctv q8_0 -fa on", _("Quantised values need flash attention.")),
        ),
    ),
    Technique(
        _("A model with fewer KV heads"),
        ("many_users", "long_context", "slow_tokens"),
        _("Fewer bytes to keep and to read: num_key_value_heads in config.json."),
        _("Another model, or uptraining; a little quality when too few are left."),
        "kv_heads",
        _flags(*3 * (("", _("No flag: it is a property of the model.")),)),
    ),
    Technique(
        _("A limit on length and users"),
        ("no_start", "many_users", "long_context"),
        _("The engine reserves for the longest request; a shorter one lets it start."),
        _("Longer requests are refused, more of them wait."),
        "memory",
        _flags(
            "--max-model-len 32768 --max-num-seqs 64",
            "--context-length 32768 --max-running-requests 64",
            ("-c 32768 -np 4", _("-c is the total of all slots: here 8,192 tokens each.")),
        ),
    ),
    Technique(
        _("More GPUs"),
        ("no_start", "long_context"),
        _("Weights and KV heads are divided among them."),
        _("They talk in every layer; with more GPUs than KV heads the cache is kept twice."),
        "memory",
        _flags(
            "--tensor-parallel-size 2",
            "--tp 2",
            ("-sm layer -ts 1,1", _("Divides the layers, one GPU after the other.")),
        ),
    ),
)


def advice(symptoms: Iterable[str]) -> list[Technique]:
    """Techniques against any of the symptoms: those that help with most of them first.

    SettingError names an unknown symptom and those there are.
    """
    ticked = list(symptoms)
    for symptom in ticked:
        if symptom not in SYMPTOMS:
            raise SettingError(
                f"{symptom!r} is no symptom of the guide: choose {', '.join(SYMPTOMS)}"
            )

    def helped(technique: Technique) -> int:
        return len(set(ticked) & set(technique.symptoms))

    return sorted(filter(helped, TECHNIQUES), key=helped, reverse=True)
