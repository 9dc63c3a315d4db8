#!/usr/bin/env bash
# What gst-inspect-1.0 says of the element, and the linker of the plugin: inspect.sh PLUGIN ELEMENT
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
plugin=$1
element=$2

gst gst-inspect-1.0 --exists "$element" || fail "gst-inspect-1.0 does not find $element"
blacklisted=$(gst gst-inspect-1.0 -b)
! grep -q nonlocal <<<"$blacklisted" || fail "blacklisted: $blacklisted"

# A sanitizer's symbols come from the program.
if [ -z "${SANITIZER_RUNTIME:-}" ]; then
  missing=$(ldd -r "$plugin" 2>&1 | grep -E 'undefined symbol|not found')
  [ -z "$missing" ] || fail "$missing"
fi

description=$(gst gst-inspect-1.0 "$element") || fail "gst-inspect-1.0 $element fails"
expect() { # PATTERN: an extended regular expression that a line must match
  grep -qE "$1" <<<"$description" || fail "gst-inspect-1.0 $element: no line matches '$1' in:" "$description"
}
expect '^ +Rank +none \(0\)$'
expect '^ +Klass +Filter/Effect/Video$'
expect '^ +License +LGPL$'
expect '^ +Source module +nonlocal$'
expect '^ +Binary package +[^ ]'
expect '^ +Origin URL +[^ ]'
! grep -qiE 'unknown|example\.(com|org)' <<<"$description" || fail "not a real origin:" "$description"

property() { # NAME: its lines
  awk -v name="$1" '/^  [a-z][a-z-]* *:/ { inside = ($1 == name) } inside' <<<"$description"
}
case $element in
  nonlocaldenoise)
    tunable="sigma strength chroma-strength patch-size search-size preset method"
    plain="n-threads message adaptive"
    weights=refinement
    read_only=noise-level
    ranges="sigma strength chroma-strength patch-size search-size n-threads noise-level"
    ;;
  selfattention)
    tunable="strength condition h"
    plain=n-threads
    weights="model precision temporal-radius"
    read_only=frames
    ranges="strength condition h temporal-radius n-threads frames"
    ;;
  textcross)
    tunable=strength
    plain="prompt transition n-threads message"
    choices="output mode"
    weights="model embeddings"
    read_only=
    ranges="strength transition n-threads"
    ;;
  *) fail "no such element: $element" ;;
esac
expect_of() { # PROPERTY PATTERN
  grep -qE "$2" <<<"$(property "$1")" || fail "$1: expected '$2' in:" "$(property "$1")"
}
playing='changeable in NULL, READY, PAUSED or PLAYING state'
for name in $tunable; do
  expect_of "$name" "controllable, $playing"
done
for name in $plain ${choices:-}; do
  expect_of "$name" "$playing"
done
for name in $weights; do
  expect_of "$name" 'changeable only in NULL or READY state'
done
for name in $read_only; do
  expect_of "$name" 'flags: readable$'
done
# A blurb is the manual: it names the unit, the range and the default.
for name in $tunable $plain $read_only; do
  expect_of "$name" '(8-bit code values|without unit|in samples|in milliseconds|as a count|as text|in the unit of|true.* or false)'
  expect_of "$name" '(default|Default:)'
done
for name in ${choices:-}; do
  expect_of "$name" '\(the default\).*; or '
done
for name in $ranges; do
  expect_of "$name" '[0-9] .*to [0-9]+|[0-9] to [0-9]+'
done
exit 0
