#!/bin/sh
# Compares the public declarations of the libraries for functions with those of an earlier commit:
# `api-changes.sh [BASELINE]`, by default the last version's tag. Exits with 1 if packages that use
# the libraries may have to change. The first time for a baseline it builds that, too, for minutes.
set -eu

# On the commit of a version, the version before.
baseline=${1:-$(git describe --tags --abbrev=0 --match 'v[0-9]*' --match '[0-9]*' HEAD^ 2>/dev/null || true)}
if [ -z "$baseline" ]; then
  echo "There is no earlier version's tag here, so nothing was compared. Fetch the tags with"
  echo "\`git fetch --tags\`, or name a commit:  make api-changes BASELINE=origin/main"
  exit 0
fi
commit=$(git rev-parse -q --verify "$baseline^{commit}") || {
  echo "api-changes: $baseline is no commit of this clone; fetch it, or name another one" >&2
  exit 1
}
folder=.build/api-baselines

compare() {
  swift package --disable-sandbox diagnose-api-breaking-changes "$commit" --baseline-dir "$folder" \
    --products FunctionsRuntime FirestoreClient DatabaseClient OutboundHTTP Cryptography FunctionsTesting
}

if [ ! -e "$folder/$commit/public" ]; then
  echo "Building $baseline to list its public declarations ..."
  rm -rf "${folder:?}/$commit"
  mkdir -p "$folder"
  # What it compares is left aside: it includes declarations of `package` access.
  compare >"$folder/log" 2>&1 || [ -e "$folder/$commit" ] || {
    tail -n 40 "$folder/log" >&2
    exit 1
  }
  rm -rf "$folder/$commit-checkout"
  python3 - "$folder/$commit" <<'END'
import json, pathlib, sys

def keep_public(node):
    if isinstance(node, list):
        return [keep_public(one) for one in node
                if not (isinstance(one, dict) and one.get("isInternal"))]
    if isinstance(node, dict):
        return {name: keep_public(value) for name, value in node.items()}
    return node

for file in pathlib.Path(sys.argv[1]).glob("*.json"):
    file.write_text(json.dumps(keep_public(json.loads(file.read_text()))))
END
  touch "$folder/$commit/public"
fi
echo "Comparing the public declarations with those of $baseline ..."
compare
