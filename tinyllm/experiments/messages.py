"""Marks sentences that pages translate: the data of an experiment is text before it is shown.

`_` changes nothing here; a translator's tools find what it marks, and a page looks the sentence up
when it draws (deferred translation, as in Python's manual of gettext).
"""


def _(message: str) -> str:
    """The message itself."""
    return message
