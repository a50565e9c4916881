"""What appears on a terminal and in a notebook: the bar of long statements, tables, the stop button."""

import fcntl
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import threading
import time

import nbclient
import nbformat
import pytest
from support import ENDLESS, program

# A statement of about two and a half seconds, whatever the machine: rows come from a generator that waits.
SLOW = """
import pyarrow
def connect():
    return eris_db.connect(memory="1GB", topology="1x2")
def batches(seconds=2.6):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.05)
        yield pyarrow.record_batch({"k": [1]})
def slow(con, seconds=2.6):
    frame = pyarrow.RecordBatchReader.from_batches(pyarrow.schema([("k", pyarrow.int64())]), batches(seconds))
    return con.execute("SELECT count(*) > 0 FROM frame").fetchone()
con = connect()
"""
PROGRAM = program(SLOW + "print(slow(con))\nprint('done')")


def on_a_terminal(text, **environment):
    """What a program writes on a pseudo-terminal."""
    terminal, child = pty.openpty()
    settings = {**os.environ, "TERM": "xterm", "COLUMNS": "120", **environment}
    process = subprocess.Popen([sys.executable, "-c", text], stdin=child, stdout=child, stderr=child, env=settings)
    os.close(child)
    written = b""
    while True:
        ready, _, _ = select.select([terminal], [], [], 30)
        try:
            piece = os.read(terminal, 65536) if ready else b""
        except OSError:  # The other side has closed.
            piece = b""
        if not piece:
            break
        written += piece
    os.close(terminal)
    assert process.wait() == 0, written.decode()
    return written.decode()


def test_the_bar_on_a_terminal():
    written = on_a_terminal(PROGRAM)
    assert "memory" in written and "\r\x1b[K" in written
    # It is taken away before anything else is written.
    assert written.rstrip().endswith("(True,)\r\ndone")
    assert "\r\x1b[K(True,)" in written


@pytest.mark.parametrize("how", ["dumb", "off"])
def test_no_bar(how):
    text = PROGRAM.replace("con = connect()", "con = connect()\ncon.show_progress = False") if how == "off" else PROGRAM
    assert on_a_terminal(text, TERM="dumb" if how == "dumb" else "xterm") == "(True,)\r\ndone\r\n"


def test_no_bar_in_a_pipe():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout == "(True,)\ndone\n" and done.stderr == ""


def test_no_bar_of_a_short_statement():
    assert on_a_terminal(program(SLOW + "print(slow(con, 0.3))")) == "(True,)\r\n"


def test_no_bar_of_a_result_that_is_read_late():
    text = SLOW + "result = con.execute('SELECT 1')\ntime.sleep(2.2)\nprint(result.fetchall())"
    assert on_a_terminal(program(text)) == "[(1,)]\r\n"


def test_ctrl_c_on_a_terminal():
    """Typed, as a person does it: the terminal makes the signal; the bar is gone, and the program goes on."""
    text = program(
        SLOW
        + """
print("begun", flush=True)
try:
    con.execute(ENDLESS).fetchall()
except KeyboardInterrupt:
    print("heard", con.execute("SELECT 41 + 1").fetchone())
"""
    )
    terminal, child = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", text],
        stdin=child,
        stdout=child,
        stderr=child,
        start_new_session=True,
        preexec_fn=lambda: own(child),
    )
    os.close(child)
    written = b""
    while b"memory" not in written:
        written += os.read(terminal, 65536)
    os.write(terminal, b"\x03")
    while b"heard (42,)" not in written:
        written += os.read(terminal, 65536)
    assert process.wait() == 0
    os.close(terminal)
    assert "\r\x1b[K" in written.decode().split("memory")[-1]


def own(terminal):
    """Makes the terminal the one of this process's session."""
    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)


# ---- notebooks -------------------------------------------------------------------------------------------------------

START = "import sys, time\nimport eris_db\n"


class Notebook:
    """A kernel that executes cells one after the other."""

    def __enter__(self):
        self.book = nbformat.v4.new_notebook()
        self.client = nbclient.NotebookClient(self.book, timeout=50, kernel_name="python3", allow_errors=True)
        self.context = self.client.setup_kernel()
        self.context.__enter__()
        return self

    def __exit__(self, *raised):
        self.context.__exit__(*raised)

    def cell(self, text):
        """Executes it; its outputs."""
        self.book.cells.append(nbformat.v4.new_code_cell(text))
        return self.client.execute_cell(self.book.cells[-1], len(self.book.cells) - 1).outputs


@pytest.fixture(scope="module")
def notebook():
    with Notebook() as notebook:
        notebook.cell(START + SLOW)
        yield notebook


def shown(outputs):
    return "\n".join(str(output.get("text") or output.get("data") or output.get("ename")) for output in outputs)


def test_tables_in_a_notebook(notebook):
    (output,) = notebook.cell("con.execute(\"SELECT 1 AS a, '<b>' AS s\")")
    assert "<td" in output["data"]["text/html"] and "&lt;b&gt;" in output["data"]["text/html"]
    assert "│ a │ s" in output["data"]["text/plain"]
    (output,) = notebook.cell('con.execute("CREATE TABLE t (k BIGINT)")')
    assert output["data"] == {"text/plain": "CREATE TABLE"}


def test_the_bar_in_a_notebook_with_widgets(notebook):
    before = notebook.cell(
        "import ipywidgets\nlen(ipywidgets.Widget.widgets if hasattr(ipywidgets.Widget, 'widgets') else [])"
    )
    outputs = notebook.cell("slow(con)")
    assert "(True,)" in shown(outputs)
    # Nothing of it stays: neither in the cell nor in the kernel.
    assert not any("error" == output["output_type"] for output in [*before, *outputs])


def test_the_bar_in_a_notebook_without_widgets(notebook):
    notebook.cell("sys.modules['ipywidgets'] = None")
    outputs = notebook.cell("slow(con)")
    notebook.cell("del sys.modules['ipywidgets']")
    assert "(True,)" in shown(outputs)
    # The last drawing of the bar is an empty line.
    displayed = [output for output in outputs if output["output_type"] == "display_data"]
    assert len(displayed) == 1 and displayed[0]["data"]["text/plain"] == ""


def test_no_bar_of_a_short_statement_in_a_notebook(notebook):
    (output,) = notebook.cell("slow(con, 0.2)")
    assert output["output_type"] == "execute_result"


@pytest.mark.parametrize("number", range(3))
def test_the_stop_button(notebook, number):
    """The kernel is interrupted while the cell runs: KeyboardInterrupt, and the next cell works."""

    def press():
        time.sleep(1 + number / 3)
        os.kill(pid, signal.SIGINT)

    pid = notebook.client.km.provisioner.process.pid
    thread = threading.Thread(target=press)
    thread.start()
    outputs = notebook.cell(f"con.execute({ENDLESS!r}).fetchall()")
    thread.join()
    assert outputs[-1]["ename"] == "KeyboardInterrupt", outputs
    assert "(42,)" in shown(notebook.cell('con.execute("SELECT 41 + 1").fetchone()'))


def test_await_in_a_notebook(notebook):
    assert "(2,)" in shown(notebook.cell('(await con.aexecute("SELECT 1 + 1")).fetchone()'))
