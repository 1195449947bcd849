"""The exceptions of askwise: one root, and one child for what the caller can mend."""


class AskwiseError(Exception):
    """Root of every error that askwise raises on purpose."""


class InvalidInput(AskwiseError, ValueError):  # noqa: N818 - a name of the public contract
    """A value given by the caller cannot be used; the message says whose, why, and what to do."""
