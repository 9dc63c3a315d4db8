# shellcheck shell=bash
# What the tests of the pipelines share. Each is started with the folder of the pipelines and the test's RTSP
# server, and works in a folder of its own, under a name that must be quoted with care.
set -euo pipefail
pipelines=$1
# shellcheck disable=SC2034
rtsp_server=${2:-}
started=()
work=$(mktemp -d "/tmp/non local's \$test.XXXXXX")
clean_up() {
  [ ${#started[@]} -eq 0 ] || kill "${started[@]}" 2>/dev/null || true
  rm -rf "$work"
}
trap clean_up EXIT
cd "$work"
exec </dev/null

equal() { # WHAT CAME EXPECTED
  [ "$2" = "$3" ] || { echo "$1: expected '$3', came '$2'" >&2 && exit 1; }
}

run() { # PIPELINE ARGUMENT...: plays it, for two minutes at most; what it prints is kept in the file log
  timeout 120 "$pipelines/$1" "${@:2}" >log 2>&1 || { cat log >&2 && echo "failed: $*" >&2 && exit 1; }
}

must_fail() { # PIPELINE ARGUMENT...
  ! timeout 120 "$pipelines/$1" "${@:2}" >log 2>&1 || { echo "no error from $*" >&2 && exit 1; }
}

video() { # FILE ENTRIES: such as width,height of its video, with commas between
  ffprobe -v error -select_streams v:0 -count_packets -show_entries "stream=$2" -of csv=p=0 "$1"
}
frames() { video "$1" nb_read_packets; } # FILE
