"""Statements for asyncio: a thread waits, the event loop goes on.

task    await ── cancelled ── job.cancel() until the thread has ended ── CancelledError
thread  its turn on the connection ── runs, unless cancelled before ── ended
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from typing import TYPE_CHECKING, Any

from . import _errors

if TYPE_CHECKING:
    from . import Connection, Result

_turns: weakref.WeakKeyDictionary[Connection, threading.Lock] = weakref.WeakKeyDictionary()
"""Whose turn it is on a connection: a task that only waits must not interrupt another one's statement."""

_AGAIN = 0.05
"""Seconds after which an interruption is repeated: it may have come before the statement."""


class _Job:
    """A statement that a thread runs."""

    def __init__(self, connection: Connection, *arguments: Any) -> None:
        self._connection = connection
        self._arguments = arguments
        self._turn = _turns.setdefault(connection, threading.Lock())
        self._guard = threading.Lock()
        self._is_running = self._is_cancelled = False

    def run(self) -> Result:
        with self._turn:
            with self._guard:
                if self._is_cancelled:
                    # Nobody sees it: who awaits gets the CancelledError.
                    raise _errors.OperationalError("the task was cancelled before its statement began")
                self._is_running = True
            try:
                return self._connection._execute_for(*self._arguments)
            finally:
                with self._guard:
                    self._is_running = False

    def cancel(self) -> None:
        with self._guard:
            self._is_cancelled = True
            if self._is_running:
                self._connection.interrupt()


async def aexecute(connection: Connection, caller: Any, statement: str, parameters: Any) -> Result:
    """Executes a statement. If the task is cancelled, the statement is, and is waited for."""
    job = _Job(connection, caller, statement, parameters)
    running = asyncio.get_running_loop().run_in_executor(None, job.run)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        while not running.done():
            job.cancel()
            try:
                await asyncio.wait([running], timeout=_AGAIN)
            except asyncio.CancelledError:
                # Cancelled again; it ends soon.
                continue
        # Its own error is not of interest; that it has ended is.
        if not running.cancelled():
            running.exception()
        raise
