#!/bin/sh
# Runs `swift test --skip-build` with the given options. When tests fail, what failed and the seeds
# that repeat it stand together at the end, since hundreds of lines may lie between them.
set -u

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
{ swift test --skip-build "$@" 2>&1; echo $? >"$work/status"; } | tee "$work/log"
status=$(cat "$work/status")
[ "$status" -ne 0 ] || exit 0

echo
echo "What failed:"
grep -E '^(✘|↳)|error: |Fatal error' "$work/log" | grep -vE '^↳ (Testing|Target|Swift)' |
  cut -c1-1000 | tail -60
echo "HEARTH_TEST_SEED repeats random tests:"
grep -E 'HEARTH_TEST_SEED=[0-9]+' "$work/log" | sort -u
exit "$status"
