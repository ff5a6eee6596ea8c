"""`python -m tinyllm generate`: text from a prompt, plainly or by speculation, and its counters."""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence

from threadpoolctl import threadpool_limits

from tinyllm import options
from tinyllm.attention import LARGEST_TREE
from tinyllm.cache import CACHE_DTYPES
from tinyllm.errors import SettingError, TokenError
from tinyllm.generation import Token, generate
from tinyllm.loading import load_model, shipped_models
from tinyllm.model import Transformer
from tinyllm.sampling import MAX_TEMPERATURE
from tinyllm.speculative.auto import AUTO
from tinyllm.speculative.counters import Counters
from tinyllm.speculative.decoding import Round
from tinyllm.speculative.drafters import ALL_DRAFTERS, Drafter, NGramDrafter, named
from tinyllm.speculative.round_times import calibrate
from tinyllm.speculative.run import MAX_K, speculate
from tinyllm.speculative.tree import MAX_WIDTH
from tinyllm.speculative.verification import RULES
from tinyllm.tokenizer import Tokenizer

_MODEL_HELP = "a model's name, or a folder or GGUF file with one; else target"
_DRAFTER_HELP = (
    f"with --k: {', '.join(ALL_DRAFTERS[1:])}, a model's name or folder, else the target's draft, "
    "or ngram for a language model"
)

_K_HELP = (
    "proposals per round, or auto: chosen as it goes, at costs measured first; "
    "without it plain decoding"
)

_WIDTH_HELP = (
    f"with --k: candidates for every place, checked as a tree (1 to {MAX_WIDTH}; default 1, none)"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `generate`."""
    add = parser.add_argument
    model, drafter = options.model, options.model_or(*ALL_DRAFTERS)
    heat = options.real(0, MAX_TEMPERATURE)
    add("--prompt", required=True, help="text to continue; for shipped models printable ASCII")
    add("--chat", action="store_true", help="the prompt is a message, for a model that answers")
    add("--model", type=model, default="target", help=_MODEL_HELP)
    add("--k", type=options.whole_or(AUTO, 1, MAX_K), help=_K_HELP)
    add("--drafter", type=drafter, help=_DRAFTER_HELP)
    add("--verify", choices=RULES, help="with --k: judge proposals by token or as a block")
    add("--width", type=options.whole(1, MAX_WIDTH), help=_WIDTH_HELP)
    add("--max-new-tokens", type=options.whole(1), default=96, help="tokens to make (default 96)")
    add("--temperature", type=heat, default=0.0, help="0 takes the most probable token")
    add("--top-k", type=options.whole(1), help="keep the k most probable tokens")
    add("--top-p", type=options.real(0, 1, above=True), default=1.0, help="keep this nucleus")
    add("--seed", type=options.whole(0), default=0, help="the same seed gives the same text")
    add("--stop", default="", help="characters (of a language model: tokens) that end the text")
    add("--kv-dtype", default="float32", choices=CACHE_DTYPES, help="how the cache is stored")


def run(arguments: argparse.Namespace, say: Callable[[str], object]) -> int:
    """Print prompt and text as they come on stdout, counters on stderr."""
    with threadpool_limits(1, "blas"):
        target = load_model(arguments.model)
        prompt = _prompt(arguments, target.tokenizer)
        events = _events(arguments, target, prompt)  # refuses what is wrong before it prints
        stream = target.tokenizer.stream()
        counters = Counters()
        if not arguments.chat:
            sys.stdout.write(arguments.prompt)
        for event in events:
            new: Sequence[int] = [event.id] if isinstance(event, Token) else event.tokens
            if isinstance(event, Round):
                counters = counters.add(event)
            # The token that ends an answer is no part of it.
            shown = [token for token in new if token not in target.tokenizer.stop_tokens]
            sys.stdout.write("".join(map(stream.feed, shown)))
            sys.stdout.flush()
        say(stream.close())
        if counters.drafts:
            sys.stderr.write(f"{summary(counters)}\n")
    return 0


def _prompt(arguments: argparse.Namespace, tokenizer: Tokenizer) -> str:
    """The text to continue; TokenError names the option that the model has no tokens for."""
    for option in ("prompt", "stop"):
        try:
            tokenizer.encode(getattr(arguments, option))
        except TokenError as error:
            raise TokenError(f"--{option}: {error}") from None
    if not arguments.chat:
        return str(arguments.prompt)
    if not tokenizer.can_chat:
        raise SettingError(f"--chat: {arguments.model} continues texts and answers no messages")
    return tokenizer.chat([{"role": "user", "content": arguments.prompt}])


def _events(
    arguments: argparse.Namespace, target: Transformer, prompt: str
) -> Iterator[Token] | Iterator[Round]:
    """The run that the arguments ask for. A language model ends where it says so itself."""
    tokenizer = target.tokenizer
    stops = tokenizer.stop_tokens | set(tokenizer.encode(arguments.stop) if arguments.stop else ())
    settings = {
        "max_new_tokens": arguments.max_new_tokens,
        "temperature": arguments.temperature,
        "top_k": arguments.top_k,
        "top_p": arguments.top_p,
        "seed": arguments.seed,
        "stop": stops,
        "kv_dtype": arguments.kv_dtype,
    }
    if arguments.k is None:
        for option in ("drafter", "verify", "width"):
            if getattr(arguments, option) is not None:
                raise SettingError(
                    f"--{option} needs --k, the proposals per round, from 1 to {MAX_K}, or {AUTO}"
                )
        return generate(target, prompt, **settings)
    usual = "draft" if arguments.model in shipped_models() else "ngram"
    drafter = named(arguments.drafter or usual, target=target.name)
    k, verify, width = arguments.k, arguments.verify or "token", arguments.width or 1
    if width > 1:
        _check_tree(arguments, drafter)
    costs = None
    if k == AUTO:
        same = ("temperature", "top_k", "top_p", "seed", "kv_dtype")
        costs = calibrate(target, drafter, prompt, **{name: settings[name] for name in same})
    how = {"k": k, "verify": verify, "width": width, "costs": costs}
    return speculate(target, drafter, prompt, **how, **settings)


def _check_tree(arguments: argparse.Namespace, drafter: Drafter | Transformer) -> None:
    """SettingError names the option that --width does not go with, and what would."""
    if arguments.k == AUTO:
        raise SettingError(f"--width needs a fixed --k, from 1 to {LARGEST_TREE - 1}, not {AUTO}")
    if arguments.verify == "block":
        raise SettingError("--width needs --verify token: a tree is judged token by token")
    if isinstance(drafter, NGramDrafter):
        others = ", ".join(name for name in ALL_DRAFTERS if name != "ngram")
        raise SettingError(
            f"--width needs a --drafter with more than one candidate for a place ({others}, or a "
            "model), unlike ngram"
        )


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
