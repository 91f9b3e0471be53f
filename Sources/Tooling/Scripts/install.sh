#!/bin/sh
# Installs hearth, its completions and its manual: `install.sh install CONFIGURATION PREFIX [DESTDIR]`.
# The configuration is debug, release, or auto: the first time debug, which takes half the time, and
# then release in its place, while the first one can be used.
# `install.sh uninstall CONFIGURATION PREFIX [DESTDIR]` removes them.
set -eu

action=$1
configuration=$2
prefix=$3
case $prefix in /*) ;; *) prefix=$PWD/$prefix ;; esac
root=${4:-}$prefix

bin=$root/bin/hearth
zsh=$root/share/zsh/site-functions/_hearth
bash=$root/share/bash-completion/completions/hearth
fish=$root/share/fish/vendor_completions.d/hearth.fish
man=$root/share/man/man1
# The compiled libraries, on which `hearth init` makes new packages depend.
libraries=$root/lib/hearth
# Names the checkout, on which they depend where there are no compiled libraries.
checkout=$root/share/hearth/checkout

# Writes what comes in to a file, which nobody sees before it is whole.
place() {
  mkdir -p "${2%/*}"
  cat >"$2.new"
  chmod "$1" "$2.new"
  mv -f "$2.new" "$2"
}

if [ "$action" = uninstall ]; then
  rm -rf "$libraries"
  rm -f "$bin" "$zsh" "$bash" "$fish" "$man/hearth.1" "$man"/hearth.*.1 "$checkout"
  [ ! -d "${checkout%/*}" ] || rmdir "${checkout%/*}"
  echo "Removed $bin, its completions and its manual."
  exit 0
fi

pages=$(mktemp -d)
trap 'rm -rf "$pages"' EXIT

# Builds one configuration and puts its files in their places.
install_built() {
  swift build -c "$1" --product hearth
  swift build -c "$1" --product generate-manual
  built=.build/$1
  # On macOS the libraries are compiled with each package, because no one has tried them there.
  [ "$(uname -s)" = Darwin ] || sh "$scripts/libraries.sh" "$1" "$libraries"

  rm -rf "$pages"
  mkdir "$pages"
  "$built/generate-manual" "$built/hearth" --multi-page --output-directory "$pages"
  for shell in zsh bash fish; do
    "$built/hearth" --generate-completion-script $shell >"$pages/completion.$shell"
  done

  place 755 "$bin" <"$built/hearth"
  place 644 "$zsh" <"$pages/completion.zsh"
  place 644 "$bash" <"$pages/completion.bash"
  place 644 "$fish" <"$pages/completion.fish"
  rm -f "$man/hearth.1" "$man"/hearth.*.1
  for page in "$pages"/*.1; do
    # The generator leaves empty lines, of which mdoc warns.
    sed 's/^$/.Pp/' "$page" | place 644 "$man/${page##*/}"
  done
  # A package for other machines has no checkout beside it.
  [ -n "$destination" ] || pwd | place 644 "$checkout"
}

scripts=${0%/*}
destination=${4:-}
optimizes=
if [ "$configuration" = auto ]; then
  configuration=release
  # A package for other machines is made once, and a later build is quick.
  if [ -z "$destination" ] && [ ! -x .build/release/hearth ]; then
    configuration=debug
    optimizes=1
  fi
fi
case $configuration in
  release) time="about eight minutes on two cores" ;;
  *) time="about five minutes on two cores" ;;
esac
echo "Building hearth ($configuration; the first time $time, later seconds) ..."
install_built "$configuration"

echo "Installed:"
echo "  $bin"
for file in "$zsh" "$bash" "$fish"; do echo "  $file"; done
echo "  $man/hearth.1 and a page for each command, such as hearth.start.1"
[ ! -d "$libraries" ] || echo "  $libraries, the libraries for functions and their tests"
[ -z "$destination" ] || exit 0
echo "  $checkout"

case ":$PATH:" in
  *":$prefix/bin:"*) ;;
  *)
    case ${SHELL:-} in
      */fish) echo "Add it to the PATH:  fish_add_path $prefix/bin" ;;
      */zsh) echo "Add to ~/.zshrc:  export PATH=\"$prefix/bin:\$PATH\"" ;;
      *) echo "Add to ~/.bashrc:  export PATH=\"$prefix/bin:\$PATH\"" ;;
    esac
    ;;
esac
case ${SHELL:-} in
  # zsh alone looks in no folder of the user by itself.
  */zsh) echo "For completions, before compinit in ~/.zshrc:  fpath=(${zsh%/*} \$fpath)" ;;
esac

[ -n "$optimizes" ] || exit 0
cat <<END

hearth can be used now, in another terminal. Here the optimized build follows, for about eight
minutes on two cores, and takes its place. Ctrl-C leaves it out; \`make install\` makes it later.

END
install_built release
echo "The optimized build is installed."
