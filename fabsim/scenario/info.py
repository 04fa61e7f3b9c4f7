"""The text of `fabsim info`: versions, devices, and what is known to be wrong with the installed JAX."""

from __future__ import annotations

import os
import platform
from collections import Counter
from importlib.metadata import PackageNotFoundError, version

SLOW_SCATTER = ((0, 10, 2), (0, 11, 1))
"""From the first to before the second jaxlib, a contended scatter-add on a GPU is hundreds of times slower."""
REMEDY = "XLA_FLAGS=--xla_backend_extra_options=-nvptx-allow-ftz-atomics"


def report() -> str:
    """Versions and devices, one a line."""
    import jax

    lines = [f"{name:<10} {_version(name)}" for name in ("fabsim", "jax", "jaxlib", "numpy", "optax")]
    lines.append(f"{'python':<10} {platform.python_version()} on {platform.system()} {platform.machine()}")
    devices = jax.devices()
    kinds = Counter(f"{device.platform}: {device.device_kind}" for device in devices)
    lines += [f"{'devices':<10} {count} x {kind}" for kind, count in kinds.items()]
    if any(device.platform == "gpu" for device in devices) and has_slow_scatter(_version("jaxlib")):
        text = f"jaxlib {_version('jaxlib')} adds slowly under contention on a GPU"
        done = REMEDY.rsplit("=", 1)[1] in os.environ.get("XLA_FLAGS", "")
        lines.append(f"{'note':<10} {text}; {'the workaround is set' if done else f'set {REMEDY}'}")
    return "\n".join(lines)


def has_slow_scatter(jaxlib: str) -> bool:
    """Whether this jaxlib has the slow scatter-add."""
    numbers = tuple(int(part) for part in jaxlib.split(".")[:3] if part.isdigit())
    return SLOW_SCATTER[0] <= numbers < SLOW_SCATTER[1]


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
