package pace

import (
	"flag"
	"strconv"
)

// Overlap has that many tests wait beside each other, though there are fewer cores: it sets -test.parallel, unless that
// was given, or set before. It is for TestMain, where tests wait more than they work.
func Overlap(tests int) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		flag.Set("test.parallel", strconv.Itoa(tests))
	}
}
