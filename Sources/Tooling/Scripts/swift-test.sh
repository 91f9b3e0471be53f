#!/bin/sh
# Runs the built tests with the given options: `swift-test.sh CONFIGURATION OPTIONS ...`. When tests
# fail, what failed and the seeds that repeat it stand together at the end, what failed last: a
# reader may see only the end. A run that hangs is ended, and the tests that did not end are listed.
set -u
configuration=$1
shift
# Several times what the longest group of tests takes on two cores; 0 for no limit.
limit=${HEARTH_TEST_SECONDS:-900}

# The bundle itself ends at the limit; `swift test` would end and leave it running.
bundle=.build/$configuration/hearthPackageTests.xctest
if [ -f "$bundle" ]; then
  set -- "$bundle" --testing-library swift-testing "$@"
else
  set -- swift test -c "$configuration" --skip-build "$@"
fi
# macOS has no timeout.
command -v timeout >/dev/null && set -- timeout --foreground --kill-after 10 "$limit" "$@"

# Ends what the tests started and could not end, because they were ended themselves.
set -- env HEARTH_TEST_RUN=$$ "$@"
end_leftovers() {
  for variables in /proc/[0-9]*/environ; do
    grep -qzx "HEARTH_TEST_RUN=$$" "$variables" 2>/dev/null || continue
    process=${variables#/proc/}
    kill -KILL "${process%/environ}" 2>/dev/null
  done
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
{ "$@" 2>&1; echo $? >"$work/status"; end_leftovers; } | tee "$work/log"
status=$(cat "$work/status")
# Without a status, as on a full disk, nothing is known to have passed.
[ "${status:=1}" != 0 ] || exit 0

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
