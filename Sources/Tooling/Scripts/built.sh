#!/bin/sh
# Builds Psst and hearth where that is needed: `built.sh auto`, `built.sh debug` or `built.sh
# release`. Prints the configuration, debug or release; the rest goes to stderr.
# `auto` takes the release build while no source is newer, else debug, which builds within seconds
# after a change.
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
  echo "Running the release build, which is up to date." >&2
  echo release
  exit
fi
if [ "$configuration" = auto ]; then
  configuration=debug
  echo "No release build is up to date, so this runs debug; CONFIGURATION=release forces release." >&2
fi
make --no-print-directory build CONFIGURATION="$configuration" >&2
echo "$configuration"
