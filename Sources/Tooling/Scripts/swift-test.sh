#!/bin/sh
# Runs `swift test --skip-build` with the given options. When tests fail, what failed and the seeds
# that repeat it stand together at the end, what failed last: a reader may see only the end. A run
# that hangs is ended, and the tests that did not end are listed.
set -u
# Several times what the longest group of tests takes on two cores; 0 for no limit.
limit=${HEARTH_TEST_SECONDS:-900}
command -v timeout >/dev/null && bounded="timeout --foreground --kill-after 10 $limit" || bounded=

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
{ $bounded swift test --skip-build "$@" 2>&1; echo $? >"$work/status"; } | tee "$work/log"
status=$(cat "$work/status")
[ "$status" -ne 0 ] || exit 0

if [ "$status" -eq 124 ] || [ "$status" -eq 137 ]; then
  echo
  echo "The tests did not end within $limit seconds. Begun and not ended:"
  sed -nE 's/^◇ (Test|Suite) (.*) started\.$/\1 \2/p' "$work/log" | grep -v 'Test case' |
    while IFS= read -r name; do
      grep -qF -e "✔ $name passed" -e "✔ $name with" -e "✘ $name failed" -e "✘ $name with" \
        "$work/log" || echo "  $name" | cut -c1-200
    done
fi

echo
echo "HEARTH_TEST_SEED repeats random tests; this run's seeds:"
grep -oE '[[:alnum:]_]+\([^)]*\): HEARTH_TEST_SEED=[0-9]+' "$work/log" | sort -u |
  sed 's/HEARTH_TEST_SEED=//' | paste -sd ';' -
echo "What failed:"
grep -E '^(✘|↳)|error: |Fatal error' "$work/log" | grep -vE '^(↳ (Testing|Target|Swift)|◇)' |
  cut -c1-1000 | tail -40
exit "$status"
