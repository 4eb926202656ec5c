"""A pipeline file that says what it was given and fails before there is a job."""

from __future__ import annotations

import sys

print(f"reading the model for {sys.argv[1:]}", file=sys.stderr)  # noqa: T201
raise KeyError("model 'digits-7' is not in the registry")
