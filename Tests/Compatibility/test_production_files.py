"""`hearth production`: what it writes is valid for terraform, for a shell and for gcloud.

Nothing here reaches Google. Terraform's own formatter reads the files, which is a check of their
syntax; its `validate` needs the provider of Google, so it runs only where `terraform init` finds
one. The scripts run with a gcloud that writes down what it is asked, and the installed gcloud's
own parser then reads every command: names, flags and values.
"""

import json
import os
import shlex
import shutil
import subprocess

import pytest
from conftest import CONFIGURATION, ROOT, hearth

FUNCTIONS = {
    "embedMessage": {
        "eventTrigger": {
            "eventType": "google.cloud.firestore.document.v1.written.withAuthContext",
            "eventFilters": {"database": "books", "namespace": "(default)"},
            "eventFilterPathPatterns": {"document": "chats/{chatId}/it's, \"$(id)\" $x \\n/{m=**}"},
            "retry": True, "retryConfig": {"maxAttempts": 3, "minBackoffSeconds": 20}},
        "secretEnvironmentVariables": [{"key": "API_KEY"}],
        "availableMemoryMb": 1024, "minInstances": 1, "maxInstances": 7},
    "onTopic": {
        "eventTrigger": {
            "eventType": "google.cloud.pubsub.topic.v1.messagePublished",
            "eventFilters": {"topic": "orders"}, "retry": False}},
    "onUpload": {
        "eventTrigger": {
            "eventType": "google.cloud.storage.object.v1.finalized",
            "eventFilters": {"bucket": "psst-4711.appspot.com"}, "retry": True}},
    "onUser": {
        "eventTrigger": {
            "eventType": "google.firebase.auth.user.v1.created", "eventFilters": {},
            "retry": False}},
    "checkSignUp": {
        "blockingTrigger": {"eventType": "providers/cloud.auth/eventTypes/user.beforeCreate"}},
    "tick": {
        "scheduleTrigger": {
            "schedule": "0 3 * * *", "timeZone": "Europe/Berlin",
            "retryConfig": {"retryCount": 2, "minBackoffSeconds": 0.5}}},
    "work": {
        "taskQueueTrigger": {
            "rateLimits": {"maxConcurrentDispatches": 4, "maxDispatchesPerSecond": 0.5},
            "retryConfig": {"maxAttempts": -1, "maxRetrySeconds": 90}}},
    "web": {"httpsTrigger": {}, "region": ["europe-west1", "us-east1"]},
    "search": {"callableTrigger": {}, "concurrency": 10, "timeoutSeconds": 120},
}
INDEXES = {
    "indexes": [
        {"collectionGroup": "messages", "queryScope": "COLLECTION_GROUP", "fields": [
            {"fieldPath": "`it's`.a,b", "order": "ASCENDING"},
            {"fieldPath": "tags", "arrayConfig": "CONTAINS"}]},
        {"collectionGroup": "messages", "queryScope": "COLLECTION", "fields": [
            {"fieldPath": "embedding", "vectorConfig": {"dimension": 1536, "flat": {}}}]}],
    "fieldOverrides": [
        {"collectionGroup": "messages", "fieldPath": "expires", "ttl": True, "indexes": []},
        {"collectionGroup": "messages", "fieldPath": "text", "indexes": [
            {"order": "ASCENDING", "queryScope": "COLLECTION_GROUP"},
            {"arrayConfig": "CONTAINS", "queryScope": "COLLECTION"}]}]}
RULES = "rules_version = '2';\nservice cloud.firestore {\n  // \"quotes\" and \\ and ${x}\n}\n"
# What is hostile in HCL or in a shell; .env has its own rules for quotes and backslashes.
GREETING = "it's, ${HOME} %{if} $(PORT) `id` \"q\" | ~~# ^"


class Project:
    """A folder with functions that only describe themselves."""

    def __init__(self, folder):
        self.folder = folder
        self.binary = folder / "functions"
        self.out = folder / "production"
        self.write(FUNCTIONS)
        (folder / "firestore.indexes.json").write_text(json.dumps(INDEXES), encoding="utf-8")
        (folder / "firestore.rules").write_text(RULES, encoding="utf-8")
        (folder / ".env").write_text(
            f"GREETING='{GREETING}'\nAPI_KEY=not-this-one\n".replace("it's", "its"),
            encoding="utf-8")
        (folder / ".env.local").write_text("ONLY_HERE=local-value\n", encoding="utf-8")
        (folder / ".secret.local").write_text("API_KEY=sk-secret-value\n", encoding="utf-8")

    def write(self, functions):
        """Makes a binary that offers these functions."""
        endpoints = {
            name: {"entryPoint": name, "platform": "gcfv2", "region": ["us-central1"], **function}
            for name, function in functions.items()}
        manifest = json.dumps({"specVersion": "v1alpha1", "endpoints": endpoints})
        self.binary.write_text(
            f"#!/bin/sh\ncat >\"$FUNCTIONS_MANIFEST_OUTPUT_PATH\" <<'END'\n{manifest}\nEND\n",
            encoding="utf-8")
        self.binary.chmod(0o755)

    def run(self, *options):
        return subprocess.run(
            [hearth(), "production", "--executable", str(self.binary), "--project", "psst-4711",
             *options],
            cwd=self.folder, capture_output=True, text=True, timeout=60, check=False)

    def generate(self, *options):
        reply = self.run(*options)
        assert reply.returncode == 0, reply.stderr
        return reply

    def text(self, name):
        return (self.out / name).read_text(encoding="utf-8")


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


# Writes down the words of each call, which may have line breaks.
GCLOUD = """#!/bin/sh
{ printf 'gcloud'; printf '\\037%s' "$@"; printf '\\036'; } >>"$GCLOUD_CALLS"
case "$*" in
*status.url*) echo https://a-service-abc.a.run.app ;;
*subscription*) echo projects/psst-4711/subscriptions/eventarc-sub-1 ;;
*" describe "*) [ "$GCLOUD_HAS" = everything ] ;;
esac
"""
CURL = """#!/bin/sh
cat >/dev/null
printf '%s\\n' "$*" >>"$GCLOUD_CALLS.curl"
echo '  "name": "projects/psst-4711/rulesets/4711",'
"""


def script_run(project, has, *script, answers="a secret's value\n" * 10, confirmed=True):
    """Runs a script with a gcloud that has nothing yet, or everything; its calls and its words."""
    tools = project.folder / "tools"
    tools.mkdir(exist_ok=True)
    for name, text in [("gcloud", GCLOUD), ("curl", CURL), ("docker", "#!/bin/sh\n")]:
        (tools / name).write_text(text, encoding="utf-8")
        (tools / name).chmod(0o755)
    log = project.folder / f"calls-{script[0]}-{has}"
    reply = subprocess.run(
        ["sh", *script], cwd=project.out, capture_output=True, text=True, timeout=60, check=False,
        input=answers,
        env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "GCLOUD_CALLS": str(log),
             "GCLOUD_HAS": has, "RUNTIME_ROLES": "roles/firebaseauth.admin",
             "HEARTH_YES": "1" if confirmed else ""})
    assert reply.returncode == 0, reply.stderr
    made = [call.split("\037") for call in log.read_text(encoding="utf-8").split("\036")[:-1]]
    return made, reply.stderr


def calls(project, has, *script):
    """Runs a script, with yes to its questions; what it asked of gcloud."""
    return script_run(project, has, *script)[0]


def flag(call, name):
    return [word.split("=", 1)[1] for word in call if word.startswith(f"{name}=")]


def one(all_calls, *words):
    found = [call for call in all_calls if call[1:1 + len(words)] == list(words)]
    assert len(found) == 1, found
    return found[0]


def checkable(word):
    """A word of a command for gcloud's checker: it takes # for the end of a command, in quotes
    too, and a quote before a flag for the value of the flag before it."""
    name, equals, value = word.replace("#", "x").partition("=")
    return name + equals + shlex.quote(value) if equals else shlex.quote(name)


def lint(all_calls, folder):
    """Reads commands with the parser of the installed gcloud; what it finds wrong."""
    gcloud = shutil.which("gcloud")
    if not gcloud:
        pytest.skip("gcloud is not installed; the commands' flags were not checked")
    texts = sorted({" ".join(map(checkable, call)) for call in all_calls})
    file = folder / "commands.json"
    file.write_text(json.dumps([{"command_string": text} for text in texts]), encoding="utf-8")
    reply = subprocess.run(
        [gcloud, "meta", "lint-gcloud-commands", f"--commands-file={file}"],
        capture_output=True, text=True, timeout=100, check=False,
        env={**os.environ, "CLOUDSDK_CORE_DISABLE_PROMPTS": "1",
             "CLOUDSDK_CONFIG": str(folder / "gcloud-configuration")})
    if reply.returncode != 0 and "Invalid choice" in reply.stderr:
        pytest.skip("this gcloud cannot check commands; their flags were not checked")
    results = json.loads(reply.stdout)
    assert len(results) == len(texts)
    return [f"{r['command_string']}: {r['error_message']}" for r in results if not r["success"]]


def test_every_command_is_one_of_gcloud(project):
    project.generate()
    all_calls = [
        call for has in ("nothing", "everything")
        for script in (["gcloud.sh"], ["image.sh"], ["secrets.sh"], ["gcloud-delete.sh"])
        for call in calls(project, has, *script)]
    assert len(all_calls) > 100
    assert lint(all_calls, project.folder) == []
    assert lint([["gcloud", "run", "deploy", "x", "--no-such-flag"]], project.folder) != []


def test_the_commands_have_what_the_functions_say(project):
    project.generate("--firestore-location", "eur3")
    made = calls(project, "nothing", "gcloud.sh")
    deploy = one(made, "run", "deploy", "embedmessage")
    assert flag(deploy, "--memory") == ["1024Mi"] and flag(deploy, "--cpu") == ["1"]
    assert flag(deploy, "--min-instances") == ["1"] and flag(deploy, "--max-instances") == ["7"]
    assert flag(deploy, "--ingress") == ["internal"]
    assert flag(deploy, "--set-secrets") == ["API_KEY=API_KEY:latest"]
    variables = flag(deploy, "--set-env-vars")[0]
    separator = variables.split("^")[1]
    values = dict(part.split("=", 1)
                  for part in variables[len(separator) + 2:].split(separator))
    assert values["GCLOUD_PROJECT"] == "psst-4711"
    assert values["FUNCTION_TARGET"] == "embedMessage"
    assert values["FUNCTION_SIGNATURE_TYPE"] == "cloudevent"
    # Cloud Run would replace $(NAME) by a variable, so its dollar is doubled.
    assert values["GREETING"] == GREETING.replace("it's", "its").replace("$(", "$$(")

    trigger = one(made, "eventarc", "triggers", "create", "embedmessage")
    assert flag(trigger, "--location") == ["eur3"]
    assert flag(trigger, "--event-filters")[0].endswith(".written.withAuthContext")
    assert flag(trigger, "--event-data-content-type") == ["application/protobuf"]
    pattern = FUNCTIONS["embedMessage"]["eventTrigger"]["eventFilterPathPatterns"]["document"]
    assert flag(trigger, "--event-filters-path-pattern") == [f"^~#^document={pattern}"]
    members = {call[4]: flag(call, "--member")[0] for call in made
               if call[1:4] == ["run", "services", "add-iam-policy-binding"]}
    invoker = "serviceAccount:hearth-invoker@psst-4711.iam.gserviceaccount.com"
    assert members["embedmessage"] == members["tick"] == members["work"] == invoker
    assert members["web"] == members["search"] == members["checksignup"] == "allUsers"
    queue = one(made, "tasks", "queues", "create", "work")
    assert flag(queue, "--http-uri-override") == [
        "scheme:https,host:a-service-abc.a.run.app,path:/,mode:ALWAYS"]
    assert flag(queue, "--max-attempts") == ["unlimited"]
    assert [call[3] for call in made if call[1:3] == ["run", "deploy"]].count("web") == 2
    assert not any("onuser" in call for call in made)

    # The second run changes what is there.
    again = calls(project, "everything", "gcloud.sh")
    assert not any("create" in call for call in again if call[1] not in ("firestore",))
    one(again, "scheduler", "jobs", "update", "http", "tick")


def test_what_is_made_is_deleted(project):
    project.generate()
    made = calls(project, "nothing", "gcloud.sh")
    gone = calls(project, "everything", "gcloud-delete.sh")
    for kind, verb in [("run", "deploy"), ("eventarc", "create"), ("tasks", "create"),
                       ("secrets", "create"), ("iam", "create"), ("artifacts", "create"),
                       ("pubsub", "create")]:
        new = [call for call in made if call[1] == kind and verb in call]
        removed = [call for call in gone if call[1] == kind and "delete" in call]
        assert len(new) == len(removed) > 0, kind
    assert not any(call[1] == "firestore" for call in gone)


SHARED = {"artifacts", "secrets", "pubsub"}


@pytest.mark.parametrize("answers, deleted", [
    ("", set()), ("n\nno\n\n", set()), ("y\nYES\nyes\n", SHARED), ("n\ny\nn\n", {"secrets"}),
    ("yes please\n", set())])
def test_what_may_have_been_there_is_deleted_only_after_a_yes(project, answers, deleted):
    project.generate()
    gone, words = script_run(
        project, "everything", "gcloud-delete.sh", answers=answers, confirmed=False)
    kinds = {call[1] for call in gone if "delete" in call}
    assert kinds & SHARED == deleted
    assert {"run", "tasks", "scheduler", "eventarc", "iam"} <= kinds
    assert "deletes in the project psst-4711:" in words
    for line in ("  the service search in us-central1", "  the queue work in us-central1",
                 "  the account hearth-runtime", "  the secret API_KEY", "  the topic orders",
                 "  the repository functions in us-central1, with all images"):
        assert line + "\n" in words
    for question in ("Delete the repository functions in us-central1",
                     "Delete the secrets API_KEY", "Delete the topics orders"):
        assert question in words
    for name in ("repository `functions`", "secret `API_KEY`", "topic `orders`"):
        assert name in project.text("README.md")


def test_terraform_reads_the_files(project):
    terraform = shutil.which("terraform")
    if not terraform:
        pytest.skip("terraform is not installed; the files' syntax was not checked")
    project.generate("--firestore-location", "eur3")
    environment = {**os.environ, "TF_CLI_CONFIG_FILE": os.devnull, "CHECKPOINT_DISABLE": "1"}

    def run(*command):
        return subprocess.run(
            [terraform, *command], cwd=project.out, capture_output=True, text=True, timeout=100,
            check=False, env=environment)

    reply = run("fmt", "-check", "-diff", "-no-color")
    assert reply.returncode == 0, reply.stdout + reply.stderr
    if run("init", "-backend=false", "-no-color").returncode != 0:
        pytest.skip("no registry gives the provider of Google: syntax checked, attributes not")
    reply = run("validate", "-no-color")
    assert reply.returncode == 0, reply.stdout + reply.stderr


def test_terraform_evaluates_hostile_texts_to_themselves(project):
    terraform = shutil.which("terraform")
    if not terraform:
        pytest.skip("terraform is not installed; the quoting was not checked")
    project.generate()
    lines = project.text("main.tf").splitlines()
    values = {
        "greeting": lines[next(i for i, line in enumerate(lines) if '"GREETING"' in line) + 1],
        "pattern": next(line for line in lines if "chats/{chatId}" in line)}
    folder = project.folder / "evaluated"
    folder.mkdir()
    (folder / "main.tf").write_text("".join(
        f'output "{name}" {{\n  {line.strip()}\n}}\n' for name, line in values.items()),
        encoding="utf-8")
    environment = {**os.environ, "TF_CLI_CONFIG_FILE": os.devnull, "CHECKPOINT_DISABLE": "1"}
    for command in (["init"], ["apply", "-auto-approve"], ["output", "-json"]):
        reply = subprocess.run(
            [terraform, *command], cwd=folder, capture_output=True, text=True, timeout=60,
            check=False, env=environment)
        assert reply.returncode == 0, reply.stderr
    read = json.loads(reply.stdout)
    assert read["greeting"]["value"] == GREETING.replace("it's", "its").replace("$(", "$$(")
    pattern = FUNCTIONS["embedMessage"]["eventTrigger"]["eventFilterPathPatterns"]["document"]
    assert read["pattern"]["value"] == pattern


def test_no_value_of_a_secret_is_written(project):
    reply = project.generate()
    assert "API_KEY is a secret of a function and also in .env" in reply.stderr
    everything = "".join(file.read_text(encoding="utf-8") for file in project.out.iterdir())
    for value in ("sk-secret-value", "not-this-one", "local-value", "ONLY_HERE"):
        assert value not in everything
    assert "API_KEY" in everything
    # What a person types at the prompt goes to gcloud's standard input, not to its arguments.
    asked = calls(project, "nothing", "secrets.sh")
    assert [call[1:5] for call in asked] == [["secrets", "versions", "add", "API_KEY"]]
    assert "a secret's value" not in json.dumps(asked)


def test_warnings_name_the_function_and_what_to_do(project):
    words = project.generate("--cpu", "0.5").stderr
    for part in ("onUser: NOT GENERATED: Eventarc has no events of Auth",
                 "checkSignUp: Auth asks it only in a project with Identity Platform",
                 "search: with less than 1 CPU an instance runs one invocation at a time",
                 "embedMessage: production retries for 24 hours, not 3 times"):
        assert part in words
        assert part in project.text("README.md")


@pytest.mark.parametrize("dependency, warns", [
    ('.package(name: "hearth", path: "/home/ann/.local/lib/hearth")', True),
    ('.package(path: "../models")', True), ('.package(path: "models")', False),
    ('.package(url: "https://git.example.com/hearth", branch: "main")', False)])
def test_a_folder_that_the_image_lacks_is_warned_of(project, dependency, warns):
    (project.folder / "Package.swift").write_text(f"dependencies: [\n  {dependency}\n],\n",
                                                  encoding="utf-8")
    assert ("which is not in the image" in project.generate().stderr) == warns


def test_the_difference_is_in_words_and_in_the_exit_code(project):
    reply = project.run("--diff")
    assert reply.returncode == 1 and "+ service us-central1/embedmessage" in reply.stdout
    assert not project.out.exists()
    project.generate()
    reply = project.run("--diff")
    assert (reply.returncode, reply.stdout) == (0, "Nothing changed.\n")

    changed = {name: dict(function) for name, function in FUNCTIONS.items() if name != "web"}
    changed["search"]["availableMemoryMb"] = 2048
    changed["added"] = {"callableTrigger": {}}
    project.write(changed)
    reply = project.run("--diff")
    assert reply.returncode == 1
    assert reply.stdout == (
        "- service europe-west1/web\n- service us-east1/web\n+ service us-central1/added\n"
        "~ service us-central1/search\n    memory: 256 MiB -> 2048 MiB\n")
    project.write(FUNCTIONS)
    assert project.run("--diff").returncode == 0

    with open(project.out / "gcloud.sh", "a", encoding="utf-8") as script:
        script.write("echo mine\n")
    reply = project.run("--diff")
    assert reply.returncode == 1 and "gcloud.sh was edited" in reply.stdout


def test_an_edited_file_is_reported_and_kept(project):
    project.generate()
    edited = project.text("main.tf") + "# mine\n"
    (project.out / "main.tf").write_text(edited, encoding="utf-8")
    changed = {name: dict(function) for name, function in FUNCTIONS.items()}
    changed["search"]["availableMemoryMb"] = 2048
    project.write(changed)
    # The edit is reported beside the change of a function.
    reply = project.run("--diff")
    assert reply.returncode == 1
    assert "~ service us-central1/search\n" in reply.stdout
    assert "! main.tf was edited" in reply.stdout and "gcloud.sh was" not in reply.stdout

    reply = project.generate()
    assert "production/main.tf was edited; the edited text is kept in production/main.tf.old" \
        in reply.stdout
    assert project.text("main.tf.old") == edited and "# mine" not in project.text("main.tf")
    assert sorted(file.name for file in project.out.iterdir() if "old" in file.name) == [
        "main.tf.old"]
    assert project.run("--diff").returncode == 0
    # Another edit does not replace the text of the first.
    (project.out / "main.tf").write_text("# again\n", encoding="utf-8")
    project.generate()
    assert project.text("main.tf.old") == edited and project.text("main.tf.old.2") == "# again\n"


def test_a_record_without_hashes_counts_as_not_edited(project):
    project.generate()
    record = json.loads(project.text("hearth-production.json"))
    del record["files"]
    (project.out / "hearth-production.json").write_text(json.dumps(record), encoding="utf-8")
    (project.out / "main.tf").write_text("# mine\n", encoding="utf-8")
    assert "main.tf was edited, or written by another version" in project.run("--diff").stdout
    assert "edited" not in project.generate().stdout
    assert not (project.out / "main.tf.old").exists()
    # With a record that nobody can read, what differs is kept.
    (project.out / "main.tf").write_text("# mine\n", encoding="utf-8")
    (project.out / "hearth-production.json").write_text("<<<<<<< mine\n", encoding="utf-8")
    assert project.run("--diff").returncode == 2
    project.generate()
    assert project.text("main.tf.old") == "# mine\n"


def write_indexes(project, **values):
    index = {"collectionGroup": "messages", "queryScope": "COLLECTION",
             "fields": [{"fieldPath": "a", "order": "ASCENDING"}], **values}
    (project.folder / "firestore.indexes.json").write_text(
        json.dumps({"indexes": [index]}), encoding="utf-8")


@pytest.mark.parametrize("values, words", [
    ({"queryScope": "COLLECTION$(touch x)"}, "give COLLECTION, COLLECTION_GROUP or"),
    ({"fields": [{"fieldPath": "a", "order": "`id`"}]}, "give ASCENDING or DESCENDING"),
    ({"fields": [{"fieldPath": "a", "arrayConfig": "ANY"}]}, "give CONTAINS")])
def test_an_unknown_value_in_the_indexes_is_refused(project, values, words):
    write_indexes(project, **values)
    reply = project.run()
    assert reply.returncode == 1
    assert "firestore.indexes.json: " in reply.stderr and words in reply.stderr
    assert not project.out.exists()
    assert project.run("--diff").returncode == 2


def test_a_text_of_several_lines_is_one_line_of_the_difference(project):
    write_indexes(project, collectionGroup="a\n+ topic faked")
    lines = project.run("--diff").stdout.splitlines()
    assert "+ topic faked (a ASCENDING) COLLECTION" not in lines
    assert "+ index a\\n+ topic faked (a ASCENDING) COLLECTION" in lines


@pytest.mark.parametrize("name", ["GCLOUD_PROJECT", "FUNCTION_TARGET", "PORT", "K_SERVICE"])
def test_a_secret_with_a_name_that_is_taken_is_refused(project, name):
    project.write({"search": {
        "callableTrigger": {}, "secretEnvironmentVariables": [{"key": name}]}})
    reply = project.run()
    assert reply.returncode == 1 and f"search has the secret {name}" in reply.stderr
    assert not project.out.exists()


def test_a_small_rate_stays_above_0(project):
    project.write({"work": {"taskQueueTrigger": {
        "rateLimits": {"maxDispatchesPerSecond": 0.0001}}}})
    project.generate()
    queue = one(calls(project, "nothing", "gcloud.sh"), "tasks", "queues", "create", "work")
    assert flag(queue, "--max-dispatches-per-second") == ["0.0001"]
    assert "max_dispatches_per_second = 0.0001\n" in project.text("main.tf")


@pytest.mark.parametrize("options,words", [
    (["--region", "Europe West"], "--region"),
    (["--cpu", "99"], "--cpu"),
    (["--no-functions"], "--no-functions"),
    (["--executable", "/nowhere"], "not an executable file"),
    (["--project", "a b"], "--project"),
])
def test_wrong_usage_ends_with_2(project, options, words):
    reply = project.run(*options)
    assert reply.returncode == 2 and words in reply.stderr
    assert not project.out.exists()


def test_names_that_collide_are_refused(project):
    project.write({"sendMail": {"callableTrigger": {}}, "sendmail": {"callableTrigger": {}}})
    reply = project.run()
    assert reply.returncode == 1
    assert "sendMail and sendmail would both be the service sendmail" in reply.stderr
    # diff reports trouble with 2.
    assert project.run("--diff").returncode == 2


def test_files_of_somebody_else_are_kept(project):
    project.out.mkdir()
    (project.out / "main.tf").write_text("# mine\n", encoding="utf-8")
    reply = project.run()
    assert reply.returncode == 1 and "--out" in reply.stderr
    assert project.text("main.tf") == "# mine\n"


def test_the_commands_of_the_page_are_of_gcloud(tmp_path):
    page = (ROOT / "docs" / "production.md").read_text(encoding="utf-8")
    commands = [line.removeprefix("url=$(").removesuffix(")") if "url=" in line else line
                for line in page.splitlines() if line.startswith(("gcloud ", "url=$(gcloud "))]
    assert len(commands) > 8
    assert lint([shlex.split(command) for command in commands], tmp_path) == []


@pytest.mark.parametrize("binary", ["psst-functions", "SampleFunctions"])
def test_the_functions_of_this_repository(tmp_path, binary):
    project = Project(tmp_path)
    for name in ("firestore.rules", "firestore.indexes.json"):
        shutil.copy(ROOT / name, tmp_path)
    project.binary = ROOT / ".build" / CONFIGURATION / binary
    project.generate()
    assert lint(calls(project, "nothing", "gcloud.sh"), tmp_path) == []
    if terraform := shutil.which("terraform"):
        subprocess.run(
            [terraform, "fmt", "-check"], cwd=project.out, check=True, timeout=60,
            env={**os.environ, "TF_CLI_CONFIG_FILE": os.devnull})
