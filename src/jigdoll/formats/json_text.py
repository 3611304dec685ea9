"""JSON as strict readers want it: no Infinity, no NaN."""

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np


def json_text(content: Any, *, indent: int | None = 2) -> str:
    """The content as JSON: numbers that are not finite become null, what JSON has no word for becomes text."""
    return json.dumps(_strict(content), indent=indent, default=str, allow_nan=False)


def _strict(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _strict(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return _strict(value.tolist())
    if isinstance(value, list | tuple):
        return [_strict(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
