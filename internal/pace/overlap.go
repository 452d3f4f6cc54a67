package pace

import (
	"flag"
	"strconv"
)

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
