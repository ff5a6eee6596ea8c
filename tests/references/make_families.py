"""Writes families.json: logits of tests/families.py's models by transformers, in float64.

Run by hand where torch and transformers are installed; the tests need neither:
    PYTHONPATH=. python tests/references/make_families.py
"""

import json
from pathlib import Path

import torch
import transformers

from tests.families import CONFIGS, TOKENS, family_weights


def reference(name: str) -> list[float]:
    """Logits (V,) after TOKENS."""
    data = dict(CONFIGS[name])
    config = transformers.AutoConfig.for_model(data.pop("model_type"), **data)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float64).eval()
    prefix = "transformer." if name == "gpt2" else ""
    weights = {
        key if key.startswith("lm_head") else prefix + key: torch.from_numpy(weight).double()
        for key, weight in family_weights(name).items()
    }
    missing, unexpected = model.load_state_dict(weights, strict=False)
    assert not unexpected
    assert all("lm_head" in key or "attn.bias" in key for key in missing), missing
    model.tie_weights()
    with torch.no_grad():
        return model(torch.tensor([TOKENS])).logits[0, -1].tolist()


if __name__ == "__main__":
    found = {name: [round(x, 9) for x in reference(name)] for name in CONFIGS}
    about = f"transformers {transformers.__version__}, torch {torch.__version__}"
    path = Path(__file__).with_name("families.json")
    path.write_text(json.dumps({"made by": about, "logits": found}, indent=None) + "\n")
