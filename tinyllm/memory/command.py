"""`python -m tinyllm memory`: bytes of a model's KV cache, from its config.json, by engine.

--context is the length of one sequence; for vLLM it is --max-model-len, and for llama.cpp the total
-c. Figures are of one GPU when --tp or --pp divide the model. --explain reads a start-up log
instead, and --conformance compares our answers with right ones.
"""

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tinyllm.errors import MemoryPlanError
from tinyllm.memory import findings, report
from tinyllm.memory.cache_plan import MOST_SEQUENCES, CachePlan, plan
from tinyllm.memory.concurrency import requests_that_fit
from tinyllm.memory.engines import sglang, vllm
from tinyllm.memory.explain import explain_log
from tinyllm.memory.fields import whole_number
from tinyllm.memory.files import Described, read_model, read_text
from tinyllm.memory.gpus import Gpu, gpu
from tinyllm.memory.log_lines import MOST_CHARACTERS
from tinyllm.memory.options import (
    add_arguments,
    choice,
    llamacpp_settings,
    vllm_settings,
    workload,
)
from tinyllm.memory.presets import Preset, preset
from tinyllm.memory.weights import Budget, budget, weight_bytes

__all__ = ["add_arguments", "run"]


def run(arguments: argparse.Namespace, say: Callable[[str], object]) -> int:
    """Print the sizes; MemoryPlanError when something in the input is wrong."""
    if arguments.conformance:
        return _print(findings.conformance(), findings.conformance_text, arguments.json, say)
    if arguments.explain is not None:
        return _print(_explained(arguments), findings.explained_text, arguments.json, say)
    for name in ("config", "context"):
        if getattr(arguments, name) is None:
            raise MemoryPlanError(f"--{name} is missing (or give --explain or --conformance)")
    source = _source(arguments.config)
    model = plan(source.config) if isinstance(source, Preset) else source.model
    device = gpu(arguments.gpu) if arguments.gpu is not None else None
    room = _budget(arguments, source, device)
    sizes = report.logical(
        model,
        arguments.context,
        arguments.sequences,
        (arguments.kv_dtype, arguments.k_dtype, arguments.v_dtype),
    )
    if room is not None:
        sizes["budget"] = report.budgeted(room, device)
    sizes |= _engine(arguments, model, device, room)
    sizes |= _concurrency(arguments, model, device, room)
    if arguments.ready_command:
        sizes["command"] = findings.command(*choice(arguments, source, model))
    return _print(sizes, report.text, arguments.json, say)


def _print(
    found: dict[str, Any],
    text: Callable[[dict[str, Any]], str],
    as_json: bool,
    say: Callable[[str], object],
) -> int:
    say(json.dumps(found, indent=2) if as_json else text(found))
    return 0


def _explained(arguments: argparse.Namespace) -> dict[str, Any]:
    """A log explained, and checked against the model when there is one."""
    if arguments.explain == "-":
        log = sys.stdin.read(MOST_CHARACTERS + 1)
    else:
        log = read_text(Path(arguments.explain), MOST_CHARACTERS)
    model = None
    if arguments.config is not None:
        source = _source(arguments.config)
        model = plan(source.config) if isinstance(source, Preset) else source.model
    return findings.explained(explain_log(log, model, arguments.tp, arguments.kv_dtype))


def _concurrency(
    arguments: argparse.Namespace, model: CachePlan, device: Gpu | None, room: Budget | None
) -> dict[str, Any]:
    """Requests of real lengths that fit in a vLLM pool; nothing when none were described."""
    lengths = workload(arguments)
    if lengths is None:
        return {}
    pool_bytes = _pool_bytes(arguments, room)
    if arguments.engine != "vllm" or pool_bytes is None:
        raise MemoryPlanError(
            "requests of real lengths need --engine vllm, and --pool-bytes or --gpu"
        )
    pool = vllm.pool(model, vllm_settings(arguments, device, pool_bytes))
    limit = arguments.max_num_seqs
    if limit is not None:
        whole_number("--max-num-seqs", limit, 1, MOST_SEQUENCES)
    return {
        "concurrency": asdict(requests_that_fit(pool, lengths, arguments.seed, limit)),
    }


def _source(name: str) -> Preset | Described:
    """A file or folder when there is one of that name, else a preset."""
    path = Path(name)
    return read_model(path) if path.exists() else preset(name)


def _budget(
    arguments: argparse.Namespace, source: Preset | Described, device: Gpu | None
) -> Budget | None:
    """What the weights leave of the GPU; None without a GPU."""
    if device is None:
        return None
    exact = source.weight_bytes if isinstance(source, Described) else None
    parameters = arguments.parameters
    if parameters is None and isinstance(source, Preset):
        parameters = source.parameters
    if parameters is None and exact is None:
        raise MemoryPlanError("--parameters is missing: the model's count is not known")
    if arguments.parameters is not None or exact is None:
        exact = weight_bytes(parameters, arguments.weight_dtype)
    gpus = arguments.gpus if arguments.gpus is not None else arguments.tp * arguments.pp
    return budget(device, exact, gpus)


def _engine(
    arguments: argparse.Namespace, model: CachePlan, device: Gpu | None, room: Budget | None
) -> dict[str, Any]:
    """The engine's part of the answer."""
    pool_bytes = _pool_bytes(arguments, room)
    if arguments.engine == "vllm":
        return report.vllm_sizes(
            model, vllm_settings(arguments, device, pool_bytes), pool_bytes is None
        )
    if arguments.engine == "llamacpp":
        return report.llamacpp_sizes(model, llamacpp_settings(arguments))
    if arguments.engine == "sglang":
        each = sglang.Settings(dtype=arguments.kv_dtype, tensor_parallel=arguments.tp)
        tokens = arguments.context * arguments.sequences
        return report.sglang_sizes(model, each, tokens, pool_bytes)
    return {}


def _pool_bytes(arguments: argparse.Namespace, room: Budget | None) -> int | None:
    """The pool as given, else what the larger overhead leaves; None when neither is known."""
    given: int | None = arguments.pool_bytes
    return room.pool_low if given is None and room is not None else given
