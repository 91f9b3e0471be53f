#!/bin/sh
# Builds the reference and the tutorials of the public libraries as one site in .build/docs, from
# the modules that were built: `docs.sh CONFIGURATION`. A link to what is not there fails.
set -eu

site=.build/docs
# Each after those that its pages may link to.
libraries="Cryptography OutboundHTTP FirestoreClient DatabaseClient FunctionsRuntime FunctionsTesting"
scripts=${0%/*}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck disable=SC2086
sh "$scripts/symbol-graphs.sh" "$1" public "$work/graphs" $libraries
# In Xcode's toolchain docc is not on the PATH.
command -v docc >/dev/null 2>&1 || docc() { xcrun docc "$@"; }
dependencies=
for library in $libraries; do
  mkdir "$work/$library"
  for graph in "$work/graphs/$library.symbols.json" "$work/graphs/$library@"*.symbols.json; do
    [ ! -e "$graph" ] || mv "$graph" "$work/$library"
  done
  # shellcheck disable=SC2086
  docc convert "Sources/Author/$library/$library.docc" --additional-symbol-graph-dir "$work/$library" \
    --fallback-display-name "$library" --fallback-bundle-identifier "$library" --warnings-as-errors \
    --enable-experimental-external-link-support $dependencies \
    --output-dir "$work/$library.doccarchive"
  dependencies="$dependencies --dependency $work/$library.doccarchive"
done
rm -rf "$site"
docc merge "$work"/*.doccarchive --output-path "$site"

echo "Look at it with:  python3 -m http.server -d $site 8000"
echo "  http://localhost:8000/documentation                 the libraries"
echo "  http://localhost:8000/tutorials/functions-in-swift  from an empty folder to a deployed function"
