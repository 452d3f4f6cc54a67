package pace

import (
	"flag"
	"strconv"
)

// Overlap has that many tests wait beside each other, though there are fewer cores: it sets -test.parallel, unless that
// was given, or set before. It is for TestMain, where tests wait more than they work.
func Overlap(tests int) {
	parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		flag.Set("test.parallel", strconv.Itoa(tests))
	}
}

// Skip adds to -test.skip what matches. It is for TestMain, if examples need a server that is not installed: they cannot
// skip themselves.
func Skip(pattern string) {
	parse()
	skip := flag.Lookup("test.skip").Value
	if given := skip.String(); given != "" {
		pattern += "|" + given
	}
	skip.Set(pattern)
}

// parse parses the command line, once: what was set since is kept.
func parse() {
	if !flag.Parsed() {
		flag.Parse()
	}
}
