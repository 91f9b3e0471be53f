#!/bin/sh
# Builds the reference and the tutorials of the public libraries as one site in .build/docs.
# A link to what is not there fails.
set -eu

site=.build/docs
libraries="FunctionsRuntime FirestoreClient OutboundHTTP Cryptography FunctionsTesting"

targets=
for library in $libraries; do targets="$targets --target $library"; done
rm -rf "$site"
# shellcheck disable=SC2086
HEARTH_DOCS=1 swift package --disable-sandbox generate-documentation $targets \
  --enable-experimental-combined-documentation --warnings-as-errors --output-path "$site"

echo "Look at it with:  python3 -m http.server -d $site 8000"
echo "  http://localhost:8000/documentation                 the libraries"
echo "  http://localhost:8000/tutorials/functions-in-swift  from an empty folder to a deployed function"
