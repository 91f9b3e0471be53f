#!/bin/sh
# Runs Psst on the emulator: `start.sh auto`, `start.sh debug` or `start.sh release`, as built.sh
# has it. `hearth start` builds the functions the same way.
set -eu

configuration=$(sh "$(dirname "$0")/built.sh" "$1")
exec ".build/$configuration/hearth" start --configuration "$configuration"
