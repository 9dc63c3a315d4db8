#!/usr/bin/env bash
# The comparison of README with gst-inspect-1.0 accepts a true table and finds every kind of slip in others.
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
check=$(dirname "${BASH_SOURCE[0]}")/readme_matches_inspect
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat >"$folder/good.md" <<'TABLE'
Another table comes first.

| element | what |
| --- | --- |
| `nonlocaldenoise` | denoises |

| Property | Default | Range | Meaning |
| --- | --- | --- | --- |
| `sigma` | -1 | -1 (estimate), 0 to 100 | noise |
| `strength` | 1 | 0 to 10 | luma |
| `chroma-strength` | 1.0 | 0 – 10 | chroma |
| `chroma` | separate | separate, joint | weights |
| `temporal` | preset | preset, off, recursive | fusion |
| `look-ahead` | -1 | -1 to 8 | frames |
| `refinement` | preset | preset, off, or a file | network |
| `patch-size` | 0 (the preset's) | 0, or odd 1 to 15 | patch |
| `search-size` | `0` | 0, or odd 3 to 63 | window |
| `preset` | balanced | `fast`, `balanced`, `quality` | both |
| `n-threads` | 0 | 0 to 256 | threads |
| `noise-level` | – | 0 to 100 | read-only |
| `message` | true | true, false | messages |
| `adaptive` | false | true, false | adapt |
| `method` | direct | direct, attention | averages |
TABLE
"$check" "$folder/good.md" nonlocaldenoise || fail "refuses a true table"

finds() { # PATTERN SED-EXPRESSION: this slip must be found
  sed "$2" "$folder/good.md" >"$folder/bad.md"
  ! cmp -s "$folder/good.md" "$folder/bad.md" || fail "no slip was made by: $2"
  output=$("$check" "$folder/bad.md" nonlocaldenoise 2>&1) && fail "does not see: $2"
  grep -qE "$1" <<<"$output" || fail "expected '$1' for $2, got:" "$output"
}
finds 'sigma: default is -1' 's/| -1 |/| 10 |/'
finds 'strength: range is 0 to 10' 's/| 0 to 10 | luma/| 0 to 20 | luma/'
finds 'preset: default is balanced' 's/| balanced |/| quality |/'
finds 'preset: values are' 's/`quality`/`best`/'
finds 'n-threads: range is 0 to 256' 's/0 to 256/1 to 256/'
finds 'message: default is true' 's/`message` | true/`message` | false/'
finds 'adaptive: is not in the table' '/adaptive/d'
finds 'no such property' 's/`sigma`/`sgima`/'
finds "no column 'range'" 's/| Range |/| Limits |/'
finds 'no table' 's/| Property |/| What |/'
! "$check" "$folder/none.md" nonlocaldenoise 2>/dev/null || fail "accepts a README that is not there"
