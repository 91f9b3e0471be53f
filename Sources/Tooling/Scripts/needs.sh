#!/bin/sh
# Makes sure that what the build needs is there: the Swift toolchain and the system libraries.
# `needs.sh python VENV REQUIREMENTS` also makes a virtual environment with the Python packages that
# a file lists. Installs with apt-get when root on Debian; otherwise says what to run.
set -eu

fail() {
  echo "hearth: $*" >&2
  exit 1
}

install_packages() {
  [ $# -gt 0 ] || return 0
  if [ "$(id -u)" != 0 ]; then
    fail "missing packages: $*. Run:  sudo apt-get install -y $*"
  fi
  echo "Installing $* ..."
  log=$(mktemp)
  if ! { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q "$@"; } \
    >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    rm -f "$log"
    fail "apt-get could not install: $*"
  fi
  rm -f "$log"
}

command -v swift >/dev/null 2>&1 ||
  fail "no Swift toolchain on the PATH. Install Swift 6.3 or newer from https://www.swift.org/install"
version=$(swift --version 2>/dev/null | sed -n 's/.*Swift version \([0-9]*\.[0-9]*\).*/\1/p' | head -n 1)
case "$version" in
  6.[3-9] | 6.[1-9][0-9] | [7-9].*) ;;
  *) fail "Swift $version is too old; Hearth needs 6.3 or newer (https://www.swift.org/install)" ;;
esac

if [ "$(uname -s)" = Darwin ]; then
  # Xcode's SDK has curl, SQLite and zlib, but not OpenSSL.
  macos=$(sw_vers -productVersion)
  [ "${macos%%.*}" -ge 15 ] || fail "macOS $macos is too old; Hearth needs 15 or newer"
  sdk=$(xcrun --sdk macosx --show-sdk-path 2>/dev/null) ||
    fail "no macOS SDK. Install Xcode, or run:  xcode-select --install"
  for header in curl/curl.h sqlite3.h zlib.h; do
    [ -e "$sdk/usr/include/$header" ] || fail "the SDK at $sdk lacks $header; update Xcode"
  done
  # SwiftPM looks where Homebrew keeps it, apart from the system's own.
  [ -e "$(brew --prefix 2>/dev/null)/opt/openssl@3/include/openssl/core_names.h" ] ||
    fail "missing packages: openssl@3. Run:  brew install openssl@3"
  if [ "${1:-}" = python ]; then
    python3 -c 'import venv, ensurepip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
      fail "no Python 3.11 or newer. Run:  brew install python"
  fi
fi

if command -v dpkg-query >/dev/null 2>&1; then
  missing=
  packages="libcurl4-openssl-dev libsqlite3-dev libssl-dev zlib1g-dev"
  [ "${1:-}" = python ] && packages="$packages python3 python3-venv"
  for package in $packages; do
    case $(dpkg-query -W -f '${Status}' "$package" 2>/dev/null || true) in
      *"ok installed"*) continue ;;
    esac
    # A Python that was not installed by apt serves as well.
    case $package in python3*) python3 -c 'import venv, ensurepip' 2>/dev/null && continue ;; esac
    missing="$missing $package"
  done
  # shellcheck disable=SC2086
  install_packages $missing
  # Only root gets a browser, since the tests of pages do without: they are skipped.
  if [ "${1:-}" = python ] && [ "$(id -u)" = 0 ] && ! command -v chromedriver >/dev/null 2>&1; then
    (install_packages chromium chromium-driver) || echo "The tests of pages are skipped." >&2
  fi
fi

if [ "${1:-}" = python ]; then
  venv=$2
  requirements=$3
  if ! cmp -s "$requirements" "$venv/requirements.txt"; then
    echo "Installing the Python packages of $requirements into $venv ..."
    python3 -m venv "$venv"
    "$venv/bin/pip" install -q --disable-pip-version-check -r "$requirements" ||
      fail "pip could not install what $requirements lists"
    cp "$requirements" "$venv/requirements.txt"
  fi
fi
