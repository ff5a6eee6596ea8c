"""The text a model learns from: the interpreter's own standard library, or any text file.

Symbols: line ends become newline, a tab becomes four spaces, every other symbol outside the 96 of
the tokenizer is dropped. The library is split by file, by a hash of the relative path, so that no
validation file is ever seen; a single text is split by position, its last tenth is validation.
"""

import hashlib
import itertools
import sysconfig
import tokenize
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tinyllm.errors import CorpusError
from tinyllm.tokenizer import ALPHABET, CharTokenizer
from tinyllm.training.parameters import Array

_SKIPPED = (
    "site-packages test tests idle_test idlelib lib2to3 turtledemo ensurepip pydoc_data encodings"
)
SKIPPED_DIRECTORIES = frozenset([*_SKIPPED.split(" "), "dist-packages", "__pycache__"])
SKIPPED_PREFIX = "_sysconfigdata"  # written by the build, different on every machine
LEAST_CHARACTERS = 20_000
SAMPLE_CHARACTERS = 65_536  # of validation text that a card can be checked on
LEAST_KNOWN = 0.9  # share of a text's symbols that the alphabet must cover


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file, already filtered."""

    path: str
    text: str
    dropped: int

    @property
    def is_validation(self) -> bool:
        """One file in ten, by the hash of its relative path: nobody picks it by hand."""
        return path_hash(self.path) % 10 == 0


def path_hash(path: str) -> int:
    """A number that only the path decides, be its name UTF-8 or not."""
    name = path.encode("utf-8", "surrogateescape")
    return int(hashlib.sha256(name).hexdigest(), 16)


@dataclass(frozen=True, slots=True)
class Corpus:
    """Token ids (uint8) for training and validation, and the manifest that identifies them."""

    train: Array
    validation: Array
    manifest: dict[str, Any]

    @property
    def sha256(self) -> str:
        """Hash of the filtered training and validation text."""
        return str(self.manifest["sha256"])

    def sample(self, most: int = SAMPLE_CHARACTERS) -> Array:
        """Whole validation files, in the order of their path's hash, `most` characters at most."""
        sizes: dict[str, int] = self.manifest["validation_files"]
        ends = dict(zip(sizes, itertools.accumulate(sizes.values()), strict=True))
        chosen, total = [], 0
        for path in sorted(sizes, key=path_hash):
            if total + sizes[path] <= most:
                chosen.append(self.validation[ends[path] - sizes[path] : ends[path]])
                total += sizes[path]
        return np.concatenate(chosen) if chosen else self.validation[:most]


def keep_known(text: str) -> tuple[str, int]:
    """The text in the 96 symbols and how many symbols were dropped."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\t", "    ")
    kept = CharTokenizer.keep_known(text)
    return kept, len(text) - len(kept)


def encode(text: str) -> Array:
    """Token ids of a filtered text, one byte each."""
    table = np.zeros(128, np.uint8)
    table[[ord(symbol) for symbol in ALPHABET]] = np.arange(len(ALPHABET))
    return np.asarray(table[np.frombuffer(text.encode("ascii"), np.uint8)])


def library_files(root: Path | None = None) -> list[SourceFile]:
    """Every pure-Python module below the standard library's directory, sorted by path."""
    root = root or Path(sysconfig.get_path("stdlib"))
    files = []
    for path in sorted(root.rglob("*.py")):
        relative = path.relative_to(root)
        if SKIPPED_DIRECTORIES & set(relative.parts[:-1]) or path.name.startswith(SKIPPED_PREFIX):
            continue
        with tokenize.open(path) as file:
            text, dropped = keep_known(file.read())
        if text:
            text = text.rstrip("\n") + "\n"
            files.append(SourceFile(relative.as_posix(), text, dropped))
    if not files:
        raise CorpusError(f"no Python source below {root}; give a text with --text FILE")
    return files


def library_corpus(root: Path | None = None) -> Corpus:
    """The standard library of the running interpreter, split by file."""
    files = library_files(root)
    train = [file for file in files if not file.is_validation]
    validation = [file for file in files if file.is_validation]
    source = f"standard library of Python {sysconfig.get_python_version()}"
    return _build(source, train, validation)


def text_corpus(path: Path) -> Corpus:
    """A text file of the user's, its last tenth for validation.

    CorpusError when it cannot be read, is too short or is mostly outside the alphabet.
    """
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CorpusError(f"cannot read {path} as UTF-8 text: {error}") from error
    kept, dropped = keep_known(text)
    if text and dropped > (1.0 - LEAST_KNOWN) * (len(kept) + dropped):
        raise CorpusError(
            f"{path}: {dropped:,} of {len(kept) + dropped:,} characters are outside the 96 symbols "
            "(printable ASCII and newline); at most 10 % may be"
        )
    if len(kept) < LEAST_CHARACTERS:
        raise CorpusError(
            f"{path} has {len(kept):,} usable characters; training needs {LEAST_CHARACTERS:,}"
        )
    cut = len(kept) - len(kept) // 10
    parts = (SourceFile(path.name, kept[:cut], dropped), SourceFile(path.name, kept[cut:], 0))
    return _build(f"text file {path.name}", [parts[0]], [parts[1]])


def _build(source: str, train: list[SourceFile], validation: list[SourceFile]) -> Corpus:
    texts = ["".join(file.text for file in part) for part in (train, validation)]
    both = [*train, *validation]
    manifest = {
        "source": source,
        "sha256": hashlib.sha256("\0".join(texts).encode("ascii")).hexdigest(),
        "characters": {"train": len(texts[0]), "validation": len(texts[1])},
        "files": {"train": len(train), "validation": len(validation)},
        "dropped_characters": sum(file.dropped for file in both),
        "train_files": {file.path: len(file.text) for file in train},
        "validation_files": {file.path: len(file.text) for file in validation},
    }
    return Corpus(encode(texts[0]), encode(texts[1]), manifest)
