// Package pace takes the times of tests from how quick the machine is just now. It is for
// tests with real processes and sockets, to which virtual time does not apply.
package pace

import (
	"flag"
	"strconv"
	"time"
)

const (
	samples = 30
	nap     = time.Millisecond
	// timerSlack is how late a timer may be on a machine that has time.
	timerSlack = 3 * time.Millisecond
	// most is by how much times are stretched at most.
	most = 6
)

// Stretch returns d, or a multiple of it if timers are late just now, because the machine
// has other work. It takes about 30 ms.
func Stretch(d time.Duration) time.Duration {
	var worst time.Duration
	for range samples {
		began := time.Now()
		time.Sleep(nap)
		worst = max(worst, time.Since(began)-nap)
	}
	return by(d, worst)
}

func by(d, worst time.Duration) time.Duration {
	return d * min(most, max(1, (worst+timerSlack-1)/timerSlack))
}

// Overlap lets that many tests run in parallel, also with fewer cores: it sets
// -test.parallel, unless that was set. It is for the TestMain of tests that wait more than
// they work.
func Overlap(tests int) {
	parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		flag.Set("test.parallel", strconv.Itoa(tests))
	}
}

// Skip adds a pattern to -test.skip. It is for the TestMain of examples that need a server
// that is not installed; they cannot skip themselves.
func Skip(pattern string) {
	parse()
	skip := flag.Lookup("test.skip").Value
	if given := skip.String(); given != "" {
		pattern += "|" + given
	}
	skip.Set(pattern)
}

// parse parses the command line once, because that would reset the flags.
func parse() {
	if !flag.Parsed() {
		flag.Parse()
	}
}
