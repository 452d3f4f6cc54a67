package bulkhead

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/problem"
)

func TestValidate(t *testing.T) {
	type testCase struct {
		c    Config
		want string // the fields found wrong
	}
	cases := []testCase{
		{Config{}, ""},
		{Config{InFlight: 1}, ""},
		{Config{InFlight: math.MaxInt32, MaxWait: math.MaxInt64, MaxQueue: math.MaxInt32}, ""},
		{Config{InFlight: 5, MaxWait: time.Second}, ""},
		{Config{InFlight: -1}, "InFlight"},
		{Config{InFlight: math.MinInt}, "InFlight"},
		{Config{InFlight: 1, MaxWait: -1}, "MaxWait"},
		{Config{MaxWait: 1}, "MaxWait"},
		{Config{InFlight: 1, MaxWait: 1}, ""},
		{Config{InFlight: 1, MaxQueue: 1}, "MaxQueue"},
		{Config{InFlight: 1, MaxWait: 1, MaxQueue: -1}, "MaxQueue"},
		{Config{InFlight: math.MinInt, MaxWait: math.MinInt64, MaxQueue: math.MinInt}, "InFlight MaxQueue MaxWait"},
	}
	if tooMany := math.MaxInt; tooMany > MaxLimit { // where an int has 64 bits
		cases = append(cases,
			testCase{Config{InFlight: tooMany}, "InFlight"},
			testCase{Config{InFlight: 1, MaxWait: 1, MaxQueue: tooMany}, "MaxQueue"})
	}
	for _, c := range cases {
		err := c.c.Validate()
		fields := problem.Fields(err)
		slices.Sort(fields)
		check.Equal(t, strings.Join(fields, " "), c.want, "%+v: problems (%v)", c.c, err)
		l, newErr := New(c.c)
		if (newErr != nil) != (err != nil) || (l == nil) != (err != nil) {
			t.Errorf("%+v: New returned %v, %v; Validate %v", c.c, l, newErr, err)
		}
	}
}
