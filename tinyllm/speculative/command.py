"""`python -m tinyllm generate`: text from a prompt, plainly or by speculation, and its counters."""

import argparse
import sys
from collections.abc import Callable, Iterator

from threadpoolctl import threadpool_limits

from tinyllm import options
from tinyllm.cache import CACHE_DTYPES
from tinyllm.errors import SettingError
from tinyllm.generation import Token, generate
from tinyllm.loading import load_model
from tinyllm.sampling import MAX_TEMPERATURE
from tinyllm.speculative.auto import AUTO
from tinyllm.speculative.counters import Counters
from tinyllm.speculative.decoding import Round
from tinyllm.speculative.drafters import ALL_DRAFTERS, named
from tinyllm.speculative.round_times import calibrate
from tinyllm.speculative.run import MAX_K, speculate
from tinyllm.speculative.verification import RULES
from tinyllm.tokenizer import CharTokenizer

_DRAFTER_HELP = (
    f"with --k: {', '.join(ALL_DRAFTERS[1:])}, a shipped model or a folder, else the target's draft"
)


_K_HELP = (
    "proposals per round, or auto: chosen as it goes, at costs measured first; "
    "without it plain decoding"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `generate`."""
    add = parser.add_argument
    text, model, drafter = options.symbols, options.model, options.model_or(*ALL_DRAFTERS)
    heat = options.real(0, MAX_TEMPERATURE)
    add("--prompt", type=text, required=True, help="text to continue: printable ASCII, newlines")
    add("--model", type=model, default="target", help="a shipped model or a folder, else target")
    add("--k", type=options.whole_or(AUTO, 1, MAX_K), help=_K_HELP)
    add("--drafter", type=drafter, help=_DRAFTER_HELP)
    add("--verify", choices=RULES, help="with --k: judge proposals by token or as a block")
    add("--max-new-tokens", type=options.whole(1), default=96, help="tokens to make (default 96)")
    add("--temperature", type=heat, default=0.0, help="0 takes the most probable token")
    add("--top-k", type=options.whole(1), help="keep the k most probable tokens")
    add("--top-p", type=options.real(0, 1, above=True), default=1.0, help="keep this nucleus")
    add("--seed", type=options.whole(0), default=0, help="the same seed gives the same text")
    add("--stop", type=text, default="", help="characters that end the text")
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
        for option in ("drafter", "verify"):
            if getattr(arguments, option) is not None:
                raise SettingError(
                    f"--{option} needs --k, the proposals per round, from 1 to {MAX_K}, or {AUTO}"
                )
        return generate(target, arguments.prompt, **settings)
    drafter = named(arguments.drafter or "draft", target=target.name)
    prompt, k = arguments.prompt, arguments.k
    costs = None
    if k == AUTO:
        same = ("temperature", "top_k", "top_p", "seed", "kv_dtype")
        costs = calibrate(target, drafter, prompt, **{name: settings[name] for name in same})
    verify = arguments.verify or "token"
    return speculate(target, drafter, prompt, k=k, verify=verify, costs=costs, **settings)


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
