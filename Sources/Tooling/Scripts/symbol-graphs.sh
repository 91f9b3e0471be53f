#!/bin/sh
# Writes the symbol graphs of built modules into a folder, for docc: `symbol-graphs.sh CONFIGURATION
# LEVEL FOLDER MODULE ...`, with the declarations of at least that access level.
set -eu

configuration=$1
level=$2
folder=$3
shift 3

built=$(cd ".build/$configuration" && pwd -P)
triple=$(swift -print-target-info | sed -n 's/.*"unversionedTriple": "\(.*\)".*/\1/p')
# The plan of the build names the maps of the C modules that the Swift modules import.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tr '",' '\n\n' <".build/$configuration.yaml" | sed -n '/^-fmodule-map-file=/p' | sort -u \
  >"$work/maps"
printf '%s\n' "$@" >"$work/modules"
set --
while IFS= read -r map; do set -- "$@" -Xcc "$map"; done <"$work/maps"

mkdir -p "$folder"
xargs -P 2 -I MODULE swift symbolgraph-extract -module-name MODULE \
  -I "$built/Modules" "$@" -target "$triple" -minimum-access-level "$level" \
  -skip-synthesized-members -skip-inherited-docs -output-dir "$folder" <"$work/modules"
