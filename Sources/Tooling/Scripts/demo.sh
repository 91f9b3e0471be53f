#!/bin/sh
# Runs Psst's assistant without a model: `demo.sh auto`, `demo.sh debug` or `demo.sh release`, as
# built.sh has it; `demo.sh debug no-build` takes what was built last. The answers of
# Sources/Tooling/Demo/answers.json stand in for a model's, and the data are those of the export
# Sources/Tooling/Demo/seed. Takes free ports and keeps nothing.
set -eu

demo=Sources/Tooling/Demo

# What runs beside the suite, with its addresses in the environment.
if [ "$1" = beside-suite ]; then
  folder=$2
  hearth=$3/hearth
  trap 'rm -rf "$folder"' EXIT
  trap 'kill "$sleeping" 2>/dev/null || :; exit 0' INT TERM HUP
  sleeping=
  "$hearth" import "$folder/seed" --fire-triggers
  # The messages can be found when their events are handled.
  while [ "$("$hearth" events list --state pending --json | tr -d '[:space:]')" != '[]' ]; do
    sleep 0.2
  done
  cat <<END

The demo runs. Its data: the trainer tina, her clients carl, dana and erik, and their chats.
No model is asked: the answers are scripted, and each says so by "model": "scripted".

In a second terminal:
  export PATH="$3:\$PATH"
  export FIREBASE_EMULATOR_HUB=$FIREBASE_EMULATOR_HUB
  export FIRESTORE_EMULATOR_HOST=$FIRESTORE_EMULATOR_HOST

1. Ask. The answer names its sources:
  hearth call chatWithAI --as tina --stream --data '{"message": "Which clients mentioned injuries?"}'

2. Have yourself reminded, and see the reminder in Firestore:
  hearth call chatWithAI --as tina --stream --data '{"message": "Remind me tomorrow at 9 to ask Carl about his knee"}'
  curl -s -w '\n' -H 'Authorization: Bearer owner' "http://\$FIRESTORE_EMULATOR_HOST/v1/projects/$GCLOUD_PROJECT/databases/(default)/documents/reminders"

3. Have a message proposed, and confirm it by the action's "id":
  hearth call chatWithAI --as tina --stream --data '{"message": "Write to Carl that we skip squats this week"}'
  hearth call confirmAction --as tina --data '{"accept": true, "actionId": "ID"}'

4. Sum up a chat, find what was said about a message before, have a reminder suggested:
  hearth call summarizeChat --as tina --data '{"chatId": "tina-carl"}'
  hearth call surfaceContext --as tina --data '{"chatId": "tina-carl", "messageId": "m2"}'
  hearth call suggestReminder --as tina --data '{"chatId": "tina-erik", "messageId": "m1"}'

5. Have two calls scheduled that overlap; a trigger reminds of it. Look as in 2:
  hearth call chatWithAI --as tina --stream --data '{"message": "Put a call with Carl into my calendar, tomorrow from 9:00 to 10:00"}'
  hearth call chatWithAI --as tina --stream --data '{"message": "Put a call with Dana into my calendar, tomorrow from 9:30 to 10:00"}'

6. Do now what is done each morning: remind of clients who are silent. Look as in 2:
  hearth functions run remindInactiveClients

docs/assistant.md walks through it, and says how to use a real model. Ctrl-C stops the demo.
END
  # Without its suite the demo has no reason to go on, however the suite ended.
  while kill -0 "$PPID" 2>/dev/null; do
    sleep 1 &
    sleeping=$!
    wait $sleeping
  done
  exit 0
fi

configuration=$1
if [ "${2-}" != no-build ]; then
  configuration=$(sh "$(dirname "$0")/built.sh" "$1")
  swift build -c "$configuration" --product openai-stub >&2
fi
binaries=$PWD/.build/$configuration
mkdir -p .build/demo
folder=$(mktemp -d "$PWD/.build/demo/XXXXXX")
trap 'rm -rf "$folder"' EXIT

cp -R "$demo/seed" firestore.rules .firebaserc "$folder"
# Without one, the project would be the checkout, in which the folder is.
echo '{}' >"$folder/firebase.json"
tomorrow=$(date -u -d tomorrow +%F 2>/dev/null || date -u -v+1d +%F)
sed "s/@TOMORROW@/$tomorrow/g" "$demo/answers.json" >"$folder/answers.json"

# The stub ends with its input, which this process holds open, and after it the suite.
mkfifo "$folder/input" "$folder/output"
"$binaries/openai-stub" --script "$folder/answers.json" <"$folder/input" >"$folder/output" &
exec 3>"$folder/input"
read -r listening <"$folder/output"
port=${listening##*:}

cat >"$folder/.env" <<END
OPENAI_BASE_URL=http://127.0.0.1:${port%\}}/v1
PSST_CHAT_MODEL=scripted
PSST_EMBEDDING_MODEL=hashed-words-1
END
echo 'OPENAI_API_KEY=scripted' >"$folder/.secret.local"

script=$PWD/$0
cd "$folder"
exec "$binaries/hearth" exec --settle-timeout 0 --executable "$binaries/psst-functions" -- \
  sh "$script" beside-suite "$folder" "$binaries"
