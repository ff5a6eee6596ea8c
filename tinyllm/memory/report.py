"""The sizes of a plan as plain values, for JSON, and as text, for a terminal.

Byte counts are exact integers; a slope that is no integer (compressed layers) is a float. Nothing
is printed here.
"""

from fractions import Fraction
from typing import Any

from tinyllm.memory.cache_plan import CachePlan
from tinyllm.memory.dtypes import CacheTypes
from tinyllm.memory.engines import llamacpp, sglang, vllm
from tinyllm.memory.gpus import Gpu
from tinyllm.memory.weights import OVERHEAD, UTILISATION, Budget

Types = tuple[str, str | None, str | None]


def logical(model: CachePlan, tokens: int, sequences: int, dtypes: Types) -> dict[str, Any]:
    """bytes_total = sequences x (constant_bytes + bytes_per_token x tokens), layer by layer.

    Compressed layers grow in steps: there the equation holds at multiples of their ratio.
    """
    total = model.bytes(tokens, sequences, *dtypes)
    types = CacheTypes.named(*dtypes)
    piece = [piece for piece in model.pieces(types) if piece.start <= tokens][-1]
    layers = [
        {
            "kind": entry.kind,
            "count": entry.count,
            "bytes": each * sequences,
            "rule": entry.rule,
        }
        for entry, each in zip(model.entries, model.entry_bytes(tokens, types), strict=True)
    ]
    return {
        "model_type": model.model_type,
        "context": tokens,
        "sequences": sequences,
        "key_dtype": types.key.name,
        "value_dtype": types.value.name,
        "bytes_total": total,
        "bytes_per_token": _number(piece.slope),
        "constant_bytes": _number(piece.constant),
        "layers": layers,
        "notes": list(model.notes),
    }


def _number(value: Fraction) -> int | float:
    return int(value) if value.denominator == 1 else float(value)


def budgeted(room: Budget, device: Gpu | None) -> dict[str, Any]:
    """What one GPU has left for the cache."""
    return {
        "gpu": None if device is None else device.name,
        "gpu_verified": None if device is None else device.verified,
        "usable_bytes": room.usable_bytes,
        "utilisation": UTILISATION,
        "weight_bytes": room.weight_bytes,
        "assumed_overhead_bytes": list(OVERHEAD),
        "pool_bytes_low": room.pool_low,
        "pool_bytes_high": room.pool_high,
    }


def vllm_sizes(model: CachePlan, settings: vllm.Settings, no_pool: bool) -> dict[str, Any]:
    """vLLM's figures; those that need a pool are null without one."""
    pool = vllm.pool(model, settings)
    sizes = {
        "engine": vllm.VERSION,
        "block_size": pool.block_size,
        "bytes_per_block": pool.bytes_per_block,
        "blocks_per_request": pool.blocks_per_request,
        "reserved_bytes_per_request": pool.reserved_bytes_per_request,
        "bytes_per_token_per_gpu": pool.key_bytes_per_token + pool.value_bytes_per_token,
        "k_bytes": pool.key_bytes_per_token * settings.max_model_len,
        "v_bytes": pool.value_bytes_per_token * settings.max_model_len,
        "num_blocks": None,
        "max_concurrency": None,
        "max_num_seqs_limit": None,
    }
    if no_pool:
        return sizes
    return sizes | {
        "pool_bytes": settings.pool_bytes,
        "num_blocks": pool.num_blocks,
        "max_concurrency": pool.max_concurrency,
        "max_num_seqs_limit": pool.max_num_seqs_limit,
        "starts": pool.starts,
        "largest_max_model_len": vllm.largest_model_len(model, settings),
        "log": list(pool.log_lines),
    }


def llamacpp_sizes(model: CachePlan, settings: llamacpp.Settings) -> dict[str, Any]:
    """llama.cpp's figures over all slots."""
    cache = llamacpp.cache(model, settings)
    return {
        "engine": llamacpp.VERSION,
        "kv_bytes": cache.kv_bytes,
        "recurrent_bytes": cache.recurrent_bytes,
        "cells": cache.cells,
        "window_cells": cache.window_cells,
        "slots": settings.sequences,
        "kv_unified": settings.shares,
        "starts": cache.starts,
        "engine_notes": list(cache.notes),
    }


def sglang_sizes(
    model: CachePlan, settings: sglang.Settings, tokens: int, pool_bytes: int | None
) -> dict[str, Any]:
    """SGLang's figures: of a pool of memory, else of a pool of that many tokens."""
    each = sglang.per_token(model, settings)
    pools = (
        sglang.held(model, settings, tokens)
        if pool_bytes is None
        else sglang.pools(model, settings, pool_bytes)
    )
    return {
        "engine": sglang.VERSION,
        "bytes_per_token_per_gpu": each.full + each.window,
        "k_bytes": pools.k_bytes,
        "v_bytes": pools.v_bytes,
        "tokens": pools.tokens,
        "window_tokens": pools.window_tokens,
        "state_slots": pools.state_slots,
        "log": [pools.log_line],
    }


_WORDS = {
    "bytes_total": "logical bytes",
    "bytes_per_token": "each further token",
    "constant_bytes": "constant",
}
_SKIPPED = {"layers", "notes", "budget", "log", "engine_notes", "model_type", "rule"}
_SKIPPED |= {"concurrency", "command"}


def text(sizes: dict[str, Any]) -> str:
    """The same for a terminal: a line a figure, bytes also as GiB and GB."""
    lines = [f"{sizes['model_type'] or 'unnamed model'}: {sizes['context']:,} tokens"]
    for layer in sizes["layers"]:
        lines.append(f"  {layer['count']:4} {layer['kind']:10} {_bytes(layer['bytes'])}")
        lines.append(f"       {layer['rule']}")
    for key, value in {**sizes.get("budget", {}), **sizes}.items():
        if key in _SKIPPED or value is None:
            continue
        lines.append(f"{_WORDS.get(key, key.replace('_', ' ')):28} {_shown(key, value)}")
    lines += [f"log: {line}" for line in sizes.get("log", [])]
    lines += [f"note: {note}" for note in [*sizes["notes"], *sizes.get("engine_notes", [])]]
    if "concurrency" in sizes:
        lines += [f"at real lengths, {_line(*item)}" for item in sizes["concurrency"].items()]
    if "command" in sizes:
        lines += ["", sizes["command"]["text"]]
    return "\n".join(lines)


def _shown(key: str, value: object) -> str:
    """A figure as its name asks: bytes with units, an interval by its ends, a ratio rounded."""
    if isinstance(value, (list, tuple)):
        return " to ".join(_shown(key, one) for one in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return _bytes(value) if "bytes" in key else f"{value:,}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _line(key: str, value: object) -> str:
    """One figure with its name."""
    shown = "not known" if value is None else f"{value:.2f}" if isinstance(value, float) else value
    return f"{key.replace('_', ' '):27} {shown}"


def _bytes(amount: int) -> str:
    """Bytes with both units, which public threads mix up."""
    if amount < 2**20:
        return f"{amount:,} bytes"
    return f"{amount:,} bytes ({amount / 2**30:.3f} GiB, {amount / 1e9:.3f} GB)"
