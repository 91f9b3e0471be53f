#!/bin/sh
# Compares the public declarations of the libraries for functions with those of an earlier commit:
# `api-changes.sh [BASELINE]`, by default the last version's tag. Exits with 1 if packages that use
# the libraries may have to change. Builds both, so it takes minutes.
set -eu

# On the commit of a version, the version before.
baseline=${1:-$(git describe --tags --abbrev=0 --match 'v[0-9]*' --match '[0-9]*' HEAD^ 2>/dev/null || true)}
if [ -z "$baseline" ]; then
  echo "There is no earlier version's tag here, so nothing was compared. Fetch the tags with"
  echo "\`git fetch --tags\`, or name a commit:  make api-changes BASELINE=origin/main"
  exit 0
fi
git rev-parse -q --verify "$baseline^{commit}" >/dev/null || {
  echo "api-changes: $baseline is no commit of this clone; fetch it, or name another one" >&2
  exit 1
}
echo "Comparing the public declarations with those of $baseline ..."
swift package --disable-sandbox diagnose-api-breaking-changes "$baseline" \
  --products FunctionsRuntime FirestoreClient OutboundHTTP Cryptography FunctionsTesting
