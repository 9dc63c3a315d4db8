# shellcheck shell=bash disable=SC2034,SC2154
# What the pipelines share; each of them sources this file, after it has set
#   usage   its manual, printed by --help
#   option  an associative array: its own options with their defaults
# and then calls arguments "$@", fills arrays with parts of a pipeline and ends with play. Live pictures are
# filtered with adaptive=true: better a smaller search than frames that come too late.
set -euo pipefail

fail() { # MESSAGE...
  echo "${0##*/}: $*" >&2
  exit 2
}

# Reads the command line: --NAME VALUE into option[NAME], what follows -- into settings,
# the rest into operands. Settings are as gst-launch reads them back.
arguments() { # LEAST MOST ARGUMENT...: how many operands there may be, and the command line
  local least=$1 most=$2
  shift 2
  [[ $* != *\"* ]] || fail "GStreamer's pipeline syntax cannot hold the double quote in $*"
  operands=()
  while [ $# -gt 0 ]; do
    case $1 in
      -h | --help) echo "$usage" && exit ;;
      --) shift && break ;;
      --*)
        [[ -v option[${1#--}] ]] || fail "unknown option $1; see ${0##*/} --help"
        [ $# -ge 2 ] || fail "$1 needs a value"
        option[${1#--}]=$2
        shift 2
        ;;
      *) operands+=("$1") && shift ;;
    esac
  done
  local count=${#operands[@]}
  [ "$count" -ge "$least" ] || fail "something is missing; see ${0##*/} --help"
  [ "$count" -le "$most" ] || fail "too many arguments from '${operands[$most]}' on; see ${0##*/} --help"
  local property
  settings=()
  for property; do
    [[ $property =~ ^[a-z-]+=.+ ]] || fail "expected PROPERTY=VALUE after --, came '$property'"
    settings+=("${property%%=*}=$(quoted "${property#*=}")")
  done
}

must_match() { # NAME REGEX EXPECTED: checks option[NAME]
  [[ ${option[$1]} =~ ^($2)$ ]] || fail "--$1 must be $3, came '${option[$1]}'"
}

# VALUE as gst-launch reads it back. Not by echo, which takes -e or -n for options of its own.
quoted() { # VALUE
  [[ $1 =~ ^[[:alnum:]_./:@%+,?=\&-]+$ ]] && printf '%s\n' "$1" || printf '"%s"\n' "${1//\\/\\\\}"
}

# Where live pictures come from: a camera, or test pictures where there is none.
camera() { # [DEVICE | test]: fills source; wants limit before
  local device=${1:-} note=
  if [ -z "$device" ]; then
    for device in /dev/video*; do break; done
    [ -e "$device" ] || device='test' note="no /dev/video* here, so a test source plays"
  fi
  if [ "$device" = test ]; then
    [ -z "$note" ] || echo "${0##*/}: $note" >&2
    source=(videotestsrc is-live=true "${limited[@]}")
  else
    [ -c "$device" ] || fail "$device is no camera device"
    source=(v4l2src "device=$(quoted "$device")" "${limited[@]}" ! decodebin ! videoconvert)
  fi
}

# Where pictures come from: a file, or as camera has it.
pictures() { # [FILE | DEVICE | test]: fills source, of a file what inspect fills, too; wants limit before
  if [ -f "${1:-}" ]; then
    inspect "$1"
    source=(filesrc "location=$(quoted "$1")" ! parsebin ! "$video" "${limiter[@]}" ! decodebin ! videoconvert)
  else
    camera "$@"
  fi
}

# Where the pictures end: option[frames] as a property of live sources and, for others, as an element to stand
# before the decoder (behind one it would let pass what the decoder's threads still hold).
limit() { # fills limited and limiter
  must_match frames '[0-9]{1,9}' "a number of frames, or 0 for no end"
  local frames=$((10#${option[frames]}))
  limited=() limiter=()
  [ "$frames" -eq 0 ] || limited=("num-buffers=$frames") limiter=(! identity "eos-after=$((frames + 1))")
}

# Where the filtered pictures go.
target() { # fills sink from option[output]
  case ${option[output]} in
    display) sink=(videoconvert ! autovideosink) ;;
    none) sink=(fakesink) ;;
    *)
      muxer "${option[output]}"
      # H.264 halves colour only where width and height are even.
      local format=I420
      ((${width:-0} % 2 + ${height:-0} % 2 == 0)) || format=Y444
      sink=(queue ! videoconvert ! "video/x-raw,format=$format"
        ! x264enc tune=zerolatency speed-preset=veryfast
        ! "$mux" ! filesink "location=$(quoted "${option[output]}")")
      ;;
  esac
}

muxer() { # FILE: fills mux
  case $1 in
    *.mkv) mux=matroskamux ;;
    *.mp4) mux=mp4mux ;;
    *) fail "expected a name that ends in .mkv or .mp4 for the video to write, came '$1'" ;;
  esac
  [ -d "$(dirname -- "$1")" ] || fail "there is no folder $(dirname -- "$1") to write into"
}

# What is in a file: the caps of its first video, and of all its sound tracks with what muxers choose by: where a
# muxer cannot take them the pipeline is to fail, not to wait for ever.
inspect() { # FILE: fills video, width, height, pixels (their width to their height, as 64/45) and sound
  local found kind caps sound_caps field pattern
  [[ -f $1 && -r $1 ]] || fail "cannot read $1"
  command -v gst-discoverer-1.0 >/dev/null ||
    fail "needs gst-discoverer-1.0 (gstreamer1.0-plugins-base-apps)"
  found=$(gst-discoverer-1.0 -v "$(realpath -- "$1")" 2>&1 | sed -nE \
    's/^ *(video) #[0-9]+: ([^,;( ]+).*/\1 \2/p; s/^ *(audio) #[0-9]+: (.*)/\1 \2/p
     s/^ *(Width|Height): ([0-9]+)$/\1 \2/p; s/^ *Pixel aspect ratio: (.*)/Pixels \1/p')
  video='' width='' height='' pixels='' sound=()
  while read -r kind caps; do
    case $kind in
      video) video=${video:-$caps} ;;
      audio)
        sound_caps=${caps%%[,;( ]*}
        for field in format layout; do
          pattern="[ ,]$field=\(string\)([A-Za-z0-9_-]+)"
          [[ ! $caps =~ $pattern ]] || sound_caps+=",$field=${BASH_REMATCH[1]}"
        done
        sound+=("$sound_caps")
        ;;
      Width) width=${width:-$caps} ;;
      Height) height=${height:-$caps} ;;
      Pixels) pixels=${pixels:-$caps} ;;
    esac
  done <<<"$found"
  [ -n "$video" ] || fail "found no video in $1"
}

# WORD as a shell reads it back.
for_shell() { # WORD
  [[ $1 =~ ^[[:alnum:]_./:,=-]+$|^!$ ]] && printf '%s\n' "$1" || printf "'%s'\n" "${1//\'/\'\\\'\'}"
}

# Prints the pipeline, as it can be pasted into a shell, and plays it; Ctrl-C ends it with whole files.
play() { # ELEMENT...
  local folder word line=
  folder=$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd)/build/plugins
  if [ -d "$folder" ]; then
    # Behind what is there already: somebody who names another build of the plugin there means that one.
    export GST_PLUGIN_PATH=${GST_PLUGIN_PATH:-$folder}
    [[ :$GST_PLUGIN_PATH: == *:"$folder":* ]] || GST_PLUGIN_PATH+=:$folder
    line="GST_PLUGIN_PATH=$(for_shell "$GST_PLUGIN_PATH") "
  fi
  gst-inspect-1.0 --exists nonlocaldenoise ||
    fail "GStreamer has no element nonlocaldenoise: build it with tools/run"
  line+='gst-launch-1.0 -e'
  for word; do line+=" $(for_shell "$word")"; done
  echo "$line"
  exec gst-launch-1.0 -e "$@"
}
