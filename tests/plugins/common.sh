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

# Once in hundreds of times gst-launch-1.0 of GStreamer 1.22 waits for ever after it has told of an error: then it is
# run again.
gst_to_its_end() { # PROGRAM [ARGUMENT...]
  local status
  for _ in 1 2; do
    gst timeout -k 5 60 "$@"
    status=$?
    [ $status -eq 124 ] || break
  done
  return $status
}
