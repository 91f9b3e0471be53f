"""`make install`: which builds it makes, and when what it installs can be used."""

import os
import shutil
import subprocess

import pytest
from conftest import ROOT

# Stands in for the compiler: its products print the configuration that they were built in.
SWIFT = """#!/bin/sh
[ "$1" = build ] || exit 0
mkdir -p ".build/$3"
for product in hearth generate-manual; do
  cat >".build/$3/$product" <<END
#!/bin/sh
case "\\$*" in *--output-directory*) touch "\\$4/hearth.1" ;; esac
echo $3
END
  chmod +x ".build/$3/$product"
done
installed=nothing
[ ! -x "$PREFIX/bin/hearth" ] || installed=$("$PREFIX/bin/hearth")
echo "$3 $5, installed: $installed" >>"$LOG"
"""
LIBRARIES = 'mkdir -p "$2" && echo "$1" >"$2/configuration"\n'


@pytest.fixture
def checkout(tmp_path):
    scripts = tmp_path / "Sources" / "Tooling" / "Scripts"
    scripts.mkdir(parents=True)
    shutil.copy(ROOT / "Sources" / "Tooling" / "Scripts" / "install.sh", scripts)
    (scripts / "libraries.sh").write_text(LIBRARIES, encoding="utf-8")
    swift = tmp_path / "tools" / "swift"
    swift.parent.mkdir()
    swift.write_text(SWIFT, encoding="utf-8")
    swift.chmod(0o755)
    return tmp_path


def install(checkout, configuration, *destination):
    """What is built in order, each with what was installed before it, and what is installed then."""
    log = checkout / "log"
    log.unlink(missing_ok=True)
    prefix = checkout / "prefix"
    done = subprocess.run(
        ["sh", "Sources/Tooling/Scripts/install.sh", "install", configuration, prefix,
         *destination], cwd=checkout, capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "PATH": f"{checkout}/tools:{os.environ['PATH']}", "LOG": str(log),
             "PREFIX": str(prefix)})
    assert done.returncode == 0, done.stderr
    root = "".join(destination) + str(prefix)
    with open(f"{root}/bin/hearth", encoding="utf-8") as program:
        return log.read_text(encoding="utf-8").splitlines(), program.read().split()[-1], done.stdout


def test_the_first_time_a_quick_build_is_installed_before_the_optimized_one(checkout):
    builds, installed, output = install(checkout, "auto")

    assert builds == [
        "debug hearth, installed: nothing", "debug generate-manual, installed: nothing",
        "release hearth, installed: debug", "release generate-manual, installed: debug"]
    assert installed == "release"
    assert "can be used now, in another terminal" in output
    libraries = checkout / "prefix/lib/hearth/configuration"
    if os.uname().sysname != "Darwin":
        assert libraries.read_text(encoding="utf-8") == "release\n"


def test_later_only_the_optimized_build_is_made(checkout):
    install(checkout, "auto")

    builds, installed, output = install(checkout, "auto")

    assert {line.split()[0] for line in builds} == {"release"}
    assert installed == "release"
    assert "another terminal" not in output


@pytest.mark.parametrize("configuration", ["debug", "release"])
def test_a_configuration_that_is_given_is_the_only_one(checkout, configuration):
    builds, installed, _ = install(checkout, configuration)

    assert {line.split()[0] for line in builds} == {configuration}
    assert installed == configuration


def test_a_package_for_other_machines_gets_the_optimized_build_and_no_checkout(checkout):
    builds, installed, _ = install(checkout, "auto", str(checkout / "package"))

    assert {line.split()[0] for line in builds} == {"release"}
    assert installed == "release"
    assert not list((checkout / "package").rglob("checkout"))
