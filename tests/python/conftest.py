"""What all tests have: a connection to a database of their own, and its size."""

import pytest

import eris_db


@pytest.fixture
def database():
    """A small database in memory with two workers on one node."""
    with eris_db.Database(memory="1GB", topology="1x2") as database:
        yield database


@pytest.fixture
def con(database):
    """A connection to it, without a bar."""
    connection = database.connect()
    connection.show_progress = False
    yield connection
    connection.close()
