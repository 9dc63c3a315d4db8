#!/usr/bin/env bash
# GStreamer's own leak tracer must find no object alive at the end: leaks.sh PARITY_FOLDER
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
models=$1
size=video/x-raw,format=I420,width=32,height=16
run() { # PIPELINE...
  output=$(GST_TRACERS=leaks GST_DEBUG=GST_TRACER:7 GST_DEBUG_NO_COLOR=1 gst gst-launch-1.0 -q "$@" 2>&1) ||
    fail "exit status $?: $*" "$output"
  grep -q 'new format string: object-alive' <<<"$output" || fail "the leaks tracer is not there"
  ! grep -E 'object-alive, type-name=\(string\)[^%]' <<<"$output" || fail "leaks: $*"
}
for element in nonlocaldenoise "nonlocaldenoise sigma=0" "nonlocaldenoise adaptive=true" \
  "selfattention model=$models/network_refiner.safetensors" \
  "textcross prompt=darker" "textcross prompt=darker output=heatmap" "textcross prompt=darker mode=exact" textcross \
  "textcross model=$models/cross_attention_filter.safetensors embeddings=$models/cross_attention_filter_case.safetensors" \
  "textcross output=none model=$models/cross_attention_filter.safetensors embeddings=$models/cross_attention_filter_case.safetensors"; do
  # shellcheck disable=SC2086
  run videotestsrc num-buffers=30 ! $size ! $element ! fakesink
done
run videotestsrc num-buffers=30 ! $size ! tee name=t ! queue ! nonlocaldenoise ! fakesink t. ! queue ! fakesink
run videotestsrc num-buffers=30 ! selfattention model="$models/network_space_time.safetensors" ! video/x-raw,width=32,height=16 ! fakesink
