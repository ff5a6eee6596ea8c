"""`python -m tinyllm generate`: text from a prompt, plainly or by speculation, and its counters."""

import argparse
import sys
from collections.abc import Callable, Iterator

from threadpoolctl import threadpool_limits

from tinyllm.cache import CACHE_DTYPES
from tinyllm.generation import Token, generate
from tinyllm.loading import load_model
from tinyllm.speculative.counters import Counters
from tinyllm.speculative.decoding import Round, speculate
from tinyllm.speculative.drafters import named
from tinyllm.tokenizer import CharTokenizer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `generate`."""
    add = parser.add_argument
    add("--prompt", required=True, help="text to continue: printable ASCII and newlines")
    add("--model", default="target", help="a shipped model or a folder (default target)")
    add("--k", type=int, help="proposals per round; without it decoding is plain")
    add("--drafter", default="draft", help="ngram, a shipped model or a folder (default draft)")
    add("--max-new-tokens", type=int, default=96, help="tokens to make (default 96)")
    add("--temperature", type=float, default=0.0, help="0 takes the most probable token")
    add("--top-k", type=int, help="keep the k most probable tokens")
    add("--top-p", type=float, default=1.0, help="keep the nucleus of this probability")
    add("--seed", type=int, default=0, help="the same seed gives the same text")
    add("--stop", default="", help="characters that end the text")
    add("--kv-dtype", default="float32", choices=CACHE_DTYPES, help="how the cache is stored")


def run(arguments: argparse.Namespace, say: Callable[[str], object]) -> int:
    """Print prompt and text as they come on stdout, counters on stderr."""
    with threadpool_limits(1, "blas"):
        events = _events(arguments)  # refuses what is wrong before anything is printed
        decode = CharTokenizer().decode
        counters = Counters()
        sys.stdout.write(arguments.prompt)
        for event in events:
            if isinstance(event, Round):
                counters = counters.add(event)
                sys.stdout.write(decode(event.tokens))
            else:
                sys.stdout.write(decode([event.id]))
            sys.stdout.flush()
        say("")
        if counters.drafts:
            sys.stderr.write(f"{summary(counters)}\n")
    return 0


def _events(arguments: argparse.Namespace) -> Iterator[Token] | Iterator[Round]:
    """The run that the arguments ask for."""
    target = load_model(arguments.model)
    settings = {
        "max_new_tokens": arguments.max_new_tokens,
        "temperature": arguments.temperature,
        "top_k": arguments.top_k,
        "top_p": arguments.top_p,
        "seed": arguments.seed,
        "stop": arguments.stop,
        "kv_dtype": arguments.kv_dtype,
    }
    if arguments.k is None:
        return generate(target, arguments.prompt, **settings)
    return speculate(target, named(arguments.drafter), arguments.prompt, k=arguments.k, **settings)


def summary(counters: Counters) -> str:
    """One line with the counters under their names; a ratio of nothing is a dash."""

    def shown(ratio: float | None) -> str:
        return "-" if ratio is None else f"{ratio:.3f}"

    return (
        f"{counters.emitted} tokens in {counters.drafts} target calls: "
        f"{shown(counters.tokens_per_call)} tokens per target call, "
        f"acceptance rate (accepted / tested) {shown(counters.acceptance_rate)}, "
        f"accepted / proposed {shown(counters.accepted_per_proposed)}"
    )
