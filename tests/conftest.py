"""The trained models and prompts that the tests share."""

import pytest
from threadpoolctl import threadpool_limits

from tinyllm import load_model
from tinyllm.experiments.prompts import validation_prompts
from tinyllm.model import Transformer


@pytest.fixture(scope="session", autouse=True)
def one_blas_thread() -> None:
    threadpool_limits(1, "blas")


@pytest.fixture(scope="session")
def target() -> Transformer:
    return load_model("target")


@pytest.fixture(scope="session")
def target64() -> Transformer:
    return load_model("target", "float64")


@pytest.fixture(scope="session")
def draft() -> Transformer:
    return load_model("draft")


@pytest.fixture(scope="session")
def draft64() -> Transformer:
    return load_model("draft", "float64")


@pytest.fixture(scope="session")
def prompts() -> list[str]:
    return validation_prompts()
