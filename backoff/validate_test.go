package backoff

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
	for _, c := range []struct {
		s    Schedule
		want string // the fields found wrong
	}{
		{Schedule{}, ""},
		{Schedule{Cap: time.Millisecond}, ""}, // the default base makes way
		{Schedule{Base: time.Minute}, ""},
		{Schedule{Factor: 1}, ""},
		{Schedule{Floor: ms(99)}, ""},
		{Schedule{Jitter: None, Floor: ms(500)}, ""},
		{Schedule{Kind: Constant}, ""},
		{Schedule{Kind: Constant, Base: time.Second, Jitter: Proportional, FastFirst: true}, ""},
		{Schedule{Kind: Immediate}, ""},
		{Schedule{Kind: Immediate, Jitter: None}, ""},
		{Schedule{Kind: Ethernet, Base: time.Second, FastFirst: true}, ""},
		{Schedule{Jitter: Decorrelated, Base: ms(50)}, ""},

		{Schedule{Kind: 5}, "Kind"},
		{Schedule{Jitter: 5}, "Jitter"},
		{Schedule{Base: -1}, "Base"},
		{Schedule{Cap: -1}, "Cap"},
		{Schedule{Base: 2, Cap: 1}, "Cap"},
		{Schedule{Floor: -1}, "Floor"},
		{Schedule{Floor: ms(100)}, "Floor"},
		{Schedule{Jitter: None, Floor: time.Minute}, "Floor"},
		{Schedule{Kind: Constant, Floor: 1}, "Floor"},
		{Schedule{Factor: .99}, "Factor"},
		{Schedule{Factor: -2}, "Factor"},
		{Schedule{Factor: math.NaN()}, "Factor"},
		{Schedule{Factor: math.Inf(1)}, "Factor"},
		{Schedule{Kind: Linear, Factor: 2}, "Factor"},
		{Schedule{Jitter: Decorrelated, Factor: 3}, "Factor"},
		{Schedule{Kind: Linear, Jitter: Decorrelated}, "Jitter"},
		{Schedule{Kind: Ethernet, Jitter: Equal, Base: longest, Cap: 1, Floor: 1, Factor: 2}, "Base Cap Factor Floor Jitter"},
		{Schedule{Kind: Immediate, Jitter: Equal, Base: 1, Cap: 1, Floor: 1, Factor: 2, FastFirst: true}, "Base Cap Factor FastFirst Floor Jitter"},
		{Schedule{Kind: 9, Jitter: 9, Base: -1, Cap: -1, Floor: -1, Factor: -1}, "Base Cap Factor Floor Jitter Kind"},
	} {
		err := c.s.Validate()
		fields := problem.Fields(err)
		slices.Sort(fields)
		check.Equal(t, strings.Join(fields, " "), c.want, "%+v: problems (%v)", c.s, err)
	}
}
