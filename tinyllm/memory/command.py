"""`python -m tinyllm memory`: bytes of a model's KV cache, from its config.json, by engine.

--context is the length of one sequence; for vLLM it is --max-model-len, and for llama.cpp the total
-c. Figures are of one GPU when --tp or --pp divide the model.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tinyllm.errors import MemoryPlanError
from tinyllm.memory import report
from tinyllm.memory.cache_plan import CachePlan, plan
from tinyllm.memory.dtypes import CACHE_TYPES
from tinyllm.memory.engines import llamacpp, sglang, vllm
from tinyllm.memory.files import Described, read_model
from tinyllm.memory.gpus import Gpu, gpu
from tinyllm.memory.presets import Preset, preset
from tinyllm.memory.weights import WEIGHT_TYPES, Budget, budget, weight_bytes

ENGINES = ("logical", "vllm", "llamacpp", "sglang")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `memory`."""
    add = parser.add_argument
    add("--config", required=True, help="a preset, a config.json, a folder with one, or a GGUF")
    add("--context", type=int, required=True, help="tokens")
    add("--sequences", type=int, default=1, help="sequences of that length (default 1)")
    types = ", ".join(CACHE_TYPES)
    add("--kv-dtype", default="bf16", help=f"cache type (default bf16): {types}")
    add("--k-dtype", help="type of the keys, when it is another")
    add("--v-dtype", help="type of the values, when it is another")
    add("--engine", default="logical", choices=ENGINES, help="whose rules (default logical)")
    add("--tp", type=int, default=1, help="tensor-parallel GPUs (vllm, sglang)")
    add("--pp", type=int, default=1, help="pipeline-parallel GPUs (vllm)")
    add("--pool-bytes", type=int, help="memory for the cache on one GPU (vllm, sglang)")
    add("--max-num-batched-tokens", type=int, help="vllm (default by --gpu, else 8192)")
    add("--no-async-scheduling", action="store_true", help="vllm")
    add("--no-prefix-caching", action="store_true", help="vllm")
    add("--parallel", type=int, help="llamacpp: slots (without it 4, which share one cache)")
    unified = parser.add_mutually_exclusive_group()
    unified.add_argument("--kv-unified", action="store_true", default=None, help="llamacpp")
    unified.add_argument("--no-kv-unified", action="store_false", dest="kv_unified")
    add("--gpu", help="for the memory that weights leave, when there is no --pool-bytes")
    add("--gpus", type=int, help="GPUs that share the weights (default tp x pp)")
    add("--parameters", type=int, help="parameters of the model, when the preset has no count")
    add("--weight-dtype", default="bfloat16", choices=WEIGHT_TYPES, help="default bfloat16")
    add("--json", action="store_true", help="one JSON object instead of text")


def run(arguments: argparse.Namespace, say: Callable[[str], object]) -> int:
    """Print the sizes; MemoryPlanError when something in the input is wrong."""
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
    say(json.dumps(sizes, indent=2) if arguments.json else report.text(sizes))
    return 0


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
    pool_bytes = arguments.pool_bytes
    if pool_bytes is None and room is not None:
        pool_bytes = room.pool_low  # promise what the larger overhead leaves
    if arguments.engine == "vllm":
        return report.vllm_sizes(model, _vllm(arguments, device, pool_bytes), pool_bytes is None)
    if arguments.engine == "llamacpp":
        return report.llamacpp_sizes(model, _llamacpp(arguments))
    if arguments.engine == "sglang":
        settings = sglang.Settings(dtype=arguments.kv_dtype, tensor_parallel=arguments.tp)
        return report.sglang_sizes(
            model, settings, arguments.context * arguments.sequences, pool_bytes
        )
    return {}


def _vllm(
    arguments: argparse.Namespace, device: Gpu | None, pool_bytes: int | None
) -> vllm.Settings:
    batched = arguments.max_num_batched_tokens
    if batched is None:
        batched = device.batched_tokens if device is not None else 8_192
    return vllm.Settings(
        max_model_len=arguments.context,
        pool_bytes=pool_bytes or 0,
        max_num_batched_tokens=batched,
        async_scheduling=not arguments.no_async_scheduling,
        tensor_parallel=arguments.tp,
        pipeline_parallel=arguments.pp,
        dtype=arguments.kv_dtype,
        prefix_caching=not arguments.no_prefix_caching,
    )


def _llamacpp(arguments: argparse.Namespace) -> llamacpp.Settings:
    return llamacpp.Settings(
        context=arguments.context,
        slots=arguments.parallel,
        unified=arguments.kv_unified,
        key_type=arguments.k_dtype or arguments.kv_dtype,
        value_type=arguments.v_dtype or arguments.kv_dtype,
    )
