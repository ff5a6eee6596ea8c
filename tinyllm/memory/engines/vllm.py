"""vLLM 0.32: blocks of the pool, what a request reserves, and what the start-up log would say.

Figures are of one GPU; pool_bytes is the log's "Available KV cache memory". Source: vLLM,
vllm/v1/core/kv_cache_utils.py and vllm/v1/kv_cache_interface.py. It does not guess how much memory
weights and graphs leave.
"""

from dataclasses import dataclass, replace

from tinyllm.errors import MemoryPlanError
from tinyllm.memory.cache_plan import CachePlan
from tinyllm.memory.dtypes import DS_MLA, CacheTypes
from tinyllm.memory.engines.shards import pipeline_stages, token_bytes
from tinyllm.memory.engines.vllm_blocks import Group, groups_of
from tinyllm.memory.fields import MOST_TOKENS, shown, whole_number

VERSION = "vLLM 0.32"
MOST_RANKS = 1_024
TYPES = (
    *("float32", "bfloat16", "float16", "fp8_e4m3", "fp8_e5m2", "fp8_ds_mla", "nvfp4"),
    *("int8_per_token_head", "fp8_per_token_head", "int4_per_token_head"),
)
MOST_BYTES = 2**50


@dataclass(frozen=True, slots=True)
class Settings:
    """The flags that change the cache, under vLLM's names and with its defaults on one H100."""

    max_model_len: int
    pool_bytes: int
    max_num_batched_tokens: int = 8_192
    async_scheduling: bool = True
    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    block_size: int = 16
    dtype: str = "bfloat16"
    prefix_caching: bool = True
    speculative_tokens: int = 0

    def __post_init__(self) -> None:
        for name, low, high in (
            ("max_model_len", 1, MOST_TOKENS),
            ("pool_bytes", 0, MOST_BYTES),
            ("max_num_batched_tokens", 1, MOST_TOKENS),
            ("tensor_parallel", 1, MOST_RANKS),
            ("pipeline_parallel", 1, MOST_RANKS),
            ("block_size", 1, 65_536),
            ("speculative_tokens", 0, 1_024),
        ):
            whole_number(name, getattr(self, name), low, high)

    @property
    def in_flight(self) -> int:
        """Tokens that batches under way may add before a window lets go of old ones."""
        batches = self.pipeline_parallel + (1 if self.async_scheduling else 0)
        return batches * self.max_num_batched_tokens

    @property
    def state_blocks(self) -> int:
        """State blocks per request; prefix caching keeps states at block ends too."""
        return (2 if self.prefix_caching else 1) + self.speculative_tokens


@dataclass(frozen=True, slots=True)
class Pool:
    """The pool of one GPU and what one request at max_model_len takes of it."""

    settings: Settings
    groups: tuple[Group, ...]
    bytes_per_block: int  # on the rank with most layers
    num_blocks: int
    blocks_per_request: int
    has_states: bool
    key_bytes_per_token: int  # on one GPU, layers that hold every token
    value_bytes_per_token: int

    @property
    def block_size(self) -> int:
        """Tokens of the smallest block."""
        return min(group.block_size for group in self.groups)

    @property
    def reserved_bytes_per_request(self) -> int:
        """Bytes that vLLM must be able to give one request of max_model_len tokens."""
        return self.blocks_per_request * self.bytes_per_block

    @property
    def max_concurrency(self) -> float:
        """Requests of max_model_len tokens that fit at once."""
        return self.num_blocks / self.blocks_per_request

    @property
    def log_tokens(self) -> int:
        """The log's "GPU KV cache size", which is derived from the concurrency."""
        return int(self.max_concurrency * self.settings.max_model_len)

    @property
    def old_log_tokens(self) -> int:
        """The same line before 2026: blocks over groups, which is no capacity in hybrids."""
        return self.num_blocks // len(self.groups) * self.block_size

    @property
    def starts(self) -> bool:
        """Whether one request fits; vLLM refuses to start otherwise. One block stays unused."""
        return self.blocks_per_request <= self.num_blocks

    @property
    def max_num_seqs_limit(self) -> int | None:
        """Largest --max-num-seqs with full CUDA graphs: a state block for each sequence."""
        return self.num_blocks if self.has_states else None

    @property
    def log_lines(self) -> tuple[str, ...]:
        """What vLLM prints of this pool at start-up."""
        gibibytes = self.settings.pool_bytes / 2**30
        return (
            f"Available KV cache memory: {gibibytes:.2f} GiB",
            f"GPU KV cache size: {self.log_tokens:,} tokens",
            f"Maximum concurrency for {self.settings.max_model_len:,} tokens per request: "
            f"{self.max_concurrency:.2f}x",
        )


def pool(plan: CachePlan, settings: Settings) -> Pool:
    """The pool by vLLM's rules; MemoryPlanError for layers whose rules are not known."""
    if not plan.entries:
        raise MemoryPlanError("the plan has no layers that keep anything")
    types = CacheTypes.named(settings.dtype)
    if types.key.name not in TYPES:
        raise MemoryPlanError(
            f"vLLM has no cache type {shown(settings.dtype)}: one of {', '.join(TYPES)}"
        )
    if types.key.name.startswith("fp8_e") and _is_sparse_latent(plan):
        types = CacheTypes(DS_MLA, DS_MLA)  # vLLM turns fp8 into DeepSeek's layout for these
    groups = groups_of(plan, types, settings.tensor_parallel, settings.block_size)
    if len({group.kind for group in groups}) == 1 and groups[0].kind == "state":
        # Without attention there are no token blocks: one state is one block of any length.
        groups = [_stateful(group, settings.max_model_len) for group in groups]
    stages = pipeline_stages(plan.layer_count, settings.pipeline_parallel)
    per_rank = [_block_bytes(groups, layers) for layers in stages]
    blocks = [settings.pool_bytes // each for each in per_rank if each]
    keys, values = _token_bytes(plan, types, settings.tensor_parallel)
    return Pool(
        settings,
        tuple(groups),
        max(per_rank),
        min(blocks),
        _request_blocks(groups, settings, settings.max_model_len),
        any(group.kind == "state" for group in groups),
        keys,
        values,
    )


def _is_sparse_latent(plan: CachePlan) -> bool:
    """Whether latent layers have an indexer (DeepSeek V3.2, GLM-5)."""
    return {"latent", "index"} <= {entry.kind for entry in plan.entries}


def _stateful(group: Group, tokens: int) -> Group:
    return replace(group, specs=tuple(replace(spec, block_size=tokens) for spec in group.specs))


def _request_blocks(groups: list[Group], settings: Settings, tokens: int) -> int:
    """Blocks one request of that many tokens must be able to get, over all groups."""
    return sum(
        group.specs[0].blocks(tokens, settings.in_flight, settings.state_blocks) for group in groups
    )


def _block_bytes(groups: list[Group], layers: range) -> int:
    """Bytes of one block on the pipeline stage that has those layers: its fullest group's."""
    return max(group.pages(layers) for group in groups)


def _token_bytes(plan: CachePlan, types: CacheTypes, ranks: int) -> tuple[int, int]:
    """Bytes of keys and of values that a token leaves on one GPU in layers that keep every one."""
    pairs = [
        (entry.count, token_bytes(entry.layer, types, ranks))
        for entry in plan.entries
        if entry.kind in ("full", "latent", "index")
    ]
    return sum(n * key for n, (key, _) in pairs), sum(n * value for n, (_, value) in pairs)


def largest_model_len(plan: CachePlan, settings: Settings, limit: int = MOST_TOKENS) -> int:
    """The largest --max-model-len up to `limit` that starts in this pool; 0 when none does."""
    found = pool(plan, settings)
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        if _request_blocks(list(found.groups), settings, middle) <= found.num_blocks:
            low = middle
        else:
            high = middle - 1
    return low
