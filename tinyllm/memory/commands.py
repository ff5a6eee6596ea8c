"""The command that starts a server as chosen, each flag with the reason for it.

Text for a shell: a model's name that is not plain is quoted. Whether the server would start is
assessed elsewhere; the refusals stand above the command as comments.
"""

import shlex
from dataclasses import dataclass

from tinyllm.memory.assessment import Assessment
from tinyllm.memory.choice import LLAMACPP, OWN, SGLANG, VLLM, Choice

_UTILISATION = 0.92  # vLLM 0.32's default
_SHORT = {"float32": "f32", "float16": "f16", "bfloat16": "bf16"}  # llama.cpp's names


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag with its value, and why it is there."""

    text: str
    why: str


@dataclass(frozen=True, slots=True)
class Command:
    """A program with its flags, and what the server would refuse."""

    program: str
    flags: tuple[Flag, ...]
    warnings: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """Lines for a shell: warnings and reasons as comments, then the command."""
        comments = [f"# WARNING: {warning}" for warning in self.warnings]
        comments += [f"# {flag.text.split()[0]}: {flag.why}" for flag in self.flags]
        lines = " \\\n  ".join([self.program, *(flag.text for flag in self.flags)])
        return "\n".join([*comments, lines])


def command(assessment: Assessment) -> Command:
    """The command of the chosen engine."""
    choice, here = assessment.choice, assessment
    model = "./model" if choice.model == OWN else choice.model
    warnings = list(here.refusals)
    fits = here.fits
    if here.unknown:
        warnings.append(f"not sized: {here.unknown}")
    elif fits is not None and choice.requests > fits and not here.refusals:
        warnings.append(
            f"{choice.requests:,} requests of {choice.context:,} tokens do not fit at once, "
            f"{fits:,} do: the others wait or are computed again"
        )
    longest = here.subject.longest
    if longest is not None and choice.context > longest:
        warnings.append(f"the model was made for {longest:,} tokens, not {choice.context:,}")
    flags = {VLLM: _vllm, LLAMACPP: _llamacpp, SGLANG: _sglang}[choice.engine]
    programs = {
        VLLM: f"vllm serve {shlex.quote(model)}",
        LLAMACPP: "llama-server -m model.gguf",
        SGLANG: f"python -m sglang.launch_server --model-path {shlex.quote(model)}",
    }
    return Command(programs[choice.engine], tuple(flags(here, choice)), tuple(warnings))


def _vllm(here: Assessment, choice: Choice) -> list[Flag]:
    flags = [
        Flag(f"--max-model-len {choice.context}", "the longest request, prompt and output"),
        Flag(f"--max-num-seqs {here.requests}", "requests at once, of each replica"),
    ]
    if choice.key_type != "bfloat16":
        flags.append(Flag(f"--kv-cache-dtype {choice.key_type}", "how the cache stores a number"))
    batched = choice.batched or here.room.device.batched_tokens
    why = "tokens of one step; windowed layers keep room for those in flight"
    flags.append(Flag(f"--max-num-batched-tokens {batched}", why))
    if choice.pool_gib:
        size = here.room.pool_low or 0
        flags.append(Flag(f"--kv-cache-memory-bytes {size}", "the pool of each GPU, as entered"))
    elif choice.utilisation != _UTILISATION:
        why = "share of each GPU for weights, buffers and cache together"
        flags.append(Flag(f"--gpu-memory-utilization {choice.utilisation:g}", why))
    flags += _parallel(choice, ("--tensor-parallel-size", "--pipeline-parallel-size"))
    if choice.dp > 1:
        flags.append(Flag(f"--data-parallel-size {choice.dp}", "replicas, each with a cache"))
    if not choice.async_scheduling:
        flags.append(Flag("--no-async-scheduling", "one batch in flight instead of two"))
    if not choice.prefix_caching:
        flags.append(Flag("--no-enable-prefix-caching", "no blocks are kept for later requests"))
    return flags


def _parallel(choice: Choice, names: tuple[str, str]) -> list[Flag]:
    whys = "GPUs that divide the heads of each layer", "GPUs that divide the layers"
    degrees = zip(names, (choice.tp, choice.pp), whys, strict=True)
    return [Flag(f"{name} {degree}", why) for name, degree, why in degrees if degree > 1]


def _llamacpp(here: Assessment, choice: Choice) -> list[Flag]:
    slots = here.requests
    flags = [
        Flag(f"-c {choice.context * slots}", f"cells of all slots: {slots} × {choice.context:,}"),
        Flag(f"-np {slots}", "slots, that is requests at once"),
        Flag("-ngl 999", "all layers on the GPU, and their cache with them"),
    ]
    if choice.kv_unified:
        flags.append(Flag("-kvu", "slots share one cache, so one may be longer than the others"))
    keys, values = choice.key_type, choice.value_type
    if keys != "float16":
        flags.append(Flag(f"-ctk {_SHORT.get(keys, keys)}", "how keys are stored"))
    if values != "float16":
        flags.append(Flag(f"-ctv {_SHORT.get(values, values)}", "how values are stored"))
    if values not in ("float16", "bfloat16", "float32"):
        flags.append(Flag("-fa on", "quantised values need flash attention"))
    if here.room.gpus > 1:
        flags.append(Flag("-sm layer", f"layers are divided among {here.room.gpus} GPUs"))
    return flags


def _sglang(here: Assessment, choice: Choice) -> list[Flag]:
    flags = [
        Flag(f"--context-length {choice.context}", "the longest request, prompt and output"),
        Flag(f"--max-running-requests {here.requests}", "requests at once, of each replica"),
    ]
    if choice.key_type != "bfloat16":
        flags.append(Flag(f"--kv-cache-dtype {choice.key_type}", "how the cache stores a number"))
    room = here.room
    if room.pool_low is not None and room.weight_bytes is not None:
        share = min(0.99, (room.weight_bytes + room.pool_low) / room.memory_bytes)
        why = "share of each GPU for weights and pools; the rest is for buffers"
        flags.append(Flag(f"--mem-fraction-static {share:.2f}", why))
    flags += _parallel(choice, ("--tp-size", "--pp-size"))
    if choice.dp > 1:
        flags.append(Flag(f"--dp-size {choice.dp}", "replicas, each with a cache"))
    return flags
