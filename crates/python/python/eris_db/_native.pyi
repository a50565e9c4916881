from collections.abc import Callable
from typing import Any, Final, final

from . import (
    Connection,
    Database,
    KeyIndex,
    Result,
    Rows,
)

__version__: Final[str]

@final
class Frame:
    def __new__(
        cls,
        kind: str,
        *,
        batches: object = None,
        stream: object = None,
        schema: object = None,
        rows: int | None = None,
        read: Callable[[list[int], list[tuple[str, str, Any]]], object] | None = None,
        takes_conditions: bool = False,
        renew: Callable[[], Frame] | None = None,
    ) -> Frame: ...
    @property
    def kind(self) -> str: ...

@final
class Job:
    def __new__(cls) -> Job: ...
    def cancel(self) -> bool: ...

def numpy_column(values: object, *, nan_is_null: bool = False, utc: bool = False) -> Any: ...
def forked() -> None: ...
def close_all() -> None: ...

__all__ = [
    "Connection",
    "Database",
    "Frame",
    "Job",
    "KeyIndex",
    "Result",
    "Rows",
    "__version__",
    "close_all",
    "forked",
    "numpy_column",
]
