# shellcheck shell=bash
# What the tests of packages share.
set -euo pipefail
work=$(mktemp -d "/tmp/nonlocal package.XXXXXX")
started=() # processes that are to end with the test
clean_up() {
  [ ${#started[@]} -eq 0 ] || kill "${started[@]}" 2>/dev/null || true
  rm -rf "$work"
}
trap clean_up EXIT
cd "$work"
# Nothing but what is installed may be found.
unset GST_PLUGIN_PATH GST_PLUGIN_PATH_1_0 LD_LIBRARY_PATH PKG_CONFIG_PATH
export GST_REGISTRY=$work/registry.bin

fail() {
  echo "$*" >&2
  exit 1
}

must_exist() { # PATTERN...: of files
  local pattern
  for pattern; do compgen -G "$pattern" >/dev/null || fail "nothing is installed as $pattern"; done
}

# Installs what BUILD_FOLDER holds; the list of installed files that goes with it stays what it was.
# shellcheck disable=SC2154
install_into() { # PREFIX; wants build and cmake set
  [ ! -e "$build/install_manifest.txt" ] || cp "$build/install_manifest.txt" manifest
  "$cmake" --install "$build" --prefix "$1" >log || { cat log >&2 && exit 1; }
  rm -f "$build/install_manifest.txt"
  [ ! -e manifest ] || cp manifest "$build/install_manifest.txt"
}

# The element, the program and the pipelines of a tree must work from where they lie.
must_work() { # PREFIX
  local plugin
  plugin=$(find "$1" -name libgstnonlocal.so)
  GST_PLUGIN_PATH=$(dirname "$plugin") gst-inspect-1.0 nonlocaldenoise >inspected ||
    fail "no element in $plugin"
  grep -qF "$plugin" inspected || fail "nonlocaldenoise comes from elsewhere: $(grep Filename inspected)"
  find "$1" -type f \( -name '*.so*' -o -path '*/bin/nonlocal' \) -exec ldd {} + >linked
  ! grep 'not found' linked || fail "libraries are not found"
  GST_PLUGIN_PATH=$(dirname "$plugin") "$1/share/nonlocal/pipelines/camera" test --output none --frames 2 \
    -- preset=fast >/dev/null
  if [ -e "$1/bin/nonlocal" ]; then # finds the plugin by itself
    ffmpeg -v error -nostdin -f lavfi -i testsrc2=size=64x48:rate=25 -frames:v 3 -c:v libx264 in.mkv
    "$1/bin/nonlocal" filter in.mkv filtered.mkv >log 2>&1 || fail "the program fails: $(cat log)"
    [ -s filtered.mkv ] || fail "the program wrote nothing"
    "$1/bin/nonlocal" plan in.mkv -o plan --quiet >/dev/null
    "$1/bin/nonlocal-cluster" local plan joined.mkv >log 2>&1 && [ -s joined.mkv ] ||
      fail "the program does not work in parts: $(cat log)"
  fi
}
