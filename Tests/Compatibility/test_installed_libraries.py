"""The libraries that `make install` compiles once, as the packages of others use them."""

import json
import os
import subprocess

import pytest

from conftest import CONFIGURATION, ROOT

pytestmark = pytest.mark.skipif(os.uname().sysname == "Darwin",
                                reason="on macOS each package compiles the libraries")


def run(*command, cwd, seconds=540):
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=seconds,
                          check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """A folder in which `make install` has installed hearth with its libraries."""
    prefix = tmp_path_factory.mktemp("prefix")
    run("make", "install", f"CONFIGURATION={CONFIGURATION}", f"PREFIX={prefix}", cwd=ROOT)
    return prefix


@pytest.mark.timeout(900)
def test_a_new_package_compiles_only_itself_passes_its_tests_and_runs(prefix, tmp_path):
    installed = str(prefix / "bin" / "hearth")
    run(installed, "init", "my-backend", cwd=tmp_path)
    package = tmp_path / "my-backend"

    (package / "Sources" / "Functions" / "Presence.swift").write_text(
        "import DatabaseClient\n\nlet presence: DatabaseClient.Database? = nil\n")

    output = run("swift", "test", "--disable-sandbox", cwd=package)

    assert f'path: "{prefix}/lib/hearth"' in (package / "Package.swift").read_text()
    assert "Test run with" in output and "passed" in output, output
    modules = {path.stem for path in package.glob(".build/*/debug/Modules/*.swiftmodule")}
    assert {"Functions", "Models"} <= modules
    assert not modules & {"FirestoreClient", "FunctionsRuntime", "NIOCore"}

    # The suite builds the functions as they are deployed to production, in release.
    suite = subprocess.Popen(
        [installed, "start", "--json", "--ephemeral", "--free-ports", "--configuration", "release"],
        cwd=package, stdout=subprocess.PIPE, text=True)
    try:
        assert json.loads(suite.stdout.readline())["project"] == "demo-my-backend"
        fired = run(installed, "fire", "welcome", "--document", "users/t", "--data",
                    '{"name": "Tina"}', cwd=package, seconds=60)
        called = run(installed, "call", "greeting", "--as", "t", cwd=package, seconds=60)
    finally:
        suite.terminate()
    assert suite.wait(timeout=10) == 0
    assert "welcome succeeded" in fired
    assert json.loads(called) == {"text": "Welcome, Tina!"}
    assert list(package.glob(".build/*/release/functions-worker"))


@pytest.mark.timeout(600)
def test_the_installed_package_needs_no_checkout(prefix):
    library = prefix / "lib" / "hearth"

    described = json.loads(run("swift", "package", "--disable-sandbox", "describe", "--type",
                               "json", cwd=library))

    assert {product["name"] for product in described["products"]} >= {
        "DatabaseClient", "FirestoreClient", "FunctionsRuntime", "FunctionsTesting",
        "OutboundHTTP"}
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
