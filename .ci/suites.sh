# Sourced by .ci/check and .ci/nightly: what both run, for a short time and for a long one.

# servers FLAGS... runs the suite with the tag servers, one package at a time, and of each package the tests behind the tag: the others have
# run. None may be skipped.
servers() {
  local files names
  files=$(grep -rlE --include='*_test.go' --exclude-dir=node_modules '^//go:build (.*[^[:alnum:]_])?servers\b' .) || die 'no tests with the tag servers'
  files=$(xargs grep -lE '^func (Test|Example|Fuzz)' <<<"$files")
  names=$(xargs grep -hoE '^func (Test|Example|Fuzz)[[:alnum:]_]*' <<<"$files" | sed 's/^func //' | sort -u | paste -sd '|')
  xargs -n 1 dirname <<<"$files" | sort -u |
    xargs go test "$@" -tags servers -p 1 -timeout 10m -json -run "^($names)\$" |
    testreport "$tmp/skipped.servers"
}

# each_other_release COMMAND... runs it with each supported release of Go but that of the toolchain that runs this, whatever its patch.
each_other_release() {
  local release
  for release in $(<.ci/toolchains); do
    [[ $(go env GOVERSION). != "${release%.*}".* ]] || continue
    GOTOOLCHAIN=$release go version ||
      die "$release, which is supported, too, cannot be had. It is fetched like a module: the first time this needs a module proxy (go env GOPROXY)"
    GOTOOLCHAIN=$release "$@"
  done
}

# fuzz TIME fuzzes every target of the workspace. TIME is a duration, or a number of inputs, such as 500x. With a number each
# target begins with its seeds alone, so that it takes as long each time; with a duration, with all that was found on this machine before.
# Three packages at a time: two are fuzzed while one is linked.
fuzz() {
  local packages worker pids=() failed=''
  fuzztime=$1
  packages=$(go list -f '{{$p := .}}{{range .TestGoFiles}}{{$p.ImportPath}} {{$p.Dir}} {{.}}{{"\n"}}{{end}}{{range .XTestGoFiles}}{{$p.ImportPath}} {{$p.Dir}} {{.}}{{"\n"}}{{end}}' work |
    while read -r package dir file; do if grep -q '^func Fuzz' "$dir/$file"; then echo "$package $dir"; fi; done | uniq)
  [[ -n $packages ]] || die 'no fuzz targets found'
  echo "$packages" >"$tmp/fuzz.packages"
  exec 3<"$tmp/fuzz.packages" # which the workers read on with one offset
  for worker in 0 1 2; do
    fuzz_each "$worker" &
    pids+=($!)
  done
  exec 3<&-
  for worker in "${pids[@]}"; do
    wait "$worker" || failed=yes
  done
  [[ -z $failed ]] || die 'see above'
}

next_package() { # one worker at a time: bash reads ahead, and goes back
  local status=0
  exec 4<>"$tmp/fuzz.lock"
  flock 4
  read -r package dir <&3 || status=1
  exec 4<&-
  return "$status"
}

fuzz_each() { # NAME: until no package is left. go test -fuzz would link each anew for each of its targets
  local package dir target targets
  while next_package; do
    go test -c -fuzz . -o "$tmp/fuzz.$1.test" "$package"
    targets=$(cd "$dir" && "$tmp/fuzz.$1.test" -test.list '^Fuzz' | grep '^Fuzz') || die "no fuzz targets in $package"
    for target in $targets; do
      fuzz_one "$1" "$package" "$dir" "$target" || fuzz_one "$1" "$package" "$dir" "$target" || die "$target twice ran out of time"
    done
  done
}

fuzz_one() { # fails for good if it found something; says 1 if only its time ran out at a bad moment
  local program=$tmp/fuzz.$1.test log=$tmp/fuzz.$1 package=$2 dir=$3 target=$4 known
  known=$(go env GOCACHE)/fuzz/$package
  [[ $fuzztime != *x ]] || known=$tmp/fuzz.$1.known
  # as go test runs it
  if (cd "$dir" && "$program" -test.paniconexit0 -test.run '^$' -test.fuzz "^$target\$" -test.fuzztime "$fuzztime" -test.fuzzminimizetime 1s \
    -test.fuzzcachedir "$known" -test.parallel 1) >"$log" 2>&1 </dev/null 3<&-; then
    printf '%s %s: %s\n' "$package" "$target" "$(grep '^fuzz: elapsed' "$log" | tail -n 1)"
    rm -rf "$tmp/fuzz.$1.known"
    return
  fi
  if grep -q 'context deadline exceeded' "$log" && ! grep -q 'Failing input written' "$log"; then
    return 1 # https://go.dev/issue/75804
  fi
  cat "$log"
  die "$target of $package failed"
}
