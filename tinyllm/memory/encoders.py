"""Encoder-decoders: the decoder's own cache, and the keys and values of the encoder's output.

Cross attention is filled once and does not grow; how many encoder tokens there are is the config's
limit (1,500 for Whisper's 30 seconds); CachePlan.with_encoder_tokens sets another length.
"""

from collections.abc import Iterator

from tinyllm.memory.fields import MOST_HEADS, MOST_LAYERS, MOST_TOKENS, Fields
from tinyllm.memory.layers import Attention, Placed
from tinyllm.memory.shape import DIM_KEYS, HEAD_KEYS, WIDTH_KEYS, read_key_dim

# The longest input of the encoder, by model family; T5 has no limit and was trained on 512.
_LENGTH_KEYS = ("max_source_positions", "n_positions", "max_position_embeddings")
_T5_TOKENS = 512


def encoder_decoder_layers(fields: Fields, family: str) -> Iterator[Placed]:
    """Self and cross attention in every decoder layer."""
    count = fields.whole("decoder_layers", "num_decoder_layers", "num_layers", high=MOST_LAYERS)
    heads = fields.whole("decoder_attention_heads", *HEAD_KEYS, high=MOST_HEADS)
    dim, origin = read_key_dim(fields, heads)
    tokens = fields.whole(*_LENGTH_KEYS, high=MOST_TOKENS, default=_T5_TOKENS)
    fields.ignore("encoder_layers", "encoder_attention_heads", "num_hidden_layers", "num_layers")
    fields.ignore("is_encoder_decoder", "encoder_no_repeat_ngram_size")
    fields.ignore(*HEAD_KEYS, *DIM_KEYS, *WIDTH_KEYS, *_LENGTH_KEYS)
    self_attention = Attention("full", heads, dim, dim)
    cross = Attention("cross", heads, dim, dim, tokens)
    for index in range(count):
        yield Placed(index, self_attention, f"decoder self attention; {origin}")
        yield Placed(index, cross, f"cross attention over {tokens:,} encoder tokens; {origin}")
