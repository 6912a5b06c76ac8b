"""The firmware's own pure modules, for the host: one owner for each fact (names, settings, pins).

They run unchanged on CPython but for `micropython.const`, which is supplied here where nothing else does.
"""

from __future__ import annotations

import sys
import types
from importlib import import_module
from typing import Any

from shakerctl import image


def _const(value: Any) -> Any:
    return value


if "micropython" not in sys.modules:
    _module = types.ModuleType("micropython")
    _module.__dict__["const"] = _const
    sys.modules["micropython"] = _module
if str(image.ROOT / "firmware") not in sys.path:
    sys.path.append(str(image.ROOT / "firmware"))

names: Any = import_module("shaker.names")
settings: Any = import_module("shaker.settings")
