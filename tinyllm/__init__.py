"""tinyllm: a laboratory and a calculator for the speed and memory of LLM inference."""

from tinyllm import memory
from tinyllm.generation import Token, generate
from tinyllm.loading import load_model
from tinyllm.speculative import Round, speculate

__all__ = ["Round", "Token", "generate", "load_model", "memory", "speculate"]
