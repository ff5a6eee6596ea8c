"""What a run asks of a model: its prompt as the model's own tokens, and where its text ends.

A model that was taught conversations gets the prompt as a user's turn, any other as text to
continue. The tokens with which a model ends its text end the run.
"""

from typing import Any

from tinyllm.experiments.settings import RunConfig
from tinyllm.model import Transformer


def prompt_ids(prompt: str, model: Transformer) -> list[int]:
    """The tokens that a model is given for a prompt; TokenError for what it has none for."""
    tokenizer = model.tokenizer
    if tokenizer.can_chat:
        prompt = tokenizer.chat([{"role": "user", "content": prompt}])
    return tokenizer.encode(prompt)


def request(config: RunConfig, model: Transformer) -> dict[str, Any]:
    """The arguments that generate() and speculate() share, for this model."""
    return {
        "prompt": prompt_ids(config.prompt, model),
        "stop": model.tokenizer.stop_tokens,
        **config.run_settings,
    }
