"""What the compiler and XCTest say about an author's mistakes: at the right line, in few words."""

import re
import subprocess

import pytest
from conftest import CONFIGURATION, ROOT

SAMPLE = ROOT / "Tests" / "XCTestSample" / "main.swift"
BUILT = (ROOT / ".build" / CONFIGURATION).resolve()


def run(*options):
    return subprocess.run(
        [BUILT / "XCTestSample", *options], capture_output=True, text=True, timeout=60, check=False)


def marked_lines():
    """The numbers of the lines whose checks fail, by the name in their comment."""
    lines = SAMPLE.read_text(encoding="utf-8").splitlines()
    marks = [(number, re.search(r"// fails: (\w+)", line)) for number, line in enumerate(lines, 1)]
    return {mark[1]: number for number, mark in marks if mark}


def test_in_xctest_each_failed_check_is_an_error_at_its_line_and_the_test_goes_on():
    result = run()

    assert result.returncode == 1
    errors = re.findall(
        r"^(.*/main\.swift):(\d+): error: FailingChecks\.testChecks : failed - (.*)$",
        result.stdout + result.stderr, re.MULTILINE)
    lines = marked_lines()
    assert [(int(line), text[:20]) for _, line, text in errors] == [
        (lines["runs"], "Functions ran otherw"),
        (lines["allowed"], "Refused, but expecte"),
        (lines["denied"], "Allowed, but expecte"),
        (lines["settle"], "Nothing is scripted "),
    ]
    assert {path for path, _, _ in errors} == {str(SAMPLE)}
    for line in ["after runs", "after allowed, read: false", "after denied", "after settle"]:
        assert line in result.stdout


def test_without_a_test_the_first_failed_check_throws():
    result = run("--without-a-test")

    assert result.returncode == 0, result.stderr
    [line] = result.stdout.splitlines()
    assert line == ("thrown: Functions ran otherwise than expected: "
                    "greet ran 0 times, expected 1.")


# Typed paths

PATH = r"""
import FunctionsRuntime

struct MessagePath: DocumentPath {
  var chatID = ""
  var number = 0

  static let pattern: Pattern = "chats/\(\.chatID)/messages/\(\.number)"
}

"""

FUNCTION = """
let count = OnDocumentWritten<FirestoreDocument>("count", path: MessagePath.self) { event, path in
  event.logger.info("Counted")
  event.logger.info("\\(path.chatID): \\(path.number + 1)")
}
"""


def errors_of(source, folder):
    """The compiler's errors for a file of an author, by line."""
    file = folder / "Functions.swift"
    file.write_text(source, encoding="utf-8")
    maps = [f"-fmodule-map-file={path}" for path in BUILT.glob("*.build/module.modulemap")]
    includes = [f"-I{path}" for path in ROOT.glob(".build/checkouts/*/Sources/*/include")]
    includes += [f"-I{path.parent}" for path in ROOT.glob("Sources/C/*/**/module.modulemap")]
    options = [word for flag in maps + includes for word in ("-Xcc", flag)]
    result = subprocess.run(
        ["swiftc", "-typecheck", "-swift-version", "6", "-I", BUILT / "Modules", *options, file],
        capture_output=True, text=True, timeout=90, check=False)
    errors = re.findall(
        r"^.*/Functions\.swift:(\d+):\d+: error: (.*)$", result.stderr, re.MULTILINE)
    assert bool(errors) == (result.returncode != 0), result.stderr
    lines = source.splitlines()
    return [(lines[int(line) - 1].strip(), text) for line, text in errors]


def test_a_function_with_a_typed_path_compiles(tmp_path):
    assert errors_of(PATH + FUNCTION, tmp_path) == []


@pytest.mark.parametrize("right, wrong, line, error", [
    ("path.chatID", "path.chatId", 'event.logger.info("\\(path.chatId): \\(path.number + 1)")',
     "value of type 'MessagePath' has no member 'chatId'"),
    ("path.number + 1", "path.number.count",
     'event.logger.info("\\(path.chatID): \\(path.number.count)")',
     "value of type 'Int' has no member 'count'"),
    ("event, path in", "event in",
     'let count = OnDocumentWritten<FirestoreDocument>("count", path: MessagePath.self) '
     "{ event in",
     "contextual closure type '@Sendable (DocumentEvent<DocumentWrite<FirestoreDocument>>, "
     "MessagePath) async throws -> Void' expects 2 arguments, but 1 was used in closure body"),
    (r"\(\.chatID)", r"\(\.chatId)",
     r'static let pattern: Pattern = "chats/\(\.chatId)/messages/\(\.number)"',
     "value of type 'MessagePath' has no member 'chatId'"),
    ("var number = 0", "var number = 0.5",
     r'static let pattern: Pattern = "chats/\(\.chatID)/messages/\(\.number)"',
     "instance method 'appendInterpolation' requires that 'Double' conform to 'PathParameter'"),
])
def test_a_wrong_capture_does_not_compile_and_the_error_names_it(
        tmp_path, right, wrong, line, error):
    source = PATH + FUNCTION
    assert right in source
    assert (line, error) in errors_of(source.replace(right, wrong), tmp_path)


def test_a_misspelt_property_of_an_update_is_named(tmp_path):
    source = """import FunctionsRuntime

struct Book: Codable, Sendable { var title: String }

let retitled = OnDocumentUpdated<Book>("retitled", at: "books/{id}") { event in
  guard event.data.changed(\\.titel) else { return }
}
let written = OnDocumentWritten<Book>("written", at: "books/{id}") { event in
  guard event.data.changed(\\.titel) else { return }
}
"""
    line = "guard event.data.changed(\\.titel) else { return }"

    assert errors_of(source, tmp_path) == [
        (line, "value of type 'Book' has no member 'titel'")] * 2
    assert errors_of(source.replace("titel", "title"), tmp_path) == []
