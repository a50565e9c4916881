"""Statements for asyncio: a thread waits, the event loop goes on.

task    its turn on the connection ── a thread of the loop ── awaits ── cancelled: stops its statement, and no other
thread                                its turn beside other threads ── runs ── computes the first rows ── ended
"""

from __future__ import annotations

import asyncio
import weakref
from typing import TYPE_CHECKING, Any

from . import _native

if TYPE_CHECKING:
    from . import Connection, Result

_Turns = weakref.WeakKeyDictionary["Connection", asyncio.Lock]

_turns: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Turns] = weakref.WeakKeyDictionary()
"""Whose turn it is on a connection, among the tasks of a loop: those that wait need no thread for it."""


def _run(job: _native.Job, connection: Connection, arguments: tuple[Any, str, Any]) -> Result:
    """Executes a statement until it is done, or has its first rows. This is what a thread does."""
    result = connection._execute_for(*arguments, job)
    if result.columns:
        # Nothing is left that takes long before there is a row.
        result._peek(0)
    return result


def _look(running: asyncio.Future[Result]) -> None:
    """Looks at how it ended. Nobody else does if it never began, and asyncio would complain."""
    if not running.cancelled():
        running.exception()


async def aexecute(connection: Connection, caller: Any, statement: str, parameters: Any) -> Result:
    """Executes a statement. If the task is cancelled, the statement is, and is waited for once it has begun."""
    loop = asyncio.get_running_loop()
    turns = _turns.setdefault(loop, weakref.WeakKeyDictionary())
    async with turns.setdefault(connection, asyncio.Lock()):
        job = _native.Job()
        running = loop.run_in_executor(None, _run, job, connection, (caller, statement, parameters))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError as cancelled:
            running.add_done_callback(_look)
            while not running.done() and not job.cancel():
                try:
                    await asyncio.wait([running])
                except asyncio.CancelledError:
                    # Cancelled again; it ends soon.
                    continue
            has_ended = running.done() and not running.cancelled() and running.exception() is None
            if has_ended and not running.result().columns:
                cancelled.add_note("it was too late: the statement took effect")
            raise
