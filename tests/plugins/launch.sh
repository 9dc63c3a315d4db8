#!/usr/bin/env bash
# One format in every width, as a user would run it; warnings are fatal, silence is expected: launch.sh FORMAT BUFFERS ELEMENT...
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
format=$1
buffers=$2
shift 2

for width in 1 2 3 17 321 1920; do
  line="videotestsrc num-buffers=$buffers ! video/x-raw,format=$format,width=$width,height=16 ! $* ! fakesink"
  # shellcheck disable=SC2086
  output=$(GST_DEBUG=nonlocaldenoise:2,selfattention:2,textcross:2 G_DEBUG=fatal-warnings gst gst-launch-1.0 -q $line 2>&1) ||
    fail "exit status $?: gst-launch-1.0 $line" "$output"
  [ -z "$output" ] || fail "gst-launch-1.0 $line said:" "$output"
done
