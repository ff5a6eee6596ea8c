"""The training network: a forward pass that keeps its activations, and the way back by hand.

The arithmetic is GPT-2's: pre-norm blocks, learned positions, tanh-GELU, no bias on the attention
products, untied head. It holds no optimiser and no loss: backward() takes the derivative of a loss
with respect to the logits. Inference, with a cache, lives elsewhere.
"""

import numpy as np

from tinyllm.config import ModelConfig
from tinyllm.training.attention import Attention
from tinyllm.training.buffers import Buffers
from tinyllm.training.operations import gelu, layer_norm, layer_norm_backward
from tinyllm.training.parameters import Array, Parameters


class Network:
    """Reads `parameters` in place and adds derivatives to `gradients`; both can be shared."""

    def __init__(
        self, parameters: Parameters, gradients: Parameters | None = None, block: int = 64
    ) -> None:
        self.config: ModelConfig = parameters.config
        self.parameters = parameters
        self.gradients = gradients or Parameters(self.config, parameters.vector.dtype)
        self.buffers = Buffers(parameters.vector.dtype)
        self.attention = [
            Attention(self.config, self.buffers, f"h.{layer}", block)
            for layer in range(self.config.n_layer)
        ]
        self._tokens: Array = np.zeros((0, 0), np.int64)

    def forward(self, tokens: Array) -> Array:
        """tokens (B, T) integers -> logits (B T, V), a buffer that the next call overwrites."""
        batch, length = tokens.shape
        width = self.config.width
        weights, get = self.parameters, self.buffers.get
        self._tokens = tokens
        x = get("x", (batch * length, width))
        np.take(weights["wte.weight"], tokens.reshape(-1), axis=0, out=x, mode="clip")
        by_sequence = x.reshape(batch, length, width)
        by_sequence += weights["wpe.weight"][:length]
        for layer in range(self.config.n_layer):
            self._attention_forward(layer, x, batch)
            self._mlp_forward(layer, x)
        final = self._norm_forward("ln_f", x)
        logits = get("logits", (len(x), self.config.vocab_size))
        return np.matmul(final, weights["lm_head.weight"].T, out=logits)

    def backward(self, d_logits: Array) -> None:
        """Add the derivatives of the last forward pass to the gradients; d_logits is (B T, V)."""
        batch, length = self._tokens.shape
        weights, grads, get = self.parameters, self.gradients, self.buffers.get
        shape = (batch * length, self.config.width)
        d_x, upstream = get("d_x", shape), get("upstream", shape)
        grads["lm_head.weight"][...] += d_logits.T @ get("ln_f.out", shape)
        np.matmul(d_logits, weights["lm_head.weight"], out=upstream)
        d_x[...] = 0.0
        self._norm_backward("ln_f", upstream, d_x)
        for layer in reversed(range(self.config.n_layer)):
            self._mlp_backward(layer, d_x)
            self._attention_backward(layer, d_x, batch)
        grads["wpe.weight"][:length] += d_x.reshape(batch, length, -1).sum(axis=0)
        # Adding rows by token is one product with a one-hot matrix, far faster than np.add.at.
        one_hot = get("one_hot", (len(d_x), self.config.vocab_size))
        one_hot[...] = 0.0
        one_hot[np.arange(len(d_x)), self._tokens.reshape(-1)] = 1.0
        grads["wte.weight"][...] += one_hot.T @ d_x

    def _norm_forward(self, name: str, x: Array) -> Array:
        get = self.buffers.get
        out = get(f"{name}.out", x.shape)
        normed, inverse = get(f"{name}.normed", x.shape), get(f"{name}.inverse", x.shape[:1])
        weights = self.parameters
        layer_norm(x, weights[f"{name}.weight"], weights[f"{name}.bias"], normed, inverse, out)
        return out

    def _norm_backward(self, name: str, upstream: Array, d_x: Array) -> None:
        get, grads = self.buffers.get, self.gradients
        layer_norm_backward(
            upstream,
            self.parameters[f"{name}.weight"],
            get(f"{name}.normed", d_x.shape),
            get(f"{name}.inverse", d_x.shape[:1]),
            (grads[f"{name}.weight"], grads[f"{name}.bias"]),
            d_x,
            get("norm.scratch", d_x.shape),
        )

    def _attention_forward(self, layer: int, x: Array, batch: int) -> None:
        get, weights, name = self.buffers.get, self.parameters, f"h.{layer}"
        normed = self._norm_forward(f"{name}.ln_1", x)
        matrix = weights[f"{name}.attn.c_attn.weight"]
        joined = get(f"{name}.joined", (len(x), matrix.shape[1]))
        np.matmul(normed, matrix, out=joined)
        mixed = get(f"{name}.mixed", x.shape)
        self.attention[layer].forward(
            joined.reshape(batch, -1, matrix.shape[1]), mixed.reshape(batch, -1, x.shape[1])
        )
        update = get("update", x.shape)
        np.matmul(mixed, weights[f"{name}.attn.c_proj.weight"], out=update)
        x += update

    def _attention_backward(self, layer: int, d_x: Array, batch: int) -> None:
        get, weights, grads, name = self.buffers.get, self.parameters, self.gradients, f"h.{layer}"
        mixed, upstream = get(f"{name}.mixed", d_x.shape), get("upstream", d_x.shape)
        grads[f"{name}.attn.c_proj.weight"][...] += mixed.T @ d_x
        np.matmul(d_x, weights[f"{name}.attn.c_proj.weight"].T, out=upstream)
        matrix = weights[f"{name}.attn.c_attn.weight"]
        joined = get(f"{name}.joined", (len(d_x), matrix.shape[1]))
        d_joined = get("d_joined", joined.shape)
        by_batch = [a.reshape(batch, -1, a.shape[1]) for a in (joined, mixed, upstream, d_joined)]
        self.attention[layer].backward(*by_batch)
        normed = get(f"{name}.ln_1.out", d_x.shape)
        grads[f"{name}.attn.c_attn.weight"][...] += normed.T @ d_joined
        np.matmul(d_joined, matrix.T, out=upstream)
        self._norm_backward(f"{name}.ln_1", upstream, d_x)

    def _mlp_forward(self, layer: int, x: Array) -> None:
        get, weights, name = self.buffers.get, self.parameters, f"h.{layer}"
        normed = self._norm_forward(f"{name}.ln_2", x)
        shape = (len(x), self.config.hidden_width)
        hidden, out, slope = (
            get(key, shape) for key in ("hidden", f"{name}.activated", f"{name}.slope")
        )
        np.matmul(normed, weights[f"{name}.mlp.c_fc.weight"], out=hidden)
        hidden += weights[f"{name}.mlp.c_fc.bias"]
        gelu(hidden, out, slope, get("gelu.scratch", shape))
        update = get("update", x.shape)
        np.matmul(out, weights[f"{name}.mlp.c_proj.weight"], out=update)
        update += weights[f"{name}.mlp.c_proj.bias"]
        x += update

    def _mlp_backward(self, layer: int, d_x: Array) -> None:
        get, weights, grads, name = self.buffers.get, self.parameters, self.gradients, f"h.{layer}"
        shape = (len(d_x), self.config.hidden_width)
        ones = np.ones(len(d_x), d_x.dtype)
        grads[f"{name}.mlp.c_proj.weight"][...] += get(f"{name}.activated", shape).T @ d_x
        grads[f"{name}.mlp.c_proj.bias"][...] += ones @ d_x
        d_hidden = get("hidden", shape)
        np.matmul(d_x, weights[f"{name}.mlp.c_proj.weight"].T, out=d_hidden)
        d_hidden *= get(f"{name}.slope", shape)
        grads[f"{name}.mlp.c_fc.weight"][...] += get(f"{name}.ln_2.out", d_x.shape).T @ d_hidden
        grads[f"{name}.mlp.c_fc.bias"][...] += ones @ d_hidden
        upstream = get("upstream", d_x.shape)
        np.matmul(d_hidden, weights[f"{name}.mlp.c_fc.weight"].T, out=upstream)
        self._norm_backward(f"{name}.ln_2", upstream, d_x)
