"""The Dockerfile, without an engine: its instructions are read and its build is run in a folder.

By default the binary is the one that is built already, and only `swift` is stood in for. With
HEARTH_IMAGE=1 the real `swift build` of the Dockerfile runs, which takes minutes.
"""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time

import pytest
import requests
from conftest import CONFIGURATION, ROOT, free_port

TEMPLATES = ROOT / "Sources" / "Server" / "HearthCLI" / "Templates"
PRODUCT = "SampleFunctions"
IS_REAL = os.environ.get("HEARTH_IMAGE") == "1"


def stages():
    """The instructions of each stage: (name, argument), in order."""
    text = (TEMPLATES / "Dockerfile").read_text()
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    instructions = re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines()
    result = []
    for instruction in instructions:
        name, argument = instruction.split(" ", 1)
        if name == "FROM":
            result.append([])
        result[-1].append((name, argument))
    return result


def arguments(stage, name):
    return [argument for instruction, argument in stage if instruction == name]


def installed(stage):
    """The packages that a stage installs with apt."""
    [words] = re.findall(r"apt-get install (.*?)&&", " ".join(arguments(stage, "RUN")))
    return [word for word in words.split() if not word.startswith("-")]


def closure(packages):
    """The packages and all that they depend on, by apt's own account."""
    listing = subprocess.run(
        ["apt-cache", "depends", "--recurse", "--no-suggests", "--no-recommends",
         "--no-conflicts", "--no-breaks", "--no-replaces", "--no-enhances", *packages],
        capture_output=True, text=True, check=True).stdout
    return {line.split(":")[0] for line in listing.splitlines() if re.match(r"\w", line)}


@pytest.fixture(scope="module")
def binary():
    """What the build stage leaves, in a folder that everybody can read."""
    folder = pathlib.Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    context = ROOT if IS_REAL else folder / "source"
    context.mkdir(exist_ok=True)
    path = os.environ["PATH"]
    if not IS_REAL:
        swift = folder / "bin" / "swift"
        swift.parent.mkdir()
        swift.write_text(
            "#!/bin/sh\n"
            f'case "$*" in *--show-bin-path) echo {ROOT}/.build/{CONFIGURATION} ;; esac\n')
        swift.chmod(0o755)
        path = f"{swift.parent}:{path}"
    environment = {**os.environ, "PATH": path}
    build = stages()[0]
    for argument in arguments(build, "ARG"):
        name, value = argument.split("=", 1)
        environment[name] = value.strip('"')
    environment["PRODUCT"] = PRODUCT
    for command in arguments(build, "RUN"):
        if "apt-get" not in command:
            subprocess.run(["/bin/sh", "-c", command], cwd=context, env=environment, check=True)
    [copied] = arguments(stages()[1], "COPY")
    source = copied.split()[1].removeprefix(arguments(build, "WORKDIR")[0] + "/")
    result = folder / "functions"
    shutil.copy2(context / source, result)
    shutil.rmtree((context / source).parent)
    yield result
    shutil.rmtree(folder)


def test_the_image_runs_one_binary_as_nobody_in_particular():
    build, image = stages()

    assert [name for name, _ in build if name in ("COPY", "ADD")] == ["COPY"]
    assert arguments(image, "FROM") == ["debian:bookworm-slim"]
    assert arguments(image, "USER")[-1] not in ("0", "root")
    assert arguments(image, "ENV") == ["PORT=8080 HOST=0.0.0.0"]
    assert arguments(image, "EXPOSE") == ["8080"]
    destination = arguments(image, "COPY")[0].split()[-1]
    assert arguments(image, "ENTRYPOINT") == [f'["{destination}"]']


def test_secrets_stay_out_of_the_build():
    ignored = (TEMPLATES / "Dockerfile.dockerignore").read_text().split()

    assert {".env", ".env.*", ".secret.local", ".hearth", ".build"} <= set(ignored)


@pytest.mark.skipif(not shutil.which("apt-cache"), reason="needs Debian's package lists")
def test_every_shared_library_is_in_the_image(binary):
    # apt is in every image of Debian, and so is what it depends on.
    there = closure([*installed(stages()[1]), "apt"])
    listing = subprocess.run(["ldd", binary], capture_output=True, text=True, check=True).stdout
    files = re.findall(r"=> (/\S+)", listing)
    swift = [file for file in files if "/swift/" in file]

    assert files
    assert not (IS_REAL and swift), "the Swift libraries are not linked statically"
    for file in set(files) - set(swift):
        # By the name alone: packages register below /lib what is found below /usr/lib.
        owners = subprocess.run(
            ["dpkg", "-S", f"*/{pathlib.Path(os.path.realpath(file)).name}"],
            capture_output=True, text=True, check=True).stdout.splitlines()
        assert {owner.split(":")[0] for owner in owners} & there, file


def test_the_binary_serves_on_port_as_the_images_user(binary):
    port = free_port()
    user = int(arguments(stages()[1], "USER")[-1]) if os.getuid() == 0 else None
    [line] = arguments(stages()[1], "ENV")
    image = dict(setting.split("=") for setting in line.split())
    process = subprocess.Popen(
        [binary], user=user, cwd="/",
        env=image | {"PORT": str(port), "FUNCTION_TARGET": "wrapTyped"})
    try:
        for _ in range(200):
            try:
                reply = requests.post(f"http://127.0.0.2:{port}/", data='{"a": 1}', timeout=5)
                break
            except requests.ConnectionError:
                assert process.poll() is None
                time.sleep(0.05)
        assert reply.json() == {"payload": {"a": 1}}
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=15) == 0
