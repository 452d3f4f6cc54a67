// Command testreport reads the output of go test -json. It prints what go test
// would, and at the end how many tests ran and which were skipped. It fails if a
// test was skipped for want of something that the machine should have, and if none ran.
//
//	go test -race -json work | testreport skipped.txt
//
// The file gets the closing lines once more, for a summary.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/lullgo/lull/ci/internal/tool"
	"github.com/lullgo/lull/internal/must"
)

func main() {
	must.Main("testreport", 1, func() error {
		report, ok, err := read(os.Stdin, os.Stdout)
		must.Succeed(err)
		fmt.Print(report)
		if len(os.Args) > 1 {
			tool.WriteFile(os.Args[1], report)
		}
		if !ok {
			os.Exit(1) // what was printed says why
		}
		return nil
	})
}

// event is one line of go test -json; see go doc test2json.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
}

// allowed is in the reasons to skip that are no fault of the machine: the test
// measures what the race detector changes, such as allocations; it is long, and was
// run without that; or it is one of a suite for brokers of all kinds, and not for
// this one.
var allowed = []string{"race", "short", "not for this broker: "}

func read(in io.Reader, out io.Writer) (report string, ok bool, err error) {
	type test struct{ pkg, name string }
	output := map[test]string{}
	var ran, failed, skipped int
	var reasons strings.Builder
	ok = true
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Fprintln(out, lines.Text()) // go itself, about a build
			continue
		}
		t := test{e.Package, e.Test}
		switch {
		case e.Action == "build-fail":
			ok = false
		case e.Action == "build-output", e.Action == "output" && e.Test == "":
			if e.Output != "PASS\n" {
				fmt.Fprint(out, e.Output)
			}
		case e.Action == "output":
			output[t] += e.Output
		case e.Test == "":
			ok = ok && e.Action != "fail"
		case e.Action == "fail":
			ran, failed, ok = ran+1, failed+1, false
			fmt.Fprint(out, output[t])
		case e.Action == "skip":
			skipped++
			why := reason(output[t])
			ok = ok && slices.ContainsFunc(allowed, func(a string) bool { return strings.Contains(why, a) })
			fmt.Fprintf(&reasons, "skipped %s %s: %s\n", e.Package, e.Test, why)
		case e.Action == "pass":
			ran++
		}
		if e.Action == "pass" || e.Action == "skip" || e.Action == "fail" {
			delete(output, t)
		}
	}
	return fmt.Sprintf("%s%d tests ran, %d failed, %d skipped\n", reasons.String(), ran, failed, skipped), ok && ran > 0, lines.Err()
}

// reason returns why a test was skipped: its output without the framing.
func reason(output string) string {
	var lines []string
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- ") {
			lines = append(lines, line)
		}
	}
	if lines == nil {
		return "no reason given"
	}
	return strings.Join(lines, "; ")
}
