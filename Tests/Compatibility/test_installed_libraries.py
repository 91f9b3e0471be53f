"""The libraries that `make install` compiles once, as the packages of others use them."""

import json
import os
import shutil
import subprocess

import pytest

from conftest import CONFIGURATION, ROOT, hearth

pytestmark = pytest.mark.skipif(os.uname().sysname == "Darwin",
                                reason="on macOS each package compiles the libraries")


def run(*command, cwd, seconds=540):
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=seconds,
                          check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """A folder in which hearth is installed with its libraries."""
    prefix = tmp_path_factory.mktemp("prefix")
    (prefix / "bin").mkdir()
    shutil.copy(hearth(), prefix / "bin" / "hearth")
    run("sh", "Sources/Tooling/Scripts/libraries.sh", CONFIGURATION, str(prefix / "lib" / "hearth"),
        cwd=ROOT)
    return prefix


@pytest.mark.timeout(600)
def test_a_new_package_compiles_only_itself_and_passes_its_tests(prefix, tmp_path):
    run(str(prefix / "bin" / "hearth"), "init", "my-backend", cwd=tmp_path)
    package = tmp_path / "my-backend"

    output = run("swift", "test", "--disable-sandbox", cwd=package)

    assert f'path: "{prefix}/lib/hearth"' in (package / "Package.swift").read_text()
    assert "Test run with" in output and "passed" in output, output
    modules = {path.stem for path in package.glob(".build/*/debug/Modules/*.swiftmodule")}
    assert {"Functions", "Models"} <= modules
    assert not modules & {"FirestoreClient", "FunctionsRuntime", "NIOCore"}

    # The functions also run in a suite.
    worker = package / ".build" / "debug" / "functions-worker"
    fired = run(hearth(), "exec", "--executable", str(worker), "--", "sh", "-c",
                f"{hearth()} fire welcome --document users/t --data '{{\"name\": \"Tina\"}}' "
                f"&& {hearth()} call greeting --as t", cwd=package, seconds=60)
    assert "welcome succeeded" in fired
    assert json.loads(fired[fired.index("{"):])["text"] == "Welcome, Tina!"


@pytest.mark.timeout(600)
def test_the_installed_package_needs_no_checkout(prefix):
    library = prefix / "lib" / "hearth"

    described = json.loads(run("swift", "package", "--disable-sandbox", "describe", "--type",
                               "json", cwd=library))

    assert {product["name"] for product in described["products"]} >= {
        "FirestoreClient", "FunctionsRuntime", "FunctionsTesting", "OutboundHTTP"}
    assert not described["dependencies"]
    for path in library.rglob("module.modulemap"):
        assert str(ROOT) not in path.read_text(encoding="utf-8"), path


@pytest.mark.timeout(600)
def test_doctor_tells_whether_the_libraries_fit_the_compiler(prefix, tmp_path):
    def finding():
        output = subprocess.run([prefix / "bin" / "hearth", "doctor"], cwd=tmp_path, text=True,
                                capture_output=True, timeout=60, check=False).stdout
        line, = [line for line in output.splitlines() if line.startswith("hearth libraries")]
        return line

    compiler = prefix / "lib" / "hearth" / "compiler"
    made_by = compiler.read_text(encoding="utf-8")
    assert " ok " in finding()
    try:
        compiler.write_text("Swift version 6.2.9 (swift-6.2.9-RELEASE)\n", encoding="utf-8")
        assert " FIX " in finding()
        assert "6.2.9" in finding() and "make install" in finding()
    finally:
        compiler.write_text(made_by, encoding="utf-8")
