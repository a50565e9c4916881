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
    ) -> Frame: ...
    @property
    def kind(self) -> str: ...

def numpy_column(values: object, *, nan_is_null: bool = False) -> Any: ...
def forked() -> None: ...
def close_all() -> None: ...

__all__ = [
    "Connection",
    "Database",
    "Frame",
    "KeyIndex",
    "Result",
    "Rows",
    "__version__",
    "close_all",
    "forked",
    "numpy_column",
]
