"""What vLLM, llama.cpp or SGLang makes of a choice's requests in the room that weights leave.

Each engine's own rules are in engines/; here they answer the same questions: what is reserved, what
is allocated, how many requests fit, and what the server refuses.
"""

from collections.abc import Callable
from dataclasses import dataclass

from tinyllm.errors import MemoryPlanError
from tinyllm.memory.choice import LLAMACPP, SGLANG, VLLM, Choice
from tinyllm.memory.engines import llamacpp, sglang, vllm
from tinyllm.memory.gpus import Gpu
from tinyllm.memory.placement import Room
from tinyllm.memory.subject import Subject

_WINDOWED = ("window", "chunk")


@dataclass(frozen=True, slots=True)
class Served:
    """What an engine makes of the requests and of a pool."""

    version: str
    reserved_bytes: int  # for all the requests at full length
    pool_bytes: int | None  # that the engine would allocate; None while the room is unknown
    fits: int | None  # requests at full length
    log: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()  # what the server does not do as chosen
    notes: tuple[str, ...] = ()


def vllm_settings(choice: Choice, device: Gpu, pool_bytes: int | None) -> vllm.Settings:
    """The choice as vLLM's flags."""
    return vllm.Settings(
        max_model_len=choice.context,
        pool_bytes=pool_bytes or 0,
        max_num_batched_tokens=choice.batched or device.batched_tokens,
        async_scheduling=choice.async_scheduling,
        tensor_parallel=choice.tp,
        pipeline_parallel=choice.pp,
        dtype=choice.key_type,
        prefix_caching=choice.prefix_caching,
    )


def _vllm(choice: Choice, subject: Subject, here: Room, requests: int) -> Served:
    settings = vllm_settings(choice, here.device, here.pool_low)
    pool = vllm.pool(subject.plan, settings)
    reserved = requests * pool.reserved_bytes_per_request
    if here.pool_low is None:
        return Served(vllm.VERSION, reserved, None, None)
    fits = int(pool.max_concurrency)
    refusals = []
    if not pool.starts:
        longest = vllm.largest_model_len(subject.plan, settings)
        refusals.append(
            f"one request of {choice.context:,} tokens needs {pool.blocks_per_request:,} blocks, "
            f"and the pool has {pool.num_blocks:,}: --max-model-len may be at most {longest:,}"
        )
    limit = pool.max_num_seqs_limit
    if limit is not None:
        fits = min(fits, limit)
        if requests > limit:
            refusals.append(
                f"--max-num-seqs {requests:,} is above the {limit:,} state blocks of the pool, "
                f"one for each sequence with full CUDA graphs: at most {limit:,}"
            )
    allocated = pool.num_blocks * pool.bytes_per_block
    return Served(vllm.VERSION, reserved, allocated, fits, pool.log_lines, tuple(refusals))


def _llamacpp_settings(choice: Choice, slots: int) -> llamacpp.Settings:
    return llamacpp.Settings(
        context=choice.context * slots,
        slots=slots,
        unified=choice.kv_unified,
        key_type=choice.key_type,
        value_type=choice.value_type,
    )


def _llamacpp(choice: Choice, subject: Subject, here: Room, requests: int) -> Served:
    def total(slots: int) -> int:
        return llamacpp.cache(subject.plan, _llamacpp_settings(choice, slots)).total_bytes

    if requests > llamacpp.MOST_SLOTS:
        refusal = f"-np {requests:,} is above llama.cpp's {llamacpp.MOST_SLOTS} sequences"
        refusals: tuple[str, ...] = (refusal,)
        requests = llamacpp.MOST_SLOTS
    else:
        refusals = ()
    cache = llamacpp.cache(subject.plan, _llamacpp_settings(choice, requests))
    refusals += () if cache.starts else cache.notes[:1]
    allocated, free = cache.total_bytes, here.pool_low
    if free is None:
        return Served(llamacpp.VERSION, allocated, allocated, None, (), refusals, cache.notes)
    if allocated > free:
        gibibytes = allocated / 2**30, free / 2**30
        refusals += (
            f"the cache of {gibibytes[0]:.2f} GiB is above the {gibibytes[1]:.2f} GiB that weights "
            "and buffers leave: llama.cpp allocates all of it at the start",
        )
    fits = _most(lambda slots: total(slots) <= free, llamacpp.MOST_SLOTS)
    return Served(llamacpp.VERSION, allocated, allocated, fits, (), refusals, cache.notes)


def _sglang(choice: Choice, subject: Subject, here: Room, requests: int) -> Served:
    if choice.pp > 1:
        raise MemoryPlanError(
            "how SGLang divides its pools among pipeline stages is not known here"
        )
    settings = sglang.Settings(dtype=choice.key_type, tensor_parallel=choice.tp)
    each = sglang.per_token(subject.plan, settings)
    short = _window_tokens(subject, choice.context)
    reserved = requests * (choice.context * each.full + short * each.window + each.state)
    if here.pool_low is None:
        return Served(sglang.VERSION, reserved, None, None)
    pools = sglang.pools(subject.plan, settings, here.pool_low)
    bounds = [pools.tokens // choice.context] if each.full else []
    bounds += [pools.window_tokens // short] if each.window and short else []
    bounds += [pools.state_slots] if each.state else []
    fits = min(bounds)
    refusals: tuple[str, ...] = ()
    if each.full and choice.context > pools.tokens:
        refusals = (
            f"--context-length {choice.context:,} is above max_total_num_tokens {pools.tokens:,}: "
            "SGLang starts, and refuses requests longer than that",
        )
    allocated = pools.k_bytes + pools.v_bytes + pools.state_slots * each.state
    return Served(sglang.VERSION, reserved, allocated, fits, (pools.log_line,), refusals)


def _window_tokens(subject: Subject, context: int) -> int:
    """Tokens that windowed layers hold of one request: the longest window."""
    bends = [entry.layer.bends for entry in subject.plan.entries if entry.kind in _WINDOWED]
    return min(context, max((max(one) for one in bends if one), default=0))


def _most(fits: Callable[[int], bool], high: int) -> int:
    """The largest number up to `high` for which `fits` holds; 0 when none does."""
    low = 0
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low


_ENGINES: dict[str, Callable[[Choice, Subject, Room, int], Served]] = {
    VLLM: _vllm,
    LLAMACPP: _llamacpp,
    SGLANG: _sglang,
}


def serve(choice: Choice, subject: Subject, here: Room, requests: int) -> Served:
    """The engine's part for that many requests; MemoryPlanError when it is not known."""
    return _ENGINES[choice.engine](choice, subject, here, requests)
