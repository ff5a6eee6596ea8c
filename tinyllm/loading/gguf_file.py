"""GGUF files of GPT-2's and Llama's families: config, weights and tokenizer metadata.

The header is read by our own reader (the gguf package takes some seconds and a hundred megabytes
for a vocabulary); its tables of types and its dequantisers turn the stored blocks into numbers.
Tensors come under Hugging Face's names and layout, each read when it is asked for.
"""

import mmap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize

from tinyllm.config import ModelConfig
from tinyllm.config_json import FAMILIES
from tinyllm.errors import ConfigError, WeightsError
from tinyllm.layers import Array
from tinyllm.memory.gguf_header import TensorEntry, read_file

_ENDS = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
_BLOCK = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_GPT2_ENDS = {
    "token_embd": "wte",
    "position_embd": "wpe",
    "output_norm": "ln_f",
    "output": "lm_head",
}
_GPT2_BLOCK = {
    "attn_norm": "ln_1",
    "attn_qkv": "attn.c_attn",
    "attn_output": "attn.c_proj",
    "ffn_norm": "ln_2",
    "ffn_up": "mlp.c_fc",
    "ffn_down": "mlp.c_proj",
}
# Key of config.json -> key of the metadata, behind the architecture's name.
_LLAMA_KEYS = {
    "num_hidden_layers": "block_count",
    "max_position_embeddings": "context_length",
    "hidden_size": "embedding_length",
    "intermediate_size": "feed_forward_length",
    "num_attention_heads": "attention.head_count",
    "num_key_value_heads": "attention.head_count_kv",
    "head_dim": "attention.key_length",
    "rms_norm_eps": "attention.layer_norm_rms_epsilon",
    "rope_theta": "rope.freq_base",
    "sliding_window": "attention.sliding_window",
}
_GPT2_KEYS = {
    "n_layer": "block_count",
    "n_positions": "context_length",
    "n_embd": "embedding_length",
    "n_inner": "feed_forward_length",
    "n_head": "attention.head_count",
    "layer_norm_epsilon": "attention.layer_norm_epsilon",
}


@dataclass(frozen=True, slots=True)
class _Tensor:
    """An entry of the file, and what must be done to its numbers."""

    entry: TensorEntry
    heads: int  # rows of so many heads lie in rotary pairs, to be undone; 0: as they are
    transposed: bool


class GgufWeights(Mapping[str, Array]):
    """The tensors of a GGUF file by Hugging Face's names; each look-up reads from the disk."""

    def __init__(self, path: Path) -> None:
        """Reads the header. WeightsError or ConfigError name what is damaged or not known."""
        self.path = path
        try:
            with (
                path.open("rb") as file,
                mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
            ):
                header = read_file(content)
        except (OSError, ValueError) as error:  # MemoryPlanError is a ValueError
            raise WeightsError(f"cannot read {path}: {error}") from None
        self.metadata = header.metadata
        self._start = header.data_start
        architecture = header.metadata.get("general.architecture")
        if architecture not in FAMILIES:
            raise ConfigError(
                f"{path}: general.architecture must be one of {', '.join(FAMILIES)}, "
                f"not {architecture!r}"
            )
        self._architecture = str(architecture)
        self.config = self._read_config(header.tensors)
        self._tensors = {self._name(e.name): self._tensor(e) for e in header.tensors.values()}
        self._check_length(path.stat().st_size)

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def shape(self, name: str) -> tuple[int, ...]:
        """A tensor's shape, which is known before it is read."""
        tensor = self._tensors[name]
        return tensor.entry.shape[::-1] if tensor.transposed else tensor.entry.shape

    def dtype(self, name: str) -> str:
        """The name of its type in the file, "Q4_1" for instance."""
        kind = self._tensors[name].entry.kind
        return GGMLQuantizationType(kind).name if kind in _KINDS else f"type {kind}"

    def __getitem__(self, name: str) -> Array:
        tensor = self._tensors[name]
        entry = tensor.entry
        start = self._start + entry.offset
        stored = np.fromfile(self.path, np.uint8, _n_bytes(entry), offset=start)
        try:
            numbers = dequantize(
                stored.reshape(*entry.shape[:-1], -1), GGMLQuantizationType(entry.kind)
            )
        except NotImplementedError:
            raise WeightsError(
                f"{self.path}: {name} is {self.dtype(name)}, a quantisation that cannot be read"
            ) from None
        array: Array = numbers.reshape(entry.shape)
        if tensor.heads:
            size = self.config.head_dim
            paired = array.reshape(tensor.heads, size // 2, 2, *array.shape[1:])
            array = paired.swapaxes(1, 2).reshape(array.shape)
        return array.T if tensor.transposed else array

    def _read_config(self, tensors: Mapping[str, TensorEntry]) -> ModelConfig:
        """The config.json that this file's metadata amounts to."""
        at = self._architecture
        gpt2 = at == "gpt2"
        _refuse_the_unknown(self.path, self.metadata, at)
        keys = _GPT2_KEYS if gpt2 else _LLAMA_KEYS
        found = {key: self.metadata.get(f"{at}.{source}") for key, source in keys.items()}
        data: dict[str, Any] = {key: value for key, value in found.items() if value is not None}
        data["model_type"] = at
        data["tie_word_embeddings"] = "output.weight" not in tensors
        if not gpt2:
            data["attention_bias"] = "blk.0.attn_output.bias" in tensors
            data["mlp_bias"] = "blk.0.ffn_down.bias" in tensors
        embedding = tensors.get("token_embd.weight")
        if embedding is None:
            raise WeightsError(f"{self.path} lacks token_embd.weight")
        data["vocab_size"] = embedding.shape[0]
        try:
            return ModelConfig.from_json(data)
        except ConfigError as error:
            raise ConfigError(f"{self.path}: {error}") from None

    def _name(self, name: str) -> str:
        """blk.3.attn_q.weight -> model.layers.3.self_attn.q_proj.weight; unknown names as is."""
        gpt2 = self._architecture == "gpt2"
        stem, _, kind = name.rpartition(".")
        if not stem.startswith("blk."):
            return f"{(_GPT2_ENDS if gpt2 else _ENDS).get(stem, stem)}.{kind}"
        _, layer, part = stem.split(".", 2)
        part = (_GPT2_BLOCK if gpt2 else _BLOCK).get(part, part)
        return f"{'h' if gpt2 else 'model.layers'}.{layer}.{part}.{kind}"

    def _tensor(self, entry: TensorEntry) -> _Tensor:
        """Converters lay the query and key rows of the llama architecture in rotary pairs, and
        GPT-2's products the other way round."""
        heads = 0
        if self._architecture in ("llama", "mistral"):
            counts = {"attn_q": self.config.n_head, "attn_k": self.config.n_kv_head}
            heads = counts.get(entry.name.split(".")[-2], 0)
        gpt2_product = self._architecture == "gpt2" and entry.name.startswith("blk.")
        return _Tensor(entry, heads, gpt2_product and len(entry.shape) == 2)

    def _check_length(self, size: int) -> None:
        for name, tensor in self._tensors.items():
            if tensor.entry.kind not in _KINDS:
                raise WeightsError(f"{self.path}: {name} is of unknown {self.dtype(name)}")
            if self._start + tensor.entry.offset + _n_bytes(tensor.entry) > size:
                raise WeightsError(f"{self.path}: {name} ends beyond the file: it is cut off")


_KINDS = {kind.value for kind in GGMLQuantizationType}


def _n_bytes(entry: TensorEntry) -> int:
    """Bytes of a tensor: whole blocks in every row."""
    block, block_bytes = GGML_QUANT_SIZES[GGMLQuantizationType(entry.kind)]
    count = int(np.prod(entry.shape, dtype=np.int64))
    if entry.shape[-1] % block:
        raise WeightsError(f"{entry.name} has rows of {entry.shape[-1]}, no multiple of {block}")
    return count // block * block_bytes


def _refuse_the_unknown(path: Path, metadata: Mapping[str, Any], at: str) -> None:
    """What would change the forward pass and is not made here."""
    scaling = metadata.get(f"{at}.rope.scaling.type", "none")
    if scaling != "none":
        raise ConfigError(f"{path}: {at}.rope.scaling.type must be 'none', not {scaling!r}")
    if metadata.get(f"{at}.expert_count"):
        raise ConfigError(f"{path}: {at}.expert_count must be 0: mixtures of experts do not run")
    turned = metadata.get(f"{at}.rope.dimension_count")
    width, heads = (
        metadata.get(f"{at}.{key}") for key in ("embedding_length", "attention.head_count")
    )
    head_dim = metadata.get(f"{at}.attention.key_length")
    if head_dim is None and isinstance(width, int) and isinstance(heads, int) and heads:
        head_dim = width // heads
    if at != "gpt2" and turned not in (None, head_dim):
        raise ConfigError(
            f"{path}: {at}.rope.dimension_count must be {head_dim}, the head's, not {turned!r}"
        )
