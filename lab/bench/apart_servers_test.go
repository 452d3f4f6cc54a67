//go:build servers

package main

import (
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

// TestMain lets the command run itself, as it does for each measurement, when it is
// run by a test: then it is the program of the test.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "-subject" {
		main()
		return
	}
	os.Exit(m.Run())
}

// An error of the other process is returned in this one.
func TestMeasureApartFails(t *testing.T) {
	_, err := measureApart(time.Microsecond)(group{name: "Group"}, subject{name: "peer"}, 1)
	if want := `-subject "Group/peer": there is none`; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// Every subject runs to its end on one core and on two.
func TestMeasureEverySubject(t *testing.T) {
	benchtime(t, "20x")
	for _, g := range groups() {
		for _, s := range g.subjects {
			for _, cores := range []int{1, 2} {
				if m, err := measure(s, cores); err != nil || m.Ns <= 0 {
					t.Errorf("%s/%s on %d cores: %+v, error %v", g.name, s.name, cores, m, err)
				}
			}
		}
	}
}

// The command measures the groups that are chosen, each subject in a process of its own.
func TestCommand(t *testing.T) {
	benchtime(t, "1x") // run sets it again; this puts it back
	var out strings.Builder
	err := run(strings.Fields("-rounds 1 -time 1us -group httpget"), &out, io.Discard)
	if err != nil || !strings.Contains(out.String(), "HTTPGet: ") || !strings.Contains(out.String(), "net/http ") || strings.Contains(out.String(), "RetrySuccess") {
		t.Errorf("error %v, output:\n%s", err, out.String())
	}
}

func TestExtrasOfServersTakeOneAllocation(t *testing.T) { extrasTakeOneAllocation(t, true) }
