"""BPE tokenizers as models bring them: a tokenizer.json, or the metadata of a GGUF file."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeGuard

from tokenizers import AddedToken, Regex, normalizers, pre_tokenizers
from tokenizers import Tokenizer as Library
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE

from tinyllm.errors import TokenizerError
from tinyllm.tokenizer.bpe import BpeTokenizer, SpecialTokens

_NORMAL, _CONTROL, _USER_DEFINED = 1, 3, 4  # kinds of tokens in a GGUF file
# How texts are split before pairs are merged, by the name GGUF files give it. The patterns are
# the models' own, as their tokenizer.json has them.
_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_QWEN2 = _LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
_PATTERNS = {"llama-bpe": _LLAMA3, "llama3": _LLAMA3, "qwen2": _QWEN2}
_SINGLE_DIGITS = ("smollm", "starcoder", "refact", "command-r")
_GPT2 = ("gpt-2", "gpt2", "default")


def from_json(folder: Path, vocab_size: int) -> BpeTokenizer:
    """The tokenizer of a Hugging Face folder: tokenizer.json, and what stands beside it."""
    path = folder / "tokenizer.json"
    try:
        library = Library.from_file(str(path))
    except Exception as error:  # the library raises Exception itself
        raise TokenizerError(f"cannot read {path}: {error}") from None
    settings = _read(folder / "tokenizer_config.json")
    ends = {library.token_to_id(_name(settings.get("eos_token")))}
    for name in ("generation_config.json", "config.json"):
        given = _read(folder / name).get("eos_token_id")
        ends |= set(given) if isinstance(given, list) else {given}
    begin = None
    if library.encode("").ids:  # the file's own rule puts something before every text
        begin = library.encode("").ids[0]
    template = settings.get("chat_template")
    if isinstance(template, list):  # several, by name
        named = {one.get("name"): one.get("template") for one in template}
        template = named.get("default")
    beside = folder / "chat_template.jinja"
    if template is None and beside.exists():
        template = beside.read_text("utf-8")
    known = frozenset(end for end in ends if _is_id(end, vocab_size))
    return BpeTokenizer(library, vocab_size, SpecialTokens(begin, known, template))


def from_gguf(metadata: Mapping[str, Any], vocab_size: int) -> BpeTokenizer:
    """The tokenizer in a GGUF file's metadata; TokenizerError names a kind that is not known."""

    def entry(key: str) -> Any:
        return metadata.get(f"tokenizer.ggml.{key}")

    if entry("model") != "gpt2":
        raise TokenizerError(
            f"the GGUF file's tokenizer is {entry('model')!r}, and only byte-pair encoding "
            "('gpt2') is read from GGUF: take the model as a folder with a tokenizer.json"
        )
    pieces, merges = entry("tokens"), entry("merges")
    if not pieces or merges is None or len(pieces) > vocab_size:
        raise TokenizerError("the GGUF file lacks tokenizer.ggml.tokens or tokenizer.ggml.merges")
    library = _byte_level(pieces, merges, str(entry("pre") or "default"))
    kinds = entry("token_type") or [_NORMAL] * len(pieces)
    for kind in (_CONTROL, _USER_DEFINED):
        added = [
            AddedToken(piece, special=kind == _CONTROL, normalized=False)
            for piece, its in zip(pieces, kinds, strict=True)
            if its == kind
        ]
        library.add_tokens(added)
    ends = {entry(key) for key in ("eos_token_id", "eot_token_id")}
    begin = entry("bos_token_id") if entry("add_bos_token") else None
    special = SpecialTokens(
        begin=begin if _is_id(begin, vocab_size) else None,
        ends=frozenset(end for end in ends if _is_id(end, vocab_size)),
        template=metadata.get("tokenizer.chat_template"),
    )
    return BpeTokenizer(library, vocab_size, special)


def _byte_level(pieces: list[str], merges: list[str], split: str) -> Library:
    """GPT-2's byte-pair encoding with a family's way of splitting texts."""
    try:
        pairs = [(left, right) for left, _, right in (merge.partition(" ") for merge in merges)]
        model = BPE({piece: token for token, piece in enumerate(pieces)}, pairs)
    except Exception as error:  # the library raises Exception itself
        raise TokenizerError(f"the GGUF file's merges do not fit its tokens: {error}") from None
    library = Library(model)
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=split not in _PATTERNS)
    if split in _PATTERNS:
        pattern = pre_tokenizers.Split(Regex(_PATTERNS[split]), "isolated")
        library.pre_tokenizer = pre_tokenizers.Sequence([pattern, byte_level])
    elif split in _SINGLE_DIGITS:
        digits = pre_tokenizers.Digits(individual_digits=True)
        library.pre_tokenizer = pre_tokenizers.Sequence([digits, byte_level])
    elif split in _GPT2:
        library.pre_tokenizer = byte_level
    else:
        known = ", ".join([*_GPT2, *_SINGLE_DIGITS, *_PATTERNS])
        raise TokenizerError(f"tokenizer.ggml.pre {split!r} is unknown; known are {known}")
    if split == "qwen2":
        library.normalizer = normalizers.NFC()
    library.decoder = ByteLevelDecoder()
    return library


def _is_id(token: object, vocab_size: int) -> TypeGuard[int]:
    return isinstance(token, int) and 0 <= token < vocab_size


def _read(path: Path) -> dict[str, Any]:
    """A JSON file's object; none where there is no file."""
    if not path.exists():
        return {}
    try:
        data = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise TokenizerError(f"cannot read {path}: {error}") from None
    if not isinstance(data, dict):
        raise TokenizerError(f"{path} must hold an object")
    return data


def _name(token: object) -> str:
    """A special token's text, written as such or as an object with its content."""
    content = token.get("content") if isinstance(token, dict) else token
    return content if isinstance(content, str) else ""
