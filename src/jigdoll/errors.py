"""The errors that reach a user: each says what, where and what to do."""


class JigdollError(Exception):
    """Something outside jigdoll's own code is wrong, and the message tells the user what to do."""


class FileFormatError(JigdollError):
    """A file is damaged, hostile, or of a kind that cannot be read."""


class RigError(JigdollError):
    """A skeleton, its weights or its pose do not fit together."""


class MissingExtra(JigdollError):
    """An optional library is needed and not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs an optional part: pip install 'jigdoll[{extra}]'")


def first_line(error: Exception) -> str:
    """The first line of what another library says, for a message of one line."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


class RepairWarning(UserWarning):
    """Input was repaired; the message names the repair."""


class PromptWarning(UserWarning):
    """Something in a prompt will not be obeyed."""
