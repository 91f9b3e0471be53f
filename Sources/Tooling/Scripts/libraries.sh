#!/bin/sh
# Packs the libraries for functions and their tests, once compiled, as a Swift package that others
# can depend on without compiling Hearth: `libraries.sh CONFIGURATION FOLDER`.
#
# The package holds one static library, an artifact bundle (SE-0482), with the modules of all targets
# beside it. They fit only the compiler that made them.
set -eu

configuration=$1
folder=$2
name=HearthLibraries

swift build -c "$configuration" --product $name
built=$(swift build -c "$configuration" --show-bin-path)
# The plan of the build names the module maps that a user of the libraries needs.
plan=.build/$configuration.yaml
triple=$(swift -print-target-info | sed -n 's/.*"unversionedTriple": "\(.*\)".*/\1/p')

new=$folder.new
rm -rf "$new"
include=$new/$name.artifactbundle/include
mkdir -p "$include" "$new/Sources/SystemLibraries"

# One object for each module, because a linker takes from an archive only the objects that others
# name. It would leave out those of a module with conformances that are looked up at run time.
objects=$built/$name.product/Objects.LinkFileList
modules=$(sed -n 's|.*/\([A-Za-z0-9_]*\)\.build/.*|\1|p' "$objects" | sort -u)
mkdir "$new/objects"
for module in $modules; do
  grep "/$module\.build/" "$objects" >"$new/objects/$module.list"
  ld -r -o "$new/objects/$module.o" "@$new/objects/$module.list"
done
ar crs "$new/$name.artifactbundle/lib$name.a" "$new"/objects/*.o
rm -r "$new/objects"

# The Swift modules of the library's targets.
for module in $modules; do
  for kind in swiftmodule swiftdoc; do
    [ ! -e "$built/Modules/$module.$kind" ] || cp "$built/Modules/$module.$kind" "$include/"
  done
done

# The C modules, each with its headers in a folder of its own.
tr '",' '\n\n' <"$plan" | sed -n 's/^-fmodule-map-file=//p' | sort -u | while read -r map; do
  module=$(sed -n 's/^ *\(explicit \)\{0,1\}\(framework \)\{0,1\}module \([A-Za-z0-9_]*\).*/\3/p' "$map" | head -n 1)
  # SwiftPM's own maps name the folder of the headers; other maps lie in it.
  headers=$(sed -n 's/^ *umbrella \(header \)\{0,1\}"\(\/.*\)".*/\2/p' "$map" | head -n 1)
  case $headers in
    *.h) headers=${headers%/*} ;;
    '') headers=${map%/*} ;;
  esac
  mkdir -p "$include/$module"
  cp -R "$headers/." "$include/$module/"
  sed "s|\"$headers/|\"|; s|\"$headers\"|\".\"|" "$map" >"$include/$module/module.modulemap"
  echo "extern module $module \"$module/module.modulemap\"" >>"$include/module.modulemap"
done

cat >"$new/$name.artifactbundle/info.json" <<JSON
{
  "schemaVersion": "1.0",
  "artifacts": {
    "$name": {
      "version": "1.0.0",
      "type": "staticLibrary",
      "variants": [
        {
          "path": "lib$name.a",
          "supportedTriples": ["$triple"],
          "staticLibraryMetadata": {
            "headerPaths": ["include"],
            "moduleMapPath": "include/module.modulemap"
          }
        }
      ]
    }
  }
}
JSON

# `hearth doctor` compares it with the compiler in use.
swift --version 2>/dev/null | head -n 1 >"$new/compiler"

cat >"$new/Package.swift" <<SWIFT
// swift-tools-version: 6.2
// Hearth's libraries, compiled by \`make install\` with $(swift --version 2>/dev/null | head -n 1).
// With another compiler, run \`make install\` in Hearth's checkout again.

import PackageDescription

let libraries = [
  "FunctionsRuntime", "FirestoreClient", "DatabaseClient", "OutboundHTTP", "Cryptography",
  "FunctionsTesting",
]

let package = Package(
  name: "hearth",
  products: libraries.map { .library(name: \$0, targets: ["SystemLibraries", "$name"]) },
  targets: [
    .binaryTarget(name: "$name", path: "$name.artifactbundle"),
    .target(
      name: "SystemLibraries",
      dependencies: ["$name"],
      linkerSettings: [
        "curl", "sqlite3", "z", "crypto", "Foundation", "FoundationInternationalization",
        "FoundationNetworking", "swiftRuntime",
      ].map { .linkedLibrary(\$0) }
    ),
  ]
)
SWIFT
echo "// The libraries are in $name.artifactbundle." >"$new/Sources/SystemLibraries/SystemLibraries.swift"

rm -rf "$folder"
mkdir -p "${folder%/*}"
mv "$new" "$folder"
