"""Memory lines of start-up logs, recognised and put into words.

Knows the wording of vLLM, SGLang and llama.cpp (2024 to 2026), and nothing of any model; checking
the figures against one is explain.py's business.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tinyllm.errors import MemoryPlanError

MOST_CHARACTERS = 2_000_000
_MOST_IN_A_LINE = 2_000
_MIB, _GIB = 2**20, 2**30


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of a log that speaks of memory, and its numbers by name."""

    number: int  # from 1
    text: str
    kind: str
    meaning: str
    values: dict[str, float]


@dataclass(frozen=True, slots=True)
class _Pattern:
    kind: str
    expression: re.Pattern[str]
    meaning: str


_N = r"([\d,]+)"
_X = r"([\d.]+)"
# Names of the groups, in order, stand behind the kind.
_PATTERNS = tuple(
    _Pattern(kind, re.compile(expression), meaning)
    for kind, expression, meaning in (
        (
            "vllm_memory gib",
            rf"Available KV cache memory: {_X} GiB",
            "vLLM: what weights, activations and graphs leave of this GPU for the pool",
        ),
        (
            "vllm_tokens tokens",
            rf"GPU KV cache size: {_N} tokens",
            "vLLM: a derived figure. Since 2026 concurrency x max_model_len; before, blocks over "
            "groups x block size, which in hybrids is no capacity",
        ),
        (
            "vllm_concurrency length concurrency",
            rf"Maximum concurrency for {_N} tokens per request: ~?{_X}x",
            "vLLM: requests that fit when each has the full length, so a lower bound",
        ),
        (
            "vllm_refusal length needed_gib available_gib",
            rf"max seq len \({_N}\)[,.]* \(?{_X} GiB KV cache is needed, which is larger than the "
            rf"available KV cache memory \({_X} GiB\)",
            "vLLM does not start: one request of the full length is more than the pool",
        ),
        (
            "vllm_longest length",
            rf"estimated maximum model length is {_N}",
            "vLLM: the largest --max-model-len that this pool starts with",
        ),
        (
            "vllm_profile weights_gib other_gib peak_gib gib",
            rf"model weights take {_X}GiB; non_torch_memory takes {_X}GiB; PyTorch activation peak "
            rf"memory takes {_X}GiB; the rest of the memory reserved for KV Cache is {_X}GiB",
            "vLLM of 2024 and 2025: weights, buffers and activations, and what they leave",
        ),
        (
            "vllm_blocks blocks",
            rf"# (?:GPU|cuda) blocks: {_N}",
            "vLLM: blocks of the pool; times the block size it is tokens, in models of one kind",
        ),
        (
            "vllm_block_size block_size",
            rf"Setting attention block size to {_N} tokens",
            "vLLM: a block holds at least one state, so hybrids have large blocks",
        ),
        (
            "vllm_padding layers percent",
            rf"Add {_N} padding layers, may waste at most {_X}%",
            "vLLM: groups have one size, and the last one of a class is filled up",
        ),
        (
            "vllm_weights gib",
            rf"Model loading took {_X} Gi?B",
            "vLLM: weights on this GPU; old versions write GB and mean GiB",
        ),
        (
            "vllm_graphs gib",
            rf"Graph capturing finished in .*?, took {_X} GiB",
            "vLLM: CUDA graphs on this GPU",
        ),
        (
            "sglang_pool tokens k_gib v_gib",
            rf"KV Cache is allocated\..*?#tokens: {_N}, K size: {_X} GB, V size: {_X} GB",
            "SGLang: buffers of keys and values on this GPU; GB here are GiB",
        ),
        (
            "sglang_latent tokens gib",
            rf"KV Cache is allocated\..*?#tokens: {_N}, KV size: {_X} GB",
            "SGLang: buffers of latents on this GPU, index keys included; GB here are GiB",
        ),
        (
            "sglang_tokens tokens",
            rf"max_total_num_tokens={_N}",
            "SGLang: tokens of all requests together that layers with full attention hold",
        ),
        (
            "sglang_windows full window",
            rf"full_layer_tokens={_N}, swa_layer_tokens={_N}",
            "SGLang: windowed layers have a shorter pool of their own (--swa-full-tokens-ratio)",
        ),
        (
            "sglang_states slots conv_gib gib",
            rf"Mamba Cache is allocated\. max_mamba_cache_size: {_N}, conv_state size: {_X} ?GB, "
            rf"ssm_state size: {_X} ?GB",
            "SGLang: slots for states, and what their convolutions and recurrent states take",
        ),
        (
            "sglang_weights gib",
            rf"Load weight end\..*?mem usage={_X} GB",
            "SGLang: weights on this GPU; GB here are GiB",
        ),
        (
            "llama_total mib k_mib v_mib",
            rf"KV self size += +{_X} MiB, K \(\w+\): +{_X} MiB, V \(\w+\): +{_X} MiB",
            "llama.cpp before 2025: the whole cache, of all layers and slots",
        ),
        (
            "llama_cache mib cells layers streams k_mib v_mib",
            rf"size = +{_X} MiB \( *{_N} cells, +{_N} layers?, +\d+(?:/ *(\d+))? seqs\), "
            rf"K \(\w+\): +{_X} MiB, V \(\w+\): +{_X} MiB",
            "llama.cpp: the cache of these layers; windowed layers have their own. Cells are of "
            "one slot when the second number of seqs is above 1 (no -kvu), else of all together",
        ),
        (
            "llama_state mib cells layers r_mib s_mib",
            rf"size = +{_X} MiB \( *{_N} cells, +{_N} layers?, +\d+ seqs\), "
            rf"R \(\w+\): +{_X} MiB, S \(\w+\): +{_X} MiB",
            "llama.cpp: convolutions (R) and recurrent states (S), 32-bit, one cell a slot",
        ),
        (
            "llama_compute mib",
            rf"compute buffer size = +{_X} MiB",
            "llama.cpp: activations of one micro-batch, beside the cache",
        ),
        (
            "llama_weights mib",
            rf"model buffer size = +{_X} MiB",
            "llama.cpp: weights on this device",
        ),
    )
)
_UNITS = {"gib": _GIB, "mib": _MIB}


def read_lines(log: str) -> Iterator[LogLine]:
    """Lines that speak of memory, in order; sizes are in bytes under names that end in bytes."""
    if not isinstance(log, str) or len(log) > MOST_CHARACTERS:
        raise MemoryPlanError(f"a log must be text of at most {MOST_CHARACTERS:,} characters")
    for number, line in enumerate(log.splitlines(), 1):
        for pattern in _PATTERNS:
            match = pattern.expression.search(line[:_MOST_IN_A_LINE])
            if match is not None:
                kind, *names = pattern.kind.split()
                pairs = zip(names, match.groups(), strict=True)
                values = dict(_value(name, text) for name, text in pairs if text is not None)
                yield LogLine(number, line.strip()[:500], kind, pattern.meaning, values)
                break


def _value(name: str, text: str) -> tuple[str, float]:
    """(name, number); GiB and MiB become bytes. A number of dots and commas alone is 0."""
    try:
        number = float(text.replace(",", ""))
    except ValueError:
        number = 0.0
    stem, _, unit = name.rpartition("_")
    if unit in _UNITS:
        return f"{stem}_bytes" if stem else "bytes", number * _UNITS[unit]
    return name, number
