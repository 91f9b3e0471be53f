#!/bin/sh
# Checks what is written about the code: the page of each module links only to what is there, and the
# tutorial shows what `hearth init` writes: `check-docs.sh CONFIGURATION`, with the modules as built.
# `check-docs.sh page CATALOG GRAPHS` checks one page.
set -eu

if [ "${1:-}" = page ]; then
  catalog=$2
  graphs=$3
  module=$(basename "$catalog" .docc)
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  mkdir "$work/graphs"
  for graph in "$graphs/$module.symbols.json" "$graphs/$module@"*.symbols.json; do
    [ ! -e "$graph" ] || ln -s "$graph" "$work/graphs"
  done
  [ -e "$work/graphs/$module.symbols.json" ] || {
    echo "$catalog: no module is called $module; a page has the name of its module." >&2
    exit 1
  }
  # In Xcode's toolchain docc is not on the PATH.
  command -v docc >/dev/null 2>&1 || docc() { xcrun docc "$@"; }
  docc convert "$catalog" --additional-symbol-graph-dir "$work/graphs" --output-dir "$work/site" \
    --fallback-display-name "$module" --fallback-bundle-identifier "$module" \
    --warnings-as-errors >"$work/log" 2>&1 && exit 0
  # One write, so that pages checked at the same time do not mix their lines.
  { echo "$catalog:"; grep -v '^$' "$work/log"; } >"$work/problems"
  cat "$work/problems" >&2
  exit 1
fi

# The lines of a template as they are in a package that `hearth init` has written.
written() {
  sed 's/^\(@testable \)*import Starter/\1import /' "$1" >"$work/source"
  { grep '^import ' "$work/source" | LC_ALL=C sort; grep -v '^import ' "$work/source"; } >"$2"
}

# Fails when a file of the tutorial has a line that its template has not, in the same order.
check_step() {
  written "$templates/$2" "$work/template"
  written "$resources/$1" "$work/step"
  if diff "$work/template" "$work/step" | grep '^>' >"$work/strange"; then
    echo "$resources/$1: not in $templates/$2:" >&2
    cat "$work/strange" >&2
    failed=1
  fi
  # What a reader has at the end is what `hearth init` has written.
  if [ "${3:-}" = whole ] && ! cmp -s "$work/template" "$work/step"; then
    echo "$resources/$1: differs from $templates/$2" >&2
    failed=1
  fi
}

failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
templates=Sources/Server/HearthCLI/Templates
resources=Sources/Author/FunctionsRuntime/FunctionsRuntime.docc/Resources

functions=Sources/Functions/WelcomeFunctions.swift
tests=Tests/FunctionsTests/WelcomeTests.swift
check_step greeting.swift.txt Sources/Models/Greeting.swift whole
check_step rules.txt firestore.rules whole
check_step welcome-1.swift.txt $functions
check_step welcome-2.swift.txt $functions
check_step welcome-3.swift.txt $functions whole
check_step welcome-broken.swift.txt $functions
check_step tests-1.swift.txt $tests
check_step tests-2.swift.txt $tests whole
check_step tests-rules.swift.txt Tests/FunctionsTests/RulesTests.swift whole
check_step worker.swift.txt Sources/Worker/main.swift whole

# Members that take or give another module's types are not in these graphs: pages link to types.
find Sources emulator triggers functions Tests -name '*.docc' -type d >"$work/pages"
# shellcheck disable=SC2046
sh "${0%/*}/symbol-graphs.sh" "$1" internal "$work/graphs" \
  $(sed 's|.*/||; s|\.docc$||' "$work/pages" | sort -u)
xargs -P 4 -I CATALOG sh "$0" page CATALOG "$work/graphs" <"$work/pages" || failed=1
[ "$failed" = 0 ] || exit 1
echo "docs: $(wc -l <"$work/pages") pages and the tutorial, no findings"
