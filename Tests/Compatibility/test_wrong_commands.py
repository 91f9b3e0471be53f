"""Wrong commands: the exit code, and the words that name what is wrong and how to correct it."""

import json
import os
import pathlib
import subprocess
import time

import conftest
import pytest
import requests
from conftest import PROJECT, hearth, started_sample

RULES = """rules_version = '2';
service cloud.firestore {
  match /databases/{database}/documents {
    match /notes/{note} {
      allow read: if request.auth != null;
      allow write: if false;
    }
  }
}
"""


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sample")
    (folder / "firestore.rules").write_text(RULES, encoding="utf-8")
    with started_sample(folder) as suite:
        suite.folder = folder
        yield suite


def run(folder, *arguments, **environment):
    """Runs hearth in a folder whose temporary files no other suite knows."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("FIREBASE", "HEARTH"))}
    return subprocess.run(
        [hearth(), *map(str, arguments)], cwd=folder, capture_output=True, text=True, timeout=60,
        stdin=subprocess.DEVNULL, check=False,
        env={**kept, "TMPDIR": str(folder), **environment})


def is_refused(done, code, *words):
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    for word in words:
        assert word in done.stderr, done.stderr
    assert not done.stdout, "what is wrong goes to stderr"


@pytest.mark.parametrize("command, code, words", [
    # Commands and options.
    ("strat", 2, ["no command `hearth strat`", "Did you mean `hearth start`?", "Commands: init"]),
    ("evnts list", 2, ["Did you mean `hearth events`?"]),
    ("events lst", 2, ["no command `hearth events lst`", "`hearth events list`?"]),
    ("functions stat", 2, ["`hearth functions stats`?"]),
    ("auth remove tina@example.com", 2, ["Commands: create, list, token, claims, delete"]),
    ("functions list --jsn", 2, ["--json"]),
    ("start --executible x", 2, ["--executable"]),
    # Commands and options of Firebase's tools.
    ("emulators:start", 2, ["Firebase's command", "`hearth start`"]),
    ("functions:secrets:set KEY", 2, ["`hearth functions config set --secret`"]),
    ("config set KEY x", 2, ["`hearth functions config`"]),
    ("functions:list", 2, ["`hearth functions list`"]),
    ("login", 2, ["no `login`", "never contacts Google"]),
    ("setup:emulators:firestore", 2, ["no `setup:emulators:firestore`", "downloads nothing"]),
    ("firestore:delete --all-collections", 2, [
        ".hearth", "curl -X DELETE", "/databases/(default)/documents'", "console"]),
    ("use demo-x", 2, ["projects.default", ".firebaserc", "--project"]),
    ("auth:import users.json", 2, ["emulators:export DIR --only auth", "`hearth import DIR`"]),
    ("auth:export users.json", 2, ["`hearth export DIR`"]),
    ("functions:shell", 2, [
        "`hearth call NAME`", "`hearth fire NAME`", "`hearth enqueue NAME`",
        "`hearth functions run NAME`"]),
    ("ext:install x", 2, ["no Extensions", "`firebase ext:install`"]),
    ("hosting:channel:deploy x", 2, ["no Hosting"]),
    ("database:get /", 2, ["curl", "/PATH.json?ns=PROJECT-default-rtdb"]),
    ("database:set / a.json", 2, ["hearth import FILE --database"]),
    ("remoteconfig:get", 2, ["no Remote Config"]),
    ("apphosting:backends:list", 2, ["no App Hosting"]),
    ("appdistribution:distribute x", 2, ["no App Distribution"]),
    ("crashlytics:symbols:upload x", 2, ["no Crashlytics"]),
    ("dataconnect:sdk:generate", 2, ["no Data Connect"]),
    ("emulators:stop", 2, ["Ctrl-C", "`kill PID`"]),
    # Words of other tools.
    ("stop", 2, ["Ctrl-C", "`kill PID`", "`hearth doctor`"]),
    ("status", 2, ["`hearth doctor`", "`hearth top`"]),
    ("test", 2, ["`swift test`", "`hearth rules test`", "`hearth exec -- COMMAND`"]),
    ("run echo", 2, ["`hearth call NAME`", "`hearth functions run NAME`"]),
    ("shell", 2, ["`hearth call NAME`"]),
    ("tail", 2, ["`hearth logs --follow`"]),
    ("reset", 2, [".hearth", "curl -X DELETE"]),
    ("version", 2, ["`hearth --version`"]),
    ("-v", 2, ["`hearth --version`"]),
    # Options that a command does not have, and words that an option takes.
    ("start --port 9000", 2, ["no --port", "--firestore-port", "--free-ports"]),
    ("clock advance --to 5m", 2, ["no --to", "`hearth clock advance 24h`"]),
    ("doctor --fix", 2, ["no --fix", "the report says how"]),
    ("functions run nightly --at 5", 2, ["no --at", "`hearth clock advance`"]),
    ("logs -f", 2, ["no -f", "--follow"]),
    ("logs --tail", 2, ["no --tail", "--follow", "--limit"]),
    ("functions logs echo -f", 2, ["no -f", "--follow"]),
    ("call echo --region us-central1", 2, ["no --region", "whatever its region"]),
    ("--hub 127.0.0.1:9 functions list", 2, ["`hearth functions list --hub 127.0.0.1:9`"]),
    ("functions --hub 127.0.0.1:9 list", 2, ["`hearth functions list --hub 127.0.0.1:9`"]),
    ("call echo tina", 2, ["Did you mean --as tina?"]),
    ("call echo {\"a\":1}", 2, ["Did you mean --data '{\"a\":1}'?"]),
    ("call echo isLoud=true", 2, ["Did you mean --data '{\"isLoud\": true}'?"]),
    ("enqueue remind {\"a\":1}", 2, ["Did you mean --data '{\"a\":1}'?"]),
    ("fire f chats/c1", 2, ["Did you mean --document chats/c1?"]),
    ("auth create --email a@b.example", 2, ["no --email", "`hearth auth create tina@"]),
    ("auth create a@b.example secret1", 2, ["Did you mean --password secret1?"]),
    ("events list pending", 2, ["Did you mean --state pending?"]),
    ("events pending", 2, ["Did you mean --state pending?"]),
    ("events list welcome", 2, ["Did you mean --function welcome?"]),
    ("faults set --duplicate 0.3", 2, ["Did you mean '--duplicates'?"]),
    ("start --only firestore", 2, ["`hearth start` has no --only", "--no-functions"]),
    # Times, numbers and ids.
    ("clock advance -5m", 2, ["-5m", "only forward", "such as 5m"]),
    ("clock advance -1h", 2, ["-1h", "only forward"]),
    ("init backend --hearth-url foo", 2, ["foo", "the address of a repository", "https://"]),
    ("exec --free-ports -- true", 2, ["--free-ports", "always takes free ports"]),
    ("clock advance -- -5m", 2, ["-5m", "only forward"]),
    ("clock advance 5 minutes", 2, ["neither a duration, such as 30s"]),
    ("clock advance 5", 2, ["neither a duration", "30s"]),
    ("clock advance tomorrow", 2, ["neither a duration", "2026-12-01T00:00:00Z"]),
    ("events list --limit -5", 2, ["-5 is below 0"]),
    ("events list --limit 0", 2, ["--limit is 0; give 1 to 1000"]),
    ("logs --limit 1000000", 2, ["--limit is 1000000; give 0 to 10000"]),
    ("logs --level warn", 2, ["Did you mean warning?"]),
    ("logs --since yesterday", 2, ["--since is a time"]),
    ("events list --state ded", 2, ["--state is \"ded\"", "Did you mean dead?"]),
    ("events list --state dead,failed", 2, ["takes one state", "once for each"]),
    ("events retry --all --state pending", 2, ["--state is \"pending\"", "failed, dead"]),
    ("enqueue q --in soon", 2, ["--in is \"soon\"", "5m"]),
    ("enqueue q --at noon", 2, ["--at is \"noon\"", "2026-12-01T08:00:00Z"]),
    ("enqueue q --in 5m --at 2026-12-01T08:00:00Z", 2, ["--in or --at, not both"]),
    ("faults set --drops 2", 2, ["--drops is 2.0; give a part from 0 to 1"]),
    ("faults set", 2, ["Give --duplicates, --drops or --reordering"]),
    ("rules coverage --json --html x", 2, ["--html or --json, not both"]),
    ("top --every 0", 2, ["give 0.1 to 3600 seconds"]),
    # Where the suite is.
    ("logs --hub localhost", 2, ["--hub is \"localhost\"", "127.0.0.1:4400"]),
    ("logs --hub https://127.0.0.1:4400", 2, ["no TLS", "127.0.0.1:4400"]),
    ("logs --hub 127.0.0.1:99999", 2, ["whose port is none"]),
    ("logs --hub 127.0.0.1:9", 3, ["127.0.0.1:9 (--hub)", "hearth start"]),
    ("logs --project a/b", 2, ["--project is \"a/b\""]),
    ("logs", 3, ["No running suite found", "hearth start", "--hub"]),
    ("logs --data-folder nowhere", 3, ["nowhere/server.json"]),
    # Files and folders.
    ("start --executable nowhere", 2, ["--executable is nowhere, which is not an executable"]),
    ("start --export-on-exit --ephemeral", 2, ["--export-on-exit needs a folder"]),
    ("start --ephemeral --data mine", 2, ["--data mine would not be used", "Leave out one"]),
    ("call echo --data @nowhere.json", 2, ["--data: the file nowhere.json cannot be read"]),
    ("call echo --data --as tina", 2, ["--data is not JSON", "--as"]),
    ("call echo --data --admin", 2, ["--data is not JSON", "--admin"]),
    ("call echo --data", 2, ["Missing value for '--data"]),
    ("call echo --data nofile.json", 2, ["is not JSON", "To read a file: --data @nofile.json"]),
    ("call echo --data a=5", 2, ["is not JSON", "--data '{\"a\": 5}'"]),
    ("auth claims tina role=trainer", 2, ["must be a JSON object", "'{\"role\": \"trainer\"}'"]),
    ("fire f", 2, ["Give --document PATH, --path REF", "--event FILE"]),
    ("fire f --document a/b", 2, ["Give --data, --before or both"]),
    # A number below 0 is JSON, so that only the suite is missing.
    ("call echo --data -5", 3, ["No running suite found"]),
    ("enqueue q --data -5", 3, ["No running suite found"]),
    ("rules check --rules nowhere.rules", 1, ["nowhere.rules cannot be read"]),
    ("rules check", 1, ["name a file with --rules"]),
    ("functions config get", 1, ["firebase.json"]),
    ("exec", 2, ["hearth exec -- pytest"]),
])
def test_without_a_suite(tmp_path, command, code, words):
    is_refused(run(tmp_path, *command.split()), code, *words)


TEXTS = [
    ("{'a': 1}", "line 1, column 2", '" around names'), ('{"a": }', "line 1, column 7", "a value"),
    ('{"a": 1,}', "line 1, column 9", "comma"), ("", "line 1, column 1", "no text"),
    ('{"a": 1', "line 1, column 8", "missing"), ("hello", "line 1, column 1", "a value"),
    ('{"a": 1 "b"}', "line 1, column 9", "a comma"),
]


@pytest.mark.parametrize("command", [
    ("call", "echo", "--data"), ("fire", "f", "--document", "a/b", "--data"),
    ("fire", "f", "--document", "a/b", "--before"), ("enqueue", "q", "--data"),
    ("auth", "claims", "tina"), ("auth", "create", "a@b.example", "--claims"),
    ("call", "echo", "--as", "tina", "--claims"),
], ids=" ".join)
@pytest.mark.parametrize("text, place, words", TEXTS, ids=[text or "none" for text, _, _ in TEXTS])
def test_text_that_is_not_json_is_usage_with_its_place(tmp_path, command, text, place, words):
    is_refused(run(tmp_path, *command, text), 2, "is not JSON", place, words, "^")


@pytest.mark.parametrize("command", [
    ("call", "echo", "--data", "@bad.json"), ("fire", "f", "--event", "bad.json"),
    ("rules", "test", "--rules", "firestore.rules", "bad.json"),
], ids=" ".join)
def test_a_file_that_is_not_json_is_named_with_the_place(tmp_path, command):
    (tmp_path / "firestore.rules").write_text(RULES, encoding="utf-8")
    (tmp_path / "bad.json").write_text('{\n  "a": yes\n}\n', encoding="utf-8")
    is_refused(run(tmp_path, *command), 2, "bad.json", "line 2, column 8", '  "a": yes', "^")


def test_a_firebase_json_that_is_not_json_is_named_with_the_place(tmp_path):
    (tmp_path / "firebase.json").write_text('{"functions": yes}', encoding="utf-8")
    is_refused(run(tmp_path, "start", "--ephemeral"), 1, "firebase.json", "line 1, column 15", "^")


@pytest.mark.parametrize("command, code, words", [
    # Names that do not exist.
    ("call eco", 1, ["No function eco is deployed", "Did you mean echo?", "Callables: "]),
    ("call us-central1/echo", 1, ["Did you mean echo?"]),
    ("call http://127.0.0.1:5001/demo-gym/us-central1/echo", 1, ["Did you mean echo?"]),
    ("fire echo", 1, ["echo takes no events", "`hearth call echo`"]),
    ("fire countTask", 1, ["takes no events", "`hearth enqueue countTask`"]),
    ("fire recordTick", 1, ["takes no events", "`hearth functions run recordTick`"]),
    ("fire recordWirte", 1, ["Did you mean recordWrite?"]),
    ("fire recordWrite", 2, ["Give --document PATH"]),
    ("functions run echo", 1, ["echo has no schedule", "`hearth call echo`"]),
    ("call slowEcho --data {\"data\":{}}", 1, ["INVALID_ARGUMENT", "adds {\"data\": …} itself"]),
    ("call countTask", 1, ["countTask is not a callable", "hearth enqueue countTask"]),
    ("fire recordWirte --document a/b --data {}", 1, ["Did you mean recordWrite?"]),
    ("enqueue countTsk", 1, ["Did you mean countTask?", "take tasks: countTask, failTask"]),
    ("enqueue echo", 1, ["echo takes no tasks", "hearth call echo"]),
    ("functions stats nosuch", 1, ["No function nosuch is deployed", "Functions: adminOnly"]),
    ("functions stats echo recordWriet", 1, ["Did you mean recordWrite?"]),
    ("functions stats nosuch --json", 1, ["No function nosuch is deployed"]),
    ("functions delete ecoh", 1, ["Did you mean echo?"]),
    ("functions run recordTik", 1, ["Did you mean recordTick?"]),
    ("functions rollback 20200101T000000-abcd", 1, ["no deployment 20200101T000000-abcd", "Kept"]),
    ("deploy --only functions:ecoh", 1, ["ecoh", "Did you mean echo?"]),
    ("events list --function nosuch", 1, ["No function nosuch is deployed"]),
    ("events list --function recordWrit --json", 1, ["Did you mean recordWrite?"]),
    ("events retry --all --function recordWrit", 1, ["Did you mean recordWrite?"]),
    ("events discard --all --state dead --function nosuch", 1, ["No function nosuch"]),
    ("events show 999999.0.nosuch", 1, ["No event 999999.0.nosuch is known", "events list"]),
    ("events show nonsense", 2, ["not an event's id", "events list"]),
    ("logs nosuch", 1, ["No function nosuch is deployed", "Functions: "]),
    ("logs --function recordWirte", 1, ["Did you mean recordWrite?"]),
    ("auth claims nobody", 1, ["There is no user nobody", "hearth auth create"]),
    ("call whoAmI --as tina@example.con", 1, ["Did you mean tina@example.com?"]),
    ("auth delete tinaa@example.com", 1, ["Did you mean tina@example.com?"]),
    # Times and data.
    ("clock advance 2020-01-01T00:00:00Z", 2, ["name a later time"]),
    ("fire recordWrite --document things --data {}", 2, ["not a document's path", "chats/c1"]),
    ("fire recordWrite --document things/t --data []", 2, ["\"data\" is not a JSON object"]),
    ("import nowhere", 1, ["nowhere to import"]),
    # The suite is that of another project.
    ("logs --project other", 2, [f"is of project {PROJECT}, not of other (--project)", "--hub"]),
])
def test_with_a_suite(sample, command, code, words):
    if not sample.cli("auth", "list").stdout.count("tina@example.com"):
        assert sample.cli("auth", "create", "tina@example.com").returncode == 0
    is_refused(sample.cli(*command.split()), code, *words)


def test_an_event_with_a_slip_in_its_id_is_asked_for(sample):
    sample.hub("GET", "/")
    write = requests.patch(
        f"http://{sample.address('firestore')}/v1/projects/{PROJECT}/databases/(default)/documents"
        "/things/slip", json={"fields": {"n": {"integerValue": "1"}}},
        headers={"Authorization": "Bearer owner"}, timeout=10)
    assert write.status_code == 200
    sample.settle()
    events = json.loads(sample.cli("events", "list", "--function", "recordWrite", "--json").stdout)
    right = events[0]["id"]
    wrong = right.replace("recordWrite", "recordWrit")
    for command in ("show", "retry", "discard"):
        is_refused(sample.cli("events", command, wrong), 1, f"Did you mean {right}?")


@pytest.mark.parametrize(
    "service", ["firestore", "database", "functions", "auth", "tasks", "vectors", "ui"])
def test_the_port_of_another_service_leads_to_the_hub(sample, tmp_path, service):
    address, hub = sample.address(service), sample.address("hub")
    words = ["This is the port of", f"Hub answers at {hub}"]
    is_refused(run(tmp_path, "logs", "--hub", address), 2, *words, f"Use --hub {hub}")
    variable = f"FIREBASE_EMULATOR_HUB={hub}"
    is_refused(run(tmp_path, "logs", FIREBASE_EMULATOR_HUB=address), 2, *words, variable)


def test_the_hub_of_the_environment_and_another_project_disagree(sample, tmp_path):
    hub = sample.address("hub")
    disagrees = run(
        tmp_path, "events", "list", "--project", "other", FIREBASE_EMULATOR_HUB=hub,
        HEARTH_TOKEN=sample.token)
    is_refused(disagrees, 2, "(FIREBASE_EMULATOR_HUB)", "not of other", "unset")
    agrees = run(
        tmp_path, "events", "list", "--project", PROJECT, FIREBASE_EMULATOR_HUB=hub,
        HEARTH_TOKEN=sample.token)
    assert agrees.returncode == 0, agrees.stderr


def test_the_suite_of_this_folder_is_not_that_of_another_project(sample):
    server = pathlib.Path(sample.hub("GET", "/hearth/v1/suite").json()["serverFile"])
    found = run(sample.folder, "functions", "list", "--data-folder", server.parent)
    assert found.returncode == 0, found.stderr
    done = run(
        sample.folder, "functions", "list", "--data-folder", server.parent, "--project", "other")
    is_refused(done, 3, "No running suite found", f"is of project {PROJECT}")


def test_a_program_that_is_no_hub_is_told_apart(tmp_path, openai_stub):
    address = openai_stub.origin.removeprefix("http://")
    is_refused(run(tmp_path, "logs", "--hub", address), 3, "something else answers there")


def test_faults_are_told_in_words(sample):
    assert sample.cli("faults").stdout == "No faults are set; `hearth faults set` sets some.\n"
    assert sample.cli("faults", "show", "--json").stdout == "null\n"
    try:
        assert sample.cli(
            "faults", "set", "--seed", "7", "--duplicates", "0.3", "--reordering").returncode == 0
        shown = sample.cli("faults").stdout
        for words in ("seed 7", "30.0% of the events come twice", "overtake", "hearth faults clear"):
            assert words in shown
        assert json.loads(sample.cli("faults", "show", "--json").stdout)["seed"] == 7
    finally:
        assert sample.cli("faults", "clear").returncode == 0


def test_statistics_are_those_of_the_functions_asked_for(sample):
    shown = sample.cli("functions", "stats", "echo", "crash", "--json")
    assert [function["name"] for function in json.loads(shown.stdout)] == ["crash", "echo"]
    table = sample.cli("functions", "stats", "echo").stdout
    assert "echo" in table and "crash" not in table


def test_the_coverage_of_rules_is_a_table_and_json_for_programs(sample):
    shown = sample.cli("rules", "coverage")
    assert shown.returncode == 0, shown.stderr
    lines = shown.stdout.splitlines()
    assert lines[0] == "Of 1 conditions, 0 came out both true and false; 1 was never evaluated."
    assert lines[2].split()[:2] == ["LINE", "METHODS"]
    assert lines[3].split()[:5] == ["5", "read", "0", "0", "0"]
    assert "request.auth != null" in lines[3] and "never evaluated" in lines[3]
    assert "constant: refuses" in lines[4]
    report = json.loads(sample.cli("rules", "coverage", "--json").stdout)
    assert report["rules"]["files"][0]["name"] == "firestore.rules"


def test_a_crash_is_reported_at_once_with_a_stack(sample):
    begun = time.monotonic()
    reply = sample.call("crash", None)
    took = time.monotonic() - begun
    assert reply.status_code == 500 and "crashed" in reply.text
    logged = sample.cli("logs", "crash").stdout
    assert "Fatal error: crashed as asked" in logged and "it was ended by signal" in logged
    conftest.until(
        lambda: "in closure #1 in SampleCallables.crash" in sample.cli(
            "logs", "crash", "--level", "error").stdout,
        "the stack is not logged")
    assert took < 5, f"the caller waited {took:.1f} s"


def test_a_task_without_data_is_said_to_have_null(sample):
    done = sample.cli("enqueue", "countTask")
    assert done.returncode == 0 and " for countTask with null data (--data gives " in done.stdout
    sample.settle()


def test_an_event_of_another_number_is_not_suggested(sample):
    assert sample.cli("enqueue", "countTask", "--data", '{"n": 5}').returncode == 0
    sample.settle()
    refused = sample.cli("events", "show", "999999.0.countTask")
    is_refused(refused, 1, "No event 999999.0.countTask is known")
    assert "Did you mean" not in refused.stderr


def test_the_failure_of_a_fired_event_ends_without_an_empty_line(sample):
    failed = sample.cli(
        "fire", "recordWrite", "--document", "things/a", "--data", '{"n": "x"}')
    is_refused(failed, 1, "recordWrite failed", "'n' is a string")
    assert failed.stderr == failed.stderr.rstrip() + "\n"


def test_an_empty_user_is_named(tmp_path):
    is_refused(run(tmp_path, "call", "f", "--as", ""), 2, "--as is empty", "such as tina")


def test_a_file_of_users_is_no_export(tmp_path):
    (tmp_path / "users.json").write_text('{"users": [{"localId": "tina"}]}', encoding="utf-8")
    is_refused(
        run(tmp_path, "import", "users.json"), 2, "users.json is a list of users",
        "emulators:export DIR --only auth", "`hearth auth create`")


def test_doctor_names_the_suite_of_another_folder_that_has_the_ports(sample, tmp_path):
    services = sample.hub("GET", "/hearth/v1/suite").json()["services"]
    (tmp_path / "firebase.json").write_text(json.dumps({
        "emulators": {name: {"port": at["port"]} for name, at in services.items()},
    }), encoding="utf-8")
    (tmp_path / ".firebaserc").write_text(
        json.dumps({"projects": {"default": "demo-other"}}), encoding="utf-8")
    done = run(tmp_path, "doctor", HEARTH_TOKEN=sample.token)
    assert f"a suite of project {PROJECT}, process " in done.stdout
    assert "`hearth start --free-ports`" in done.stdout
    assert "in use by another program" not in done.stdout


def test_a_task_is_enqueued_and_runs_when_it_is_due(sample):
    done = sample.cli("enqueue", "countTask", "--data", '{"n": 41}', "--id", "first")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Enqueued task first for countTask;")
    sample.settle()
    assert any("first" in line and "41" in line for line in sample.output.read_text().splitlines())
    again = sample.cli("enqueue", "countTask", "--data", '{"n": 41}', "--id", "first")
    is_refused(again, 1, "task first", "can be used again")
    (sample.folder / "job.json").write_text('{"n": 42}', encoding="utf-8")
    later = sample.cli(
        "enqueue", "countTask", "--data", f"@{sample.folder}/job.json", "--in", "2h", "--json")
    task = json.loads(later.stdout)
    assert task["name"].startswith(f"projects/{PROJECT}/locations/us-central1/queues/countTask/")
    sample.settle()
    identifier = task["name"].split("/")[-1]
    assert identifier not in sample.output.read_text()
    assert sample.cli("clock", "advance", "3h").returncode == 0
    assert identifier in sample.output.read_text()


def test_seed_data_of_one_file_are_imported(sample, tmp_path):
    seed = tmp_path / "seed.json"
    seed.write_text(json.dumps({
        "notes/n1": {"text": "Hello", "at": {"$timestamp": "2026-01-01T00:00:00Z"}},
        "notes": {"n2": {"by": {"$reference": "users/tina"}}},
    }), encoding="utf-8")
    done = sample.cli("import", str(seed))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Imported 2 documents and 0 vectors from ")
    documents = (f"http://{sample.address('firestore')}/v1/projects/{PROJECT}/databases/(default)"
                 "/documents")
    owner = {"Authorization": "Bearer owner"}
    first = requests.get(f"{documents}/notes/n1", headers=owner, timeout=10).json()["fields"]
    assert first == {"text": {"stringValue": "Hello"},
                     "at": {"timestampValue": "2026-01-01T00:00:00Z"}}
    second = requests.get(f"{documents}/notes/n2", headers=owner, timeout=10).json()["fields"]
    assert second["by"]["referenceValue"].endswith("/documents/users/tina")

    seed.write_text('{"notes/n1": {"at": {"$timestamp": "today"}}}', encoding="utf-8")
    is_refused(sample.cli("import", str(seed)), 1, "seed.json: notes/n1: at must be written as")
    seed.write_text("{notes: {}}", encoding="utf-8")
    is_refused(sample.cli("import", str(seed)), 2, "seed.json is not JSON", "line 1, column 2")


def test_a_start_imports_the_seed_data_of_one_file(tmp_path):
    (tmp_path / "seed.json").write_text('{"notes/n1": {"text": "Hello"}}', encoding="utf-8")
    with conftest.started(tmp_path, "--import", "seed.json") as suite:
        url = (f"http://{suite.address('firestore')}/v1/projects/{PROJECT}/databases/(default)"
               "/documents/notes/n1")
        assert requests.get(url, headers={"Authorization": "Bearer owner"}, timeout=10).ok
    refused = run(tmp_path, "start", "--ephemeral", "--import", "seed.json", "--export-on-exit")
    is_refused(refused, 2, "--import is a file", "--export-on-exit FOLDER")


def test_a_program_that_is_no_functions_binary_is_named_at_once(tmp_path):
    begun = time.monotonic()
    done = run(tmp_path, "exec", "--executable", "/bin/ls", "--", "true")
    is_refused(done, 1, "This is not a functions binary", "runService()")
    assert time.monotonic() - begun < 20


@pytest.mark.parametrize("command, code", [
    (("start", "--ephemeral", *[word for name in (
        "hub", "functions", "firestore", "database", "auth", "tasks", "vectors", "ui")
        for word in (f"--{name}-port", "0")]), 1),
    (("exec", "--", "true"), 1), (("rules", "check"), 1), (("rules", "check", "--storage"), 1),
], ids=str)
def test_a_rules_file_that_firebase_json_names_has_to_be_there(tmp_path, command, code):
    (tmp_path / "firebase.json").write_text(json.dumps({
        "firestore": {"rules": "rules/firestore.rules"}, "storage": {"rules": "rules/storage.rules"},
    }), encoding="utf-8")
    name = "storage" if "--storage" in command else "firestore"
    done = run(tmp_path, *command)
    is_refused(done, code, f"There is no {tmp_path}/rules/{name}.rules", "firebase.json")
    checked = run(tmp_path, "doctor").stdout
    for service in ("firestore", "storage"):
        assert f"{tmp_path}/rules/{service}.rules is missing" in checked
