#!/bin/sh
# Runs Psst on the emulator: `start.sh auto`, `start.sh debug` or `start.sh release`.
# `auto` takes the release build while no source is newer, else debug, which builds within seconds
# after a change. `hearth start` builds the functions the same way.
set -eu

# Whether a file of the sources is newer than the file given.
outdates() {
  [ -n "$(find Package.swift Sources emulator triggers functions -type f -newer "$1" \
    ! -path '*.docc/*' ! -path 'Sources/Tooling/*' ! -name '*.md' -print | head -n 1)" ]
}

has_fresh_release() {
  [ -x .build/release/hearth ] && [ -x .build/release/psst-functions ] || return 1
  # A build writes only what its sources changed; `make build` leaves the time at which it began.
  [ -e .build/built-release ] && ! outdates .build/built-release && return 0
  ! outdates .build/release/hearth && ! outdates .build/release/psst-functions
}

configuration=$1
if [ "$configuration" = auto ] && has_fresh_release; then
  echo "Running the release build, which is up to date."
  exec .build/release/hearth start --configuration release
fi
if [ "$configuration" = auto ]; then
  configuration=debug
  echo "No release build is up to date, so this runs debug; CONFIGURATION=release make start forces release."
fi
make --no-print-directory build CONFIGURATION="$configuration"
exec ".build/$configuration/hearth" start --configuration "$configuration"
