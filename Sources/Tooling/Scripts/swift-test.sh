#!/bin/sh
# Runs `swift test --skip-build` with the given options. When tests fail, what failed and the seeds
# that repeat it stand together at the end, what failed last: a reader may see only the end.
set -u

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
{ swift test --skip-build "$@" 2>&1; echo $? >"$work/status"; } | tee "$work/log"
status=$(cat "$work/status")
[ "$status" -ne 0 ] || exit 0

echo
echo "HEARTH_TEST_SEED repeats random tests; this run's seeds:"
grep -oE '[[:alnum:]_]+\([^)]*\): HEARTH_TEST_SEED=[0-9]+' "$work/log" | sort -u |
  sed 's/HEARTH_TEST_SEED=//' | paste -sd ';' -
echo "What failed:"
grep -E '^(✘|↳)|error: |Fatal error' "$work/log" | grep -vE '^(↳ (Testing|Target|Swift)|◇)' |
  cut -c1-1000 | tail -40
exit "$status"
