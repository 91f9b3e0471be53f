"""The benchmarks beside a neighbour that hangs."""

import os
import subprocess
import sys

import conftest
import pytest

BENCHMARKS = str(conftest.ROOT / ".build" / conftest.CONFIGURATION / "Benchmarks")
# It says that it is ready, takes connections, and never answers.
HANGING = """#!{python}
import socket, sys
[address] = [word for word in sys.argv if word.startswith("--host-port=")]
host, port = address.split("=")[1].split(":")
server = socket.create_server((host, int(port)))
print("Dev App Server is now running.", flush=True)
connections = []
while True:
    connections.append(server.accept())
"""


@pytest.mark.nightly
def test_a_neighbour_that_hangs_is_a_line_and_the_run_goes_on(tmp_path):
    for name, text in (("gcloud", HANGING.format(python=sys.executable)), ("java", "#!/bin/sh\n")):
        (tmp_path / name).write_text(text, encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    run = subprocess.run(
        [BENCHMARKS, "--only", "get,callable", "--seconds", "0.1",
         "--python-environment", str(tmp_path)],
        env={**os.environ, "PATH": f"{tmp_path}:/usr/bin:/bin"}, cwd=conftest.ROOT,
        capture_output=True, text=True, timeout=110, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    lines = run.stdout.splitlines()
    [missing] = [number for number, line in enumerate(lines) if " missing " in line]
    assert "official emulator" in lines[missing]
    assert "did not answer in time" in lines[missing]
    assert any(line.startswith("gets/s, 1 client  ") for line in lines[:missing])
    # What comes after the neighbour is measured all the same, and compared at the end.
    assert any(line.startswith("callables/s, 64 clients  ") for line in lines[missing:])
    assert lines[-1].startswith("Measured in ")
