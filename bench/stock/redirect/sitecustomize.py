"""Point Google's own clients at the front: the name of the host is replaced, nothing else.

Only the comparison puts this folder on PYTHONPATH. No code of Airflow or of a provider is touched.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import os
import re
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

HTTP = os.environ.get("LOSSES_HTTP", "")
GRPC = os.environ.get("LOSSES_GRPC", "")
GOOGLE = re.compile(r"^https://[a-z0-9-]*\.?googleapis\.com(:443)?")


def httplib2(module: Any) -> None:
    """Send what the discovery client asks of Google to the front."""
    stock = module.Http.request

    def request(self: Any, uri: str, *said: Any, **named: Any) -> Any:
        return stock(self, GOOGLE.sub(HTTP, uri), *said, **named)

    module.Http.request = request


def grpc_channels(module: Any, *, is_async: bool) -> None:
    """Open each channel to the front, in plain text."""

    def create_channel(_target: str, *_said: Any, **named: Any) -> Any:
        import grpc
        import grpc.aio

        side = grpc.aio if is_async else grpc
        return side.insecure_channel(GRPC, options=named.get("options"), compression=named.get("compression"))

    module.create_channel = create_channel


HOOKS: dict[str, Callable[[ModuleType], None]] = {
    "httplib2": httplib2,
    "google.api_core.grpc_helpers": lambda module: grpc_channels(module, is_async=False),
    "google.api_core.grpc_helpers_async": lambda module: grpc_channels(module, is_async=True),
}


class Redirecting(importlib.abc.MetaPathFinder):
    """Changes each of these modules once, right after it was loaded."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the usual spec with a loader that also redirects."""
        del path, target
        hook = HOOKS.pop(fullname, None)
        spec = importlib.util.find_spec(fullname) if hook else None
        if hook is None or spec is None or spec.loader is None:
            return None
        load = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            load(module)
            hook(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


if HTTP:
    sys.meta_path.insert(0, Redirecting())
