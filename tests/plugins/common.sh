# What the scripts here share; to be sourced. ctest sets the environment: where plugins lie, and in a sanitizer build
# the runtime that GStreamer's own programs, which are built without it, must load first.
set -uo pipefail

fail() {
  echo "$*" >&2
  exit 1
}

gst() { # PROGRAM [ARGUMENT...]
  env ${SANITIZER_RUNTIME:+LD_PRELOAD="$SANITIZER_RUNTIME"} "$@"
}
