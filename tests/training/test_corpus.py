"""What is kept of a text, who decides what is validation, and what is said of an unfit file."""

from pathlib import Path

import numpy as np
import pytest

from tinyllm.errors import CorpusError
from tinyllm.tokenizer import ALPHABET, CharTokenizer
from tinyllm.training.corpus import (
    encode,
    keep_known,
    library_corpus,
    library_files,
    path_hash,
    text_corpus,
)


def write_library(root: Path, count: int = 60) -> None:
    for number in range(count):
        (root / f"module_{number}.py").write_text(f'"""Module {number}."""\n' * 40, "utf-8")
    for folder in ("test", "idlelib", "email", "unittest/tests", "encodings"):
        (root / folder).mkdir(parents=True)
        (root / folder / "inner.py").write_text("x = 1\n", "utf-8")
    (root / "_sysconfigdata__linux.py").write_text("x = 1\n", "utf-8")
    (root / "latin.py").write_bytes(b"# -*- coding: latin-1 -*-\n# caf\xe9\n")
    (root / "empty.py").write_bytes(b"")


def test_filter_is_exact() -> None:
    assert keep_known("a\tb\r\nc\rd\x0ce\u00e9\u4e2d~") == ("a    b\nc\nde~", 3)


def test_ids_are_the_tokenizers() -> None:
    assert encode(ALPHABET).tolist() == CharTokenizer().encode(ALPHABET) == list(range(96))
    assert encode(ALPHABET).dtype == np.uint8


def test_library_is_filtered_and_split_by_file(tmp_path: Path) -> None:
    write_library(tmp_path)
    files = library_files(tmp_path)
    paths = [file.path for file in files]
    assert paths == sorted(paths)
    assert "email/inner.py" in paths
    assert not [path for path in paths if "test" in path or "idle" in path or "encod" in path]
    assert not {"_sysconfigdata__linux.py", "empty.py"} & set(paths)
    latin = next(file for file in files if file.path == "latin.py")
    assert latin.text == "# -*- coding: latin-1 -*-\n# caf\n"
    assert latin.dropped == 1

    corpus = library_corpus(tmp_path)
    train, validation = (corpus.manifest[key] for key in ("train_files", "validation_files"))
    assert not set(train) & set(validation)
    assert sorted([*train, *validation]) == paths
    assert 1 <= len(validation) <= 15
    assert len(corpus.train) == corpus.manifest["characters"]["train"]
    decode = CharTokenizer().decode
    texts = {file.path: file.text for file in files}
    assert decode(corpus.validation.tolist()) == "".join(texts[path] for path in validation)
    assert decode(corpus.train.tolist()) == "".join(texts[path] for path in train)


def test_sample_is_whole_validation_files(tmp_path: Path) -> None:
    write_library(tmp_path)
    corpus = library_corpus(tmp_path)
    texts = {file.path: file.text for file in library_files(tmp_path)}
    validation = sorted(corpus.manifest["validation_files"], key=path_hash)
    decode = CharTokenizer().decode
    assert decode(corpus.sample().tolist()) == "".join(texts[path] for path in validation)
    one = texts[validation[0]]
    assert decode(corpus.sample(len(one)).tolist()) == one
    assert decode(corpus.sample(10).tolist()) == decode(corpus.validation[:10].tolist())


def test_split_depends_on_nothing_but_the_path(tmp_path: Path) -> None:
    write_library(tmp_path)
    before = set(library_corpus(tmp_path).manifest["validation_files"])
    for number in range(0, 60, 2):
        (tmp_path / f"module_{number}.py").unlink()
    after = library_corpus(tmp_path)
    left = {file.path for file in library_files(tmp_path)}
    assert set(after.manifest["validation_files"]) == before & left


def test_hash_follows_the_text(tmp_path: Path) -> None:
    write_library(tmp_path)
    first = library_corpus(tmp_path)
    assert first.sha256 == library_corpus(tmp_path).sha256
    (tmp_path / "module_3.py").write_text("changed = True\n", "utf-8")
    assert library_corpus(tmp_path).sha256 != first.sha256


def test_folder_without_python_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="no Python source below"):
        library_files(tmp_path)


def test_text_is_split_by_position(tmp_path: Path) -> None:
    path = tmp_path / "story.txt"
    text = "".join(chr(97 + number % 26) for number in range(30_000))
    path.write_text(text + "\u2026", "utf-8")
    corpus = text_corpus(path)
    decode = CharTokenizer().decode
    assert decode(corpus.train.tolist()) == text[:27_000]
    assert decode(corpus.validation.tolist()) == text[27_000:]
    assert corpus.manifest["dropped_characters"] == 1
    assert corpus.manifest["source"] == "text file story.txt"


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (b"too short", "9 usable characters; training needs 20,000"),
        (b"", "0 usable characters"),
        ("\u4e2d".encode() * 500 + b"a" * 30_000, None),
        ("\u4e2d".encode() * 30_000 + b"a" * 30_000, "30,000 of 60,000 characters are outside"),
        (b"\xff\xfe\x00", "cannot read .* as UTF-8 text"),
    ],
)
def test_unfit_texts_are_refused_with_numbers(
    content: bytes, named: str | None, tmp_path: Path
) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(content)
    if named is None:
        assert len(text_corpus(path).train) == 27_000
        return
    with pytest.raises(CorpusError, match=named):
        text_corpus(path)


def test_missing_text_is_named(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"cannot read .*absent\.txt"):
        text_corpus(tmp_path / "absent.txt")
