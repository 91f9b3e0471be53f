#!/bin/sh
# Checks that what differs between Linux and macOS stands where both are thought of. Prints
# `file:line: problem` for each problem, and then exits with 1.
#
# - The C library is imported by LibC alone.
# - A branch for Glibc or Linux has an #else, or is one of the tests.
# - Calls and paths that only Linux has stand in such a branch.
# - Files are synced by syncToDisk, since on macOS fsync stops at the drive's cache.
# - Scripts use what the tools of macOS understand.
set -eu
[ $# = 0 ] || cd "$1"

found=$(
  find Sources emulator triggers functions Tests -name '*.swift' ! -path '*/Tidy/*' \
    ! -path '*/Templates/*' | LC_ALL=C sort | xargs awk '
  function report(line, problem) { printf "%s:%d: %s\n", file, line, problem }
  FNR == 1 { file = FILENAME; depth = 0; isShipped = FILENAME !~ /^Tests\// }
  { code = $0; sub(/^ +/, "", code) }
  code ~ /^\/\// { next }
  code ~ /^#if / {
    begun[++depth] = FNR
    test = code
    isLinux[depth] = test ~ /canImport\((Glibc|Musl)\)|os\(Linux\)|!canImport\(Darwin\)/
    isDarwin[depth] = test ~ /^#if canImport\(Darwin\)/
    needsElse[depth] = test ~ /^#if (canImport\((Glibc|Musl)\)|os\(Linux\))/
    next
  }
  code ~ /^#else/ {
    if (code ~ /^#else$/) { if (isDarwin[depth]) isLinux[depth] = 1; else isLinux[depth] = 0 }
    else isLinux[depth] = code ~ /Glibc|Musl|Linux/
    needsElse[depth] = 0
    next
  }
  code ~ /^#endif/ {
    if (needsElse[depth] && isShipped) report(begun[depth], "only Linux has a branch; add #else")
    depth--
    next
  }
  {
    within = 0
    for (i = 1; i <= depth; i++) if (isLinux[i]) within = 1
    if (code ~ /^(@[A-Za-z_]+ )?((public|package|internal) )?import (Glibc|Musl|Darwin)/ &&
        file != "Sources/C/LibC/LibC.swift")
      report(FNR, "import LibC instead: it is Glibc, Musl or Darwin")
    if (!isShipped) next
    if (code ~ /[^A-Za-z_.]fsync\(|[^A-Za-z_.]fdatasync\(/ && file != "Sources/C/LibC/LibC.swift")
      report(FNR, "use syncToDisk: fsync of macOS stops at the cache of the drive")
    if (within) next
    if (code ~ /"\/proc\// || code ~ /(^|[^A-Za-z_])(epoll_[a-z]+|pipe2|accept4|prctl|posix_fallocate|fallocate|memfd_create|renameat2|getrandom|sched_[a-z]+|copy_file_range|malloc_trim)\(/ ||
        code ~ /(^|[^A-Za-z_])(SOCK_CLOEXEC|SOCK_NONBLOCK|MSG_NOSIGNAL|O_TMPFILE|O_PATH)([^A-Za-z_]|$)/)
      report(FNR, "only Linux has this; add a branch for Darwin")
  }'
  # A line that tries the other spelling as well may use both.
  grep -nE 'sed (-[a-z]+ )*-i|readlink -f|grep -[a-zA-Z]*P |stat -c|xargs -r|sort -V|base64 -w|find .*-printf|cp --|date (-u )?-d|mapfile|readarray|declare -A|\$\{[a-z]+(,,|\^\^)|/usr/bin/env -S' \
    Makefile .ci/* Sources/Tooling/Scripts/*.sh | grep -v 'check-portability.sh:' | grep -v ' || date ' |
    sed -E 's/^([^:]+:[0-9]+):.*/\1: the tools of macOS do not understand this/' || true
)
[ -z "$found" ] || {
  echo "$found"
  exit 1
}
echo "portability: no findings"
