"""From whatever happens in a command to an exit code and one line on stderr: never a traceback.

Exit codes: 0 done; 1 our fault; 2 bad input; 3 stopped; 130 interrupted. FABSIM_DEBUG=1 shows the traceback of 1.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence

import click

from fabsim.errors import InputError, Stopped


def guarded(command: click.Command, arguments: Sequence[str]) -> int:
    """Run a command; the exit code."""
    warnings.showwarning = _warn
    try:
        code = command.main(list(arguments), "fabsim", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except InputError as error:
        return _say("\n".join(error.sentences), 2)
    except click.ClickException as error:
        error.show()
        return 2
    except Stopped as error:
        return _say(f"stopped: {error}", 3)
    except (click.Abort, KeyboardInterrupt):
        return _say("interrupted", 130)
    except BrokenPipeError:
        return leave_quietly()
    except MemoryError:
        return _say("stopped: out of memory; fabsim check says how much a scenario needs", 3)
    except OSError as error:
        return _say(f"stopped: {error.filename or 'output'}: {error.strerror or error}", 3)
    except Exception as error:
        return _our_fault(error)


def leave_quietly() -> int:
    """The reader of our output has gone (as `head` does): nothing more to say, not even at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _say(text: str, code: int) -> int:
    click.echo(text, err=True)
    return code


def _warn(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    """A warning as one line."""
    click.echo(f"warning: {message}", err=True)


def _our_fault(error: Exception) -> int:
    """What nobody foresaw: one line, unless a traceback is asked for."""
    if os.environ.get("FABSIM_DEBUG"):
        raise error
    first = (str(error).splitlines() or [""])[0]
    if "RESOURCE_EXHAUSTED" in first:
        return _say(f"stopped: out of memory on the device ({first}); fabsim check says how much a scenario needs", 3)
    text = f"internal error, our fault: {type(error).__name__}: {first}; FABSIM_DEBUG=1 shows where"
    return _say(text, 1)
