"""The exceptions of PEP 249."""

from __future__ import annotations


class Warning(Exception):
    """Something that may be a mistake."""


class Error(Exception):
    """What a statement failed with.

    sqlstate: five characters that tell which kind of failure it was, as PostgreSQL has them.
    position: line and column in the text, from 1. hint: what to do about it. Each is None where it is not known.
    """

    sqlstate: str | None = None
    position: tuple[int, int] | None = None
    hint: str | None = None


class InterfaceError(Error):
    """The module is used in a way that it cannot be: a closed connection, a forked process."""


class DatabaseError(Error):
    """Any failure of the database."""


class DataError(DatabaseError):
    """A value is out of range, or none of its type."""


class OperationalError(DatabaseError):
    """The database cannot do it now: no memory, a full disk, a timeout, a cancelled statement."""


class IntegrityError(DatabaseError):
    """A row breaks a rule of its table."""


class InternalError(DatabaseError):
    """A bug in Eris. Only this statement is affected."""


class ProgrammingError(DatabaseError):
    """The statement is wrong: its syntax, a name, a type, the number of its values."""


class NotSupportedError(DatabaseError):
    """SQL that Eris does not do."""


# People see the names that they import.
for _known in list(globals().values()):
    if isinstance(_known, type) and issubclass(_known, Exception):
        _known.__module__ = "eris_db"
