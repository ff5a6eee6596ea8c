"""Which reader understands which model_type, and what no reader may answer.

A type that stands in no table is read as plain attention and said to be unknown. Sources: the model
types of transformers 5.24, and those that repositories with their own code write.
"""

from collections.abc import Callable, Iterator

from tinyllm.memory import attention, encoders, hybrids, latent
from tinyllm.memory.fields import Fields
from tinyllm.memory.layers import Placed
from tinyllm.memory.windows import PATTERNS, THRESHOLD

Reader = Callable[[Fields, str], Iterator[Placed]]


def _latent(fields: Fields, family: str) -> Iterator[Placed]:
    """MLA; DeepSeek-V2's class also serves small models without it."""
    if not latent.has_latent(fields):
        return attention.plain_layers(fields, family)
    return latent.latent_layers(fields)


def _double_latent(fields: Fields, family: str) -> Iterator[Placed]:
    return latent.latent_layers(fields, each=2)


def _indexed(fields: Fields, family: str) -> Iterator[Placed]:
    return latent.indexed_layers(fields)


def _compressed(fields: Fields, family: str) -> Iterator[Placed]:
    return latent.compressed_layers(fields)


_READERS: tuple[tuple[Reader, str], ...] = (
    (
        _latent,
        "deepseek_v2 deepseek_v3 kimi_k2 kimi_k25 glm4_moe_lite mistral4 axk1 youtu sarvam_mla "
        "pangu_ultra_moe",
    ),
    (_double_latent, "longcat_flash"),
    (_indexed, "axk2 deepseek_v32 glm_moe_dsa"),
    (_compressed, "deepseek_v4"),
    (attention.gemma_layers, "gemma3n gemma3n_text gemma4 gemma4_text gemma4_unified_text"),
    (attention.mimo_layers, "mimo_v2_flash mimo_v2"),
    (attention.step_layers, "step3p5 step3p7"),
    (attention.openelm_layers, "openelm"),
    (attention.deci_layers, "deci"),
    (attention.nemotron_nas_layers, "nemotron-nas"),
    (attention.block_sparse_layers, "minimax_m3"),
    (attention.softmax_only_layers, "minimax_m2"),
    (
        hybrids.delta_net_layers,
        "qwen3_next qwen3_5 qwen3_5_text qwen3_5_moe qwen3_5_moe_text olmo_hybrid",
    ),
    (hybrids.kimi_linear_layers, "kimi_linear"),
    (hybrids.nemotron_h_layers, "nemotron_h nemotron_3"),
    (hybrids.mamba_2_layers, "granitemoehybrid bamba"),
    (hybrids.parallel_layers, "falcon_h1"),
    (hybrids.jamba_layers, "jamba"),
    (hybrids.zamba_2_layers, "zamba2"),
    (hybrids.mamba_only_layers, "mamba mamba2 falcon_mamba"),
    (hybrids.short_convolution_layers, "lfm2 lfm2_moe"),
    (hybrids.lightning_layers, "minimax minimax_text_01 minimax_m1"),
    (hybrids.recurrent_gemma_layers, "recurrent_gemma"),
    (
        encoders.encoder_decoder_layers,
        "whisper t5 mt5 umt5 bart mbart pegasus marian m2m_100 blenderbot blenderbot-small plbart "
        "speech_to_text",
    ),
    (attention.plain_layers, " ".join([*PATTERNS, *sorted(THRESHOLD)])),
    (
        attention.plain_layers,
        "apertus aquila arcee aria_text baichuan bitnet bloom chameleon chatglm codegen cohere "
        "dbrx deepseek diffllama ernie4_5 ernie4_5_moe ernie4_5_vl_moe_text exaone falcon "
        "flex_olmo gemma glm glm4 glm4_moe glm4v_text glm4v_moe_text glm_ocr_text gpt2 "
        "gpt_bigcode gpt_neox gptj granite granitemoe granitemoeshared helium hunyuan "
        "hunyuan_v1_dense hunyuan_v1_moe hy_v3 internlm internlm2 internlm3 iquestcoder jais2 "
        "jetmoe laguna llama llama4 llama4_text mimo minicpm ministral3 mpt nanochat "
        "nemotron olmo olmo2 olmoe openai-gpt opt orion paddleocr_vl_text persimmon phi phi-msft "
        "qwen qwen2_moe qwen3_omni_moe_text qwen3_vl_moe_text qwen3_vl_text sarvam_moe seed_oss "
        "smollm3 step3_text solar solar_open stablelm telechat xglm xverse yi",
    ),
)
READERS: dict[str, Reader] = {}
for _reader, _names in _READERS:
    for _name in _names.split():
        READERS.setdefault(_name, _reader)  # a special reader goes before the plain one

# Encoders keep no cache; the others keep one by rules that are not written here.
ENCODERS = {
    *("albert", "bert", "camembert", "clip_text_model", "deberta", "deberta-v2", "distilbert"),
    *("electra", "ernie", "esm", "eurobert", "modernbert", "mpnet", "nomic_bert", "roberta"),
    *("xlm-roberta", "xlm-roberta-xl", "bert-generation", "data2vec-text", "megatron-bert"),
    *("rembert", "roberta-prelayernorm", "roc_bert", "roformer", "xmod"),
}
UNSOLVED = {
    "bailing_hybrid": "linear attention beside latent attention",
    "bailing_moe_linear": "linear attention of unknown state",
    "gpt_neo": "attention_types with local layers",
    "minicpm3": "latent attention that engines expand to full heads",
    "mllama": "cross attention over image tokens",
    "mllama_text_model": "cross attention over image tokens",
    "phi4flash": "layers that share one cache across a decoder",
    "reformer": "hashed attention",
    "rwkv": "a recurrent state alone",
    "xlstm": "a recurrent state alone",
    "zamba": "Mamba-1 with shared attention",
}
