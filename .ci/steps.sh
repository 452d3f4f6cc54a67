# Sourced by .ci/setup and .ci/check, and first by .ci/run, which sources both: steps that are timed,
# and a summary at the end.
if declare -F step >/dev/null; then return; fi # the script that sources this one has done so before
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec </dev/null

export CI=true # a test whose server is missing fails instead of skipping
# A clone owned by someone else has no readable git state. And with -trimpath, what tests are built of is
# what a release is built of: its proof then compiles little. A profile would compile all that a program needs once more.
export GOFLAGS="${GOFLAGS:-} -buildvcs=false -trimpath -ldflags=-w -pgo=off"

tmp=$(mktemp -d)
current='' done_steps=()

finish() {
  local status=$?
  printf '\n== summary\n'
  if ((${#done_steps[@]})); then printf '%s\n' "${done_steps[@]}"; fi
  if [[ -n $current ]]; then printf 'FAIL         %s\n' "$current"; fi
  printf '%s after %d s\n' "$([[ $status == 0 ]] && echo passed || echo "FAILED (exit $status)")" "$SECONDS"
  cat "$tmp"/skipped* 2>/dev/null || true
  if [[ -s $tmp/test ]]; then
    printf '\n== go test work\n'
    cat "$tmp/test"
  fi
  rm -rf "$tmp"
  exit "$status"
}
trap finish EXIT
trap 'exit 129' HUP # a run that is interrupted has not passed
trap 'exit 130' INT
trap 'exit 143' TERM

step() { # step NAME COMMAND...: runs it, timed; the first failure ends the run
  local began=$SECONDS
  current=$1
  printf '\n== %s\n' "$current"
  shift
  "$@"
  done_steps+=("$(printf 'ok   %4d s  %s' $((SECONDS - began)) "$current")")
  note_seconds $((SECONDS - began)) "$current"
  current=''
}

note_seconds() { # SECONDS NAME: into a file that .ci/house reads, in the place of what the step took before
  local file=${XDG_CACHE_HOME:-$HOME/.cache}/lull/seconds
  mkdir -p "${file%/*}"
  if [[ -e $file ]]; then awk -F '\t' -v name="$2" '$3 != name' "$file" >"$tmp/seconds"; fi
  printf '%s\t%s\t%s\n' "$1" "$(date '+%Y-%m-%d %H:%M')" "$2" >>"$tmp/seconds"
  cp "$tmp/seconds" "$file"
}

die() {
  printf '.ci/%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

tree() { git status --porcelain 2>/dev/null || true; }

go version
tree_before=$(tree)
