"""The options of `python -m tinyllm memory`, and what each group of them asks for.

Turns text into settings, workloads and choices; works nothing out.
"""

import argparse
from pathlib import Path

from tinyllm.errors import MemoryPlanError
from tinyllm.memory.cache_plan import CachePlan
from tinyllm.memory.choice import LLAMACPP, OWN, SAME, SGLANG, VLLM, Choice
from tinyllm.memory.dtypes import CACHE_TYPES, cache_type
from tinyllm.memory.engines import llamacpp, vllm
from tinyllm.memory.files import MOST_CONFIG_BYTES, Described, read_text
from tinyllm.memory.gpus import GIBIBYTE, Gpu, gpu
from tinyllm.memory.lengths import Workload, parse_lengths, read_lengths
from tinyllm.memory.presets import Preset
from tinyllm.memory.subject import Subject, of_preset
from tinyllm.memory.weights import WEIGHT_TYPES

_NAMES = {"vllm": VLLM, "llamacpp": LLAMACPP, "sglang": SGLANG}
ENGINES = ("logical", *_NAMES)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `memory`."""
    add = parser.add_argument
    add("--config", help="a preset, a config.json, a folder with one, or a GGUF")
    add("--context", type=int, help="tokens")
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
    text = "also the command that starts the server (needs --gpu)"
    add("--command", action="store_true", dest="ready_command", help=text)
    _add_lengths(parser)
    add("--explain", metavar="LOG", help="explain a start-up log, - for standard input")
    add("--conformance", action="store_true", help="our answers beside right ones")
    add("--json", action="store_true", help="one JSON object instead of text")


def _add_lengths(parser: argparse.ArgumentParser) -> None:
    """Options of requests with lengths of their own."""
    add = parser.add_argument_group("requests of real lengths (vllm)").add_argument
    forms = "fixed:TOKENS, uniform:LOW:HIGH or lognormal:MEDIAN:P95:CAP"
    add("--prompts", metavar="LENGTHS", help=forms)
    add("--outputs", metavar="LENGTHS", help="the same for outputs")
    add("--lengths", metavar="CSV", help="a file with a prompt and an output length a line")
    add("--shared-prefix", type=int, default=0, help="tokens that all prompts begin with, besides")
    add("--max-num-seqs", type=int, help="at most so many requests at once")
    add("--seed", type=int, default=0, help="of the simulation (default 0)")


def workload(arguments: argparse.Namespace) -> Workload | None:
    """The lengths that were asked for; None when none were."""
    pair = arguments.prompts, arguments.outputs
    if arguments.lengths is not None:
        if pair != (None, None):
            raise MemoryPlanError("--lengths goes without --prompts and --outputs")
        rows = parse_lengths(read_text(Path(arguments.lengths), MOST_CONFIG_BYTES))
        return Workload(*rows, arguments.shared_prefix)
    if pair == (None, None):
        return None
    if None in pair:
        raise MemoryPlanError("--prompts and --outputs go together")
    prompts, outputs = (
        read_lengths(text, f"--{name}")
        for name, text in zip(("prompts", "outputs"), pair, strict=True)
    )
    return Workload(prompts, outputs, arguments.shared_prefix)


def choice(
    arguments: argparse.Namespace, source: Preset | Described, model: CachePlan
) -> tuple[Choice, Subject]:
    """The same as the calculator's page would have it."""
    if arguments.gpu is None or arguments.engine == "logical":
        raise MemoryPlanError("--command needs --gpu and --engine vllm, llamacpp or sglang")
    known = isinstance(source, Preset)
    parameters = arguments.parameters or (0 if known else None)
    if parameters is None:
        raise MemoryPlanError("--parameters is missing: the model's count is not known")
    pool_bytes = arguments.pool_bytes
    chosen = Choice(
        model=source.name if isinstance(source, Preset) else OWN,
        context=arguments.context,
        requests=arguments.sequences,
        kv_type=cache_type(arguments.k_dtype or arguments.kv_dtype).name,
        v_type=SAME if arguments.v_dtype is None else cache_type(arguments.v_dtype).name,
        engine=_NAMES[arguments.engine],
        gpu=gpu(arguments.gpu).name,
        tp=arguments.tp,
        pp=arguments.pp,
        weights=arguments.weight_dtype,
        parameters=parameters,
        pool_gib=0.0 if pool_bytes is None else pool_bytes / GIBIBYTE,
        batched=arguments.max_num_batched_tokens or 0,
        async_scheduling=not arguments.no_async_scheduling,
        prefix_caching=not arguments.no_prefix_caching,
        kv_unified=bool(arguments.kv_unified),
    )
    subject = of_preset(source.name) if isinstance(source, Preset) else Subject("model", model)
    return chosen, subject


def vllm_settings(
    arguments: argparse.Namespace, device: Gpu | None, pool_bytes: int | None
) -> vllm.Settings:
    """vLLM's flags, with the GPU's default number of batched tokens."""
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


def llamacpp_settings(arguments: argparse.Namespace) -> llamacpp.Settings:
    """llama-server's flags."""
    return llamacpp.Settings(
        context=arguments.context,
        slots=arguments.parallel,
        unified=arguments.kv_unified,
        key_type=arguments.k_dtype or arguments.kv_dtype,
        value_type=arguments.v_dtype or arguments.kv_dtype,
    )
