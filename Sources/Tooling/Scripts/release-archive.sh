#!/bin/sh
# Packs what `make install` installs, for machines without a checkout, and checks the archive:
# `release-archive.sh CONFIGURATION`. Leaves .build/archives/hearth-VERSION-linux-MACHINE.tar.gz and
# its checksum. `release-archive.sh check ARCHIVE` only checks one.
#
# The archive has one folder, which can be put anywhere; its bin/hearth finds the rest from there.
# Swift's libraries are beside the program, where it looks for them if there is no toolchain in the
# place where the one was that compiled it.
set -eu
[ "$(uname -s)" = Linux ] || {
  echo "release-archive: archives are made and checked on Linux" >&2
  exit 1
}
work=$(mktemp -d)
suite=

finish() {
  trap - EXIT INT TERM HUP
  if [ -n "$suite" ]; then
    kill "$suite" 2>/dev/null || :
    wait "$suite" 2>/dev/null || :
  fi
  rm -rf "$work"
}
trap finish EXIT
trap 'finish; exit 1' INT TERM HUP

fail() {
  echo "release-archive: $*" >&2
  [ ! -s "$work/log" ] || tail -n 40 "$work/log" >&2
  exit 1
}

# Does with the unpacked archive what its first user does: a package, its functions, and a call.
check() {
  sha256sum -c --quiet "${1##*/}.sha256"
  name=${1##*/}
  name=${name%.tar.gz}
  tar -xzf "$1" -C "$work"
  hearth=$work/$name/bin/hearth
  version=$("$hearth" --version)
  case $name in
    "hearth-$version-"*) ;;
    *) fail "the program is of version $version, the archive $name" ;;
  esac

  (cd "$work" && "$hearth" init my-backend) >"$work/log" 2>&1 || fail "hearth init failed"
  mkfifo "$work/ready"
  (cd "$work/my-backend" && exec "$hearth" start --ephemeral --free-ports --json) \
    >"$work/ready" 2>"$work/log" &
  suite=$!
  read -r ready <"$work/ready" || fail "hearth start failed"
  functions=$(echo "$ready" | sed 's/.*"functions":{"host":"\([^"]*\)","port":\([0-9]*\)}.*/\1:\2/')
  # A token without a signature, of the user t: {"alg":"none"} and {"sub":"t"}.
  answer=$(curl -s --max-time 60 -H 'Content-Type: application/json' -d '{"data":{}}' \
    -H 'Authorization: Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJ0In0.' \
    "http://$functions/demo-my-backend/us-central1/greeting")
  # The function itself says so: nobody has been greeted in an empty database.
  case $answer in
    *'t has no greeting yet.'*) ;;
    *) fail "the function greeting answered: $answer" ;;
  esac
  kill "$suite"
  wait "$suite" || fail "hearth start ended with $?"
  suite=
  echo "Checked: its program is version $version, makes a package, and runs its functions."
}

if [ "$1" = check ]; then
  cd "$(dirname "$2")"
  check "$PWD/${2##*/}"
  exit 0
fi

make --no-print-directory install CONFIGURATION="$1" PREFIX=/hearth DESTDIR="$work/root"
hearth=$work/root/hearth/bin/hearth
name=hearth-$("$hearth" --version)-linux-$(uname -m)
ldd "$hearth" | sed -n 's|.* => \(.*/swift/linux/.*\.so\) .*|\1|p' >"$work/libraries"
while read -r library; do cp -L "$library" "$work/root/hearth/bin/"; done <"$work/libraries"
cp LICENSE CHANGELOG.md "$work/root/hearth/"
cat >"$work/root/hearth/README.md" <<END
# Hearth $("$hearth" --version)

Put this folder where it may stay, and its \`bin\` on the PATH, or a link to \`bin/hearth\`. It was
compiled with $(swift --version 2>/dev/null | head -n 1).
Its libraries for functions, in \`lib/hearth\`, fit only this compiler, which has to be installed. The
program needs the system's libraries of curl, SQLite, OpenSSL 3 and zlib; functions need their
headers: \`apt-get install libcurl4-openssl-dev libsqlite3-dev libssl-dev zlib1g-dev\`.

\`hearth init my-backend\` begins; \`man -l share/man/man1/hearth.1\` and \`hearth --help\` say more.
END

mkdir -p .build/archives
mv "$work/root/hearth" "$work/root/$name"
tar -czf ".build/archives/$name.tar.gz" -C "$work/root" --owner=0 --group=0 --sort=name "$name"
rm -rf "$work/root"
cd .build/archives
sha256sum "$name.tar.gz" >"$name.tar.gz.sha256"
check "$PWD/$name.tar.gz"
du -h "$PWD/$name.tar.gz"
