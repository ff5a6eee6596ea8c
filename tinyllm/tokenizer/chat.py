"""Conversations as the text that an instruct model was taught to see, by its own template.

Templates come with models, from anywhere, so they run in Jinja's sandbox, which lets them change
nothing and reach nothing but what is given here.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NoReturn

from jinja2 import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from tinyllm.errors import TokenizerError
from tinyllm.tokenizer.protocol import Message


def render(template: str, messages: Sequence[Message], special: Mapping[str, str]) -> str:
    """The text up to where the next answer begins; TokenizerError for a template that fails.

    special: the texts of bos_token and eos_token, as templates name them.
    """
    # As transformers sets it up: what a template may use is fixed by that.
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.globals["raise_exception"] = _refuse
    environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    try:
        text: str = environment.from_string(template).render(
            messages=list(messages), add_generation_prompt=True, **special
        )
    except (TemplateError, TypeError, ValueError, LookupError, RecursionError) as error:
        raise TokenizerError(f"the model's chat template fails: {error}") from None
    return text


def _refuse(reason: object) -> NoReturn:
    raise TemplateError(str(reason))
