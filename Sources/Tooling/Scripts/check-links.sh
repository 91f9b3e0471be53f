#!/bin/sh
# Checks that every relative link of the documentation leads to a file that exists, and where it names
# a heading, that the page has it. Prints `file: link` for each that does not, and then exits with 1.
set -eu
cd "$(dirname "$0")/../../.."

# The links of a Markdown file, one a line, code blocks left out.
links() {
  awk '/^ *```/ { code = !code; next } !code' "$1" | sed 's/`[^`]*`//g' |
    grep -o '](\([^)]*\))' | sed 's/^](//; s/)$//; s/ ".*"$//' || true
}

# The anchors of a Markdown file's headings, one a line, as GitHub and its kin make them.
anchors() {
  awk '/^ *```/ { code = !code; next } !code && /^#+ /' "$1" |
    sed 's/^#* //; s/[^A-Za-z0-9 _-]//g; s/ /-/g' | tr '[:upper:]' '[:lower:]'
}

dead=$(
  for file in *.md docs/*.md Sources/README.md functions/README.md Tests/Benchmarks/README.md; do
    links "$file" | while IFS= read -r link; do
      case $link in *://* | mailto:*) continue ;; esac
      path=${link%%#*} page=$file
      [ -z "$path" ] || page=$(dirname "$file")/$path
      case $link in *#*) anchor=${link#*#} ;; *) anchor= ;; esac
      [ -e "$page" ] && { [ -z "$anchor" ] || anchors "$page" | grep -qxF -- "$anchor"; } ||
        echo "$file: $link"
    done
  done
)
[ -z "$dead" ] || { echo "$dead"; exit 1; }
