#!/bin/sh
# Runs Psst with plenty of sample data to look at: `sample.sh auto`, `sample.sh debug` or
# `sample.sh release`, as built.sh has it; `sample.sh debug no-build` takes what was built last.
# Takes the usual ports and keeps nothing. START_OPTIONS has further options of `hearth start`,
# such as --firestore-port 0, and SAMPLE_OPTIONS of sample.py, such as --bulk 1000000.
set -eu

command -v python3 >/dev/null 2>&1 || {
  echo 'sample: python3 makes the sample data and is not installed' >&2
  exit 1
}
sample=$PWD/Sources/Tooling/Sample/sample.py
configuration=$1
if [ "${2-}" != no-build ]; then
  configuration=$(sh "$(dirname "$0")/built.sh" "$1")
  swift build -c "$configuration" --product openai-stub >&2
elif [ "$configuration" = auto ]; then
  configuration=debug
  if [ -x .build/release/hearth ] && [ -x .build/release/psst-functions ]; then
    configuration=release
  fi
fi
binaries=$PWD/.build/$configuration
# Below .build, where what a kill leaves behind is found.
mkdir -p .build/sample
folder=$(mktemp -d "$PWD/.build/sample/XXXXXX")
suite=

finish() {
  trap - EXIT INT TERM HUP
  if [ -n "$suite" ]; then
    kill "$suite" 2>/dev/null || :
    wait "$suite" 2>/dev/null || :
  fi
  rm -rf "$folder"
}
trap finish EXIT
trap 'finish; exit 0' INT TERM HUP

cp firestore.rules .firebaserc "$folder"
# Without one, the project would be the checkout, in which the folder is.
echo '{}' >"$folder/firebase.json"
now=$(date -u +%Y-%m-%dT%H:%M:%SZ)

# The scripted model answers in place of a real one. It ends with its input, which this process
# holds open.
if [ -x "$binaries/openai-stub" ]; then
  # Each option is a word of its own.
  # shellcheck disable=SC2086
  python3 "$sample" --messages 3000 ${SAMPLE_OPTIONS-} --now "$now" --answers "$folder/answers.json"
  mkfifo "$folder/input" "$folder/output"
  "$binaries/openai-stub" --script "$folder/answers.json" <"$folder/input" >"$folder/output" &
  exec 3>"$folder/input"
  read -r listening <"$folder/output"
  port=${listening##*:}
  # Nobody who tries things out is to end at a limit.
  cat >"$folder/.env" <<END
OPENAI_BASE_URL=http://127.0.0.1:${port%\}}/v1
PSST_CHAT_MODEL=scripted
PSST_EMBEDDING_MODEL=hashed-words-1
PSST_USER_TOKENS_PER_DAY=100000000
PSST_SEARCHES_PER_MINUTE=1000
END
  echo 'OPENAI_API_KEY=scripted' >"$folder/.secret.local"
fi

cd "$folder"
mkfifo suite
# shellcheck disable=SC2086
"$binaries/hearth" start --ephemeral --json --log-format text ${START_OPTIONS-} \
  --executable "$binaries/psst-functions" >suite 2>log 3>&- &
suite=$!
read -r ready <suite || ready=
if [ -z "$ready" ]; then
  cat log >&2
  echo 'sample: the suite did not start. START_OPTIONS="--firestore-port 0" and the like choose' \
    'free ports.' >&2
  exit 1
fi

# The addresses and the token, in the variables that `hearth exec` sets.
environment=$(printf '%s' "$ready" | python3 -c '
import json, shlex, sys
suite = json.load(sys.stdin)
names = {"FIRESTORE_EMULATOR_HOST": "firestore", "FIREBASE_AUTH_EMULATOR_HOST": "auth",
         "FIREBASE_EMULATOR_HUB": "hub", "FUNCTIONS_EMULATOR_HOST": "functions", "console": "ui"}
with open(suite["serverFile"], encoding="utf-8") as server:
    values = {"GCLOUD_PROJECT": suite["project"], "HEARTH_TOKEN": json.load(server)["token"]}
for name, service in names.items():
    if service in suite["services"]:
        values[name] = "{host}:{port}".format(**suite["services"][service])
for name, value in values.items():
    print(f"export {name}={shlex.quote(value)}")')
eval "$environment"

# shellcheck disable=SC2086
python3 "$sample" --messages 3000 ${SAMPLE_OPTIONS-} --now "$now"
echo "  embedding the older messages ..." >&2
"$binaries/hearth" call backfillEmbeddings --admin \
  --data '{"dryRun": false, "confirm": "backfill"}' >embedded

# Prints the id of the first event in the state $1 of the function $2.
event_of() {
  "$binaries/hearth" events list --state "$1" --function "$2" --json |
    python3 -c 'import json, sys; print(*[event["id"] for event in json.load(sys.stdin)][:1])'
}
dead=$(event_of dead recordContact)
documents="http://$FIRESTORE_EMULATOR_HOST/v1/projects/$GCLOUD_PROJECT/databases/(default)/documents"

cat <<END

Psst runs with sample data.
${console:+  Console    http://$console/
}  Firestore  $FIRESTORE_EMULATOR_HOST, project $GCLOUD_PROJECT
  Auth       $FIREBASE_AUTH_EMULATOR_HOST

People, all with the password secret1:
  tina@example.com  trainer with 13 clients, the main one; owen, mei and samir are trainers, too
  carl@example.com  a client; lucia writes Spanish, jonas German, haruka Japanese
  greg@example.com  removed from Tina's contacts; walt, yuki and vera never were contacts
  pat@example.com   an old user without a role
  ada@example.com   has the claim admin

In a second terminal:
  export PATH="$binaries:\$PATH"
  export FIREBASE_EMULATOR_HUB=$FIREBASE_EMULATOR_HUB

1. Search. Without a model it compares words; docs/vectors.md says how to use one.
  hearth call semanticSearch --as tina --data '{"query": "asthma in cold air", "limit": 3}'
  hearth call semanticSearch --as tina --data '{"query": "dolor en el hombro", "limit": 3}'

2. Ask the assistant. Its answers are scripted, which "model": "scripted" says.
  hearth call chatWithAI --as tina --stream --data '{"message": "Who had asthma as a kid?"}'
  hearth call chatWithAI --as tina --stream --data '{"message": "Which clients mentioned injuries?"}'
  hearth call chatWithAI --as tina --stream --data '{"message": "Remind me tomorrow at 9 to ask Carl about his knee"}'
  hearth call summarizeChat --as tina --data '{"chatId": "tina-carl"}'

3. See what the migration would do: three contacts, and what it skips and why.
  hearth call migrateExistingChats --admin

4. See why an event has not succeeded, and correct the cause.
   A chat of almost 1 MiB has no room for its last message. Without its notes it has:
  hearth events show $dead
  hearth logs recordContact --level error
  curl -sX PATCH -H 'Authorization: Bearer owner' -o /dev/null -d '{"fields": {}}' '$documents/chats/odd-full-chat?updateMask.fieldPaths=notes'
  hearth events retry $dead

5. Follow messages to what they caused, such as the reminder of two overlapping calls:
  hearth events list
  hearth logs detectCalendarConflicts

6. Fill a large collection:
  python3 $sample --bulk 1000000

Ctrl-C stops it and removes its data. Its log until then: $folder/log

All of this can be done in the browser, too:  http://$console/
  1 Functions, semanticSearch · 3 Functions, migrateExistingChats · 4 and 5 Events · 6 Firestore
END
wait "$suite"
