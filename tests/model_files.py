"""Small random models written to the disk as others write them: Hugging Face folders and GGUF."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGMLQuantizationType, GGUFWriter
from gguf.quants import quantize
from safetensors.numpy import save_file
from tokenizers import Tokenizer
from tokenizers.decoders import ByteLevel
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel as SplitBytes

from tests.families import CONFIGS, family_weights
from tinyllm.config import ModelConfig

PIECES = [chr(code) for code in range(ord("!"), ord("!") + 93)] + ["Ġ", "in", "<|end|>", "Ċ"]
MERGES = ["i n"]
END = PIECES.index("<|end|>")
TEMPLATE = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
_GGUF_NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "wte": "token_embd",
    "wpe": "position_embd",
    "ln_f": "output_norm",
    "ln_1": "attn_norm",
    "ln_2": "ffn_norm",
    "attn.c_attn": "attn_qkv",
    "attn.c_proj": "attn_output",
    "mlp.c_fc": "ffn_up",
    "mlp.c_proj": "ffn_down",
}


def write_folder(folder: Path, name: str, dtype: Any = np.float32, shards: int = 1) -> Path:
    """A Hugging Face folder of one of CONFIGS."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(CONFIGS[name] | {"eos_token_id": END}))
    library = Tokenizer(BPE({piece: i for i, piece in enumerate(PIECES)}, [("i", "n")]))
    library.pre_tokenizer = SplitBytes(add_prefix_space=False)
    library.decoder = ByteLevel()
    library.add_special_tokens(["<|end|>"])
    library.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": TEMPLATE}))
    prefix = "transformer." if name == "gpt2" else ""
    weights = {prefix + key: w.astype(dtype) for key, w in family_weights(name).items()}
    if shards == 1:
        save_file(weights, folder / "model.safetensors")
        return folder
    files = [f"model-{i:05}-of-{shards:05}.safetensors" for i in range(1, shards + 1)]
    where = {key: files[i % shards] for i, key in enumerate(weights)}
    for file in files:
        save_file({key: weights[key] for key in weights if where[key] == file}, folder / file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": where}))
    return folder


def write_gguf(path: Path, name: str, kind: str = "F32", **metadata: Any) -> Path:
    """A GGUF file of one of CONFIGS, as llama.cpp's converter lays it out.

    Products are quantised to `kind` where their rows are whole blocks; metadata replaces keys.
    """
    config = ModelConfig.from_json(CONFIGS[name])
    architecture = {"llama-biased": "llama", "mistral": "llama"}.get(name, name)
    writer = GGUFWriter(path, architecture)
    writer.add_block_count(config.n_layer)
    writer.add_context_length(config.context_length)
    writer.add_embedding_length(config.width)
    writer.add_feed_forward_length(config.hidden_width)
    writer.add_head_count(config.n_head)
    if name == "gpt2":
        writer.add_layer_norm_eps(config.norm_eps)
    else:
        writer.add_head_count_kv(config.n_kv_head)
        writer.add_key_length(config.head_dim)
        writer.add_layer_norm_rms_eps(config.norm_eps)
        writer.add_rope_freq_base(config.rope_theta)
        writer.add_rope_dimension_count(config.head_dim)
    writer.add_tokenizer_model(metadata.pop("model", "gpt2"))
    writer.add_tokenizer_pre(metadata.pop("pre", "gpt-2"))
    writer.add_token_list(PIECES)
    writer.add_token_types([3 if piece == "<|end|>" else 1 for piece in PIECES])
    writer.add_token_merges(MERGES)
    writer.add_eos_token_id(END)
    writer.add_chat_template(TEMPLATE)
    for key, value in metadata.items():
        writer.add_string(key.replace("__", "."), value)
    for key, weight in family_weights(name).items():
        stem, _, what = key.rpartition(".")
        parts = stem.split(".")
        layer = next((part for part in parts if part.isdigit()), None)
        short = stem if layer is None else ".".join(parts[parts.index(layer) + 1 :])
        target = f"{_GGUF_NAMES[short]}.{what}"
        if architecture == "llama" and short in ("self_attn.q_proj", "self_attn.k_proj"):
            heads = config.n_head if "q_proj" in short else config.n_kv_head
            paired = weight.reshape(heads, 2, config.head_dim // 2, *weight.shape[1:])
            weight = paired.swapaxes(1, 2).reshape(weight.shape)
        if name == "gpt2" and layer is not None and weight.ndim == 2:
            weight = weight.T
        full = target if layer is None else f"blk.{layer}.{target}"
        stored = GGMLQuantizationType[kind if weight.ndim == 2 else "F32"]
        data = quantize(np.ascontiguousarray(weight), stored)
        writer.add_tensor(full, data, raw_dtype=stored)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
