#!/usr/bin/env bash
# What cannot be must end in words, not in a crash: bad_input.sh PARITY_FOLDER
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

refused() { # PATTERN PIPELINE...: must fail as programs fail and say something that matches
  local pattern=$1 output status
  shift
  output=$(gst_to_its_end gst-launch-1.0 "$@" 2>&1)
  status=$?
  [ $status -ne 0 ] || fail "expected a failure: gst-launch-1.0 $*" "$output"
  # gst-launch-1.0 ends with -1 where an element does not start.
  [ $status -lt 126 ] || [ $status -eq 255 ] || fail "died ($status): gst-launch-1.0 $*" "$output"
  grep -qE "$pattern" <<<"$output" || fail "expected '$pattern' from: gst-launch-1.0 $*" "$output"
}
complained() { # PATTERN PIPELINE...: must go on, with a warning that matches
  local pattern=$1 output
  shift
  output=$(GST_DEBUG=nonlocaldenoise:2,selfattention:2,textcross:2 gst gst-launch-1.0 "$@" 2>&1) || fail "exit status $?: gst-launch-1.0 $*" "$output"
  grep -qE "$pattern" <<<"$output" || fail "expected '$pattern' from: gst-launch-1.0 $*" "$output"
}
models=$1
source="videotestsrc num-buffers=2"
small=video/x-raw,format=I420,width=16,height=16

# Caps: formats it does not know, memory it cannot map, no video at all, sizes beyond the library's.
for caps in video/x-raw,format=ARGB64 video/x-raw,format=v210 "video/x-raw(memory:GLMemory)" audio/x-raw; do
  # shellcheck disable=SC2086
  refused "could not link|not-negotiated|can't handle caps" $source ! "$caps" ! nonlocaldenoise ! fakesink
done
# shellcheck disable=SC2086
refused "could not link|not-negotiated|can't handle caps" $source ! video/x-raw,format=GRAY8,width=40000,height=1 ! nonlocaldenoise ! fakesink
# shellcheck disable=SC2086
refused "could not link|not-negotiated|can't handle caps" $source ! $small ! nonlocaldenoise ! video/x-raw,format=RGB ! fakesink

# Properties: no such one, no such value, read-only.
# shellcheck disable=SC2086
{
  refused 'no property "sgima"' $source ! nonlocaldenoise sgima=3 ! fakesink
  refused 'could not set property "preset".*"turbo"' $source ! nonlocaldenoise preset=turbo ! fakesink
  refused 'could not set property "sigma".*"loud"' $source ! nonlocaldenoise sigma=loud ! fakesink
}
# Out of range: GObject says so and keeps the old value.
# shellcheck disable=SC2086
for setting in sigma=1e9 sigma=-2 sigma=nan strength=11 chroma-strength=-1 patch-size=-3 patch-size=17 search-size=65 \
  n-threads=-1 n-threads=100000; do
  complained "out of range for property '${setting%%=*}'" $source ! $small ! nonlocaldenoise "$setting" ! fakesink
done
# Even sizes: the next odd one.
# shellcheck disable=SC2086
{
  complained 'patch-size: expected 0 or an odd number from 1 on, got 4; using 5' \
    $source ! $small ! nonlocaldenoise patch-size=4 ! fakesink
  complained 'search-size: expected 0 or an odd number from 3 on, got 1; using 3' \
    $source ! $small ! nonlocaldenoise search-size=1 ! fakesink
}

# Networks that are not there, or none. A file by its name, and one that a name stands for.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
head -c 100 /dev/urandom >"$folder/noise.safetensors"
: >"$folder/empty.safetensors"
# shellcheck disable=SC2086
{
  refused "$folder/none.safetensors: " $source ! $small ! nonlocaldenoise refinement="$folder/none.safetensors" ! fakesink
  refused "$folder/noise.safetensors: " $source ! $small ! nonlocaldenoise refinement="$folder/noise.safetensors" ! fakesink
  refused "$folder/empty.safetensors: " $source ! $small ! nonlocaldenoise refinement="$folder/empty.safetensors" ! fakesink
  refused "refine_miracle.safetensors: expected in one of these folders" \
    $source ! $small ! nonlocaldenoise refinement=refine_miracle ! fakesink
}

# selfattention: networks that are none, that the CPU or the format does not fit, conditions that nobody asked for.
gray=$models/network_refiner.safetensors
colour=$models/network_dense.safetensors
# shellcheck disable=SC2086
{
  refused "$folder/noise.safetensors: " $source ! $small ! selfattention model="$folder/noise.safetensors" ! fakesink
  refused "expected in one of these folders" $source ! $small ! selfattention model=miracle ! fakesink
  DNNL_MAX_CPU_ISA=AVX2 refused "bfloat16" $source ! $small ! selfattention model="$gray" precision=bf16 ! fakesink
  refused "not-negotiated|can't handle caps" $source ! $small ! selfattention model="$colour" ! fakesink
  refused 'could not set property "precision".*"int4"' $source ! selfattention precision=int4 ! fakesink
  DNNL_MAX_CPU_ISA=AVX2 refused "int8" $source ! $small ! selfattention model="$gray" precision=int8 ! fakesink
  for setting in strength=-0.1 strength=1.1 strength=nan n-threads=-1 condition=-2 condition=1e7; do
    complained "out of range for property '${setting%%=*}'" \
      $source ! $small ! selfattention model="$gray" "$setting" ! fakesink
  done
  complained 'condition: expected sigma from 0 to 100, got 200; using 100' \
    $source ! $small ! selfattention model="$gray" condition=200 ! fakesink
  complained 'condition: the network has none, got 5; ignoring it' \
    $source ! selfattention model="$colour" condition=5 ! video/x-raw,width=16,height=16 ! fakesink
}

# textcross: models that are none, or not what it takes; prompts that a model has no room for.
# shellcheck disable=SC2086
{
  refused "$folder/noise.safetensors: " $source ! $small ! textcross model="$folder/noise.safetensors" ! fakesink
  refused "$folder/empty.safetensors: " $source ! $small ! textcross model="$folder/empty.safetensors" ! fakesink
  refused "none.safetensors: " $source ! $small ! textcross embeddings="$folder/none.safetensors" ! fakesink
  refused "miracle.safetensors: expected in one of these folders" $source ! $small ! textcross model=miracle ! fakesink
  refused "restore.safetensors: " $source ! $small ! textcross model=restore ! fakesink
  refused "expected tokens of " $source ! $small ! textcross embeddings="$models/cross_attention_filter_case.safetensors" ! fakesink
  refused 'could not set property "output".*"smoke"' $source ! textcross output=smoke ! fakesink
  for setting in strength=-0.1 strength=4.1 strength=nan n-threads=-1 transition=-1 transition=60001; do
    complained "out of range for property '${setting%%=*}'" $source ! $small ! textcross "$setting" ! fakesink
  done
  long=$(printf 'darker %.0s' {1..300})
  complained 'prompt: its last [0-9]+ tokens are more than the model has room for' \
    $source ! $small ! textcross prompt="$long" ! fakesink
}
exit 0
