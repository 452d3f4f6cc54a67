package scenario

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lullgo/lull/internal/codec"
	"github.com/lullgo/lull/lab/sim"
)

// A Draw is a scenario with one value of each interval, and these values as assignments, as for Set.
type Draw struct {
	Scenario sim.Scenario
	Values   []string
}

// Draws returns n scenarios with values from the intervals that l has of those of s: a Latin hypercube (McKay, Beckman and Conover,
// "A comparison of three methods for selecting values of input variables", 1979). Each interval is cut into n equal pieces, and
// each piece is drawn from once, in an order of its own. Values between two positive ones are drawn evenly on a logarithmic scale,
// as rates and times are. A value without an interval stays. What is only known to be at least something is that in a third of the
// draws, since what was reached is often the limit, up to ten times that in another, and stays in the last. All draws are valid.
//
// The ends of an interval are as in a file: a duration such as 95ms, a share such as 0.9%, a number such as 1200 or 12k. Between
// two whole numbers there are whole numbers only.
func (l *Learned) Draws(s sim.Scenario, n int, seed uint64) ([]Draw, error) {
	random := rand.New(rand.NewPCG(seed, 1))
	draws := slices.Repeat([]Draw{{Scenario: s}}, n)
	all := slices.Clone(l.Values)
	for _, q := range l.Unknown {
		known := slices.ContainsFunc(all, func(v Interval) bool { return v.Path == q.Path })
		if least := s; q.Least != "" && !known && Set(&least, q.Path+"="+q.Least) == nil && least.Validate() == nil {
			all = append(all, Interval{Path: q.Path, Low: q.Least})
		}
	}
	for _, v := range all {
		if v.Low == v.High {
			continue
		}
		low, high, write, err := v.ends()
		if err != nil {
			return nil, err
		}
		for i, k := range random.Perm(n) {
			at := (float64(k) + random.Float64()) / float64(n)
			if v.High == "" && at > 2./3 {
				continue
			} else if v.High == "" {
				at = max(3*at-1, 0)
			}
			x := low + (high-low)*at
			if low > 0 {
				x = low * math.Pow(high/low, at)
			}
			d := &draws[i]
			d.Values = append(d.Values, v.Path+"="+write(x))
			if err := Set(&d.Scenario, d.Values[len(d.Values)-1]); err != nil {
				return nil, err
			}
		}
	}
	for _, d := range draws {
		if err := d.Scenario.Validate(); err != nil {
			return nil, fmt.Errorf("learned.values: with %s: %w", strings.Join(d.Values, ", "), err)
		}
	}
	return draws, nil
}

// ends returns the ends of an interval, and what writes a value between them. Without a high end that is ten times the low one.
func (v Interval) ends() (low, high float64, write func(float64) string, err error) {
	whole := true
	var read [2]float64
	for i, text := range []string{v.Low, cmp.Or(v.High, v.Low)} {
		form := codec.Plain
		if strings.HasSuffix(text, "%") {
			form = codec.Share
		}
		if wrong, _ := codec.Scalar(text, reflect.ValueOf(&read[i]).Elem(), form); wrong != "" {
			d, err := time.ParseDuration(text)
			if err != nil {
				return 0, 0, nil, fmt.Errorf("learned.values: %s is %q: want a number, a share or a duration such as 1200, 0.9%% or 95ms", v.Path, text)
			}
			read[i], write = float64(d), func(x float64) string { return time.Duration(sixDigits(x)).String() }
		}
		whole = whole && read[i] == math.Trunc(read[i])
	}
	if write == nil {
		write = func(x float64) string {
			if whole {
				x = math.Round(x)
			}
			return strconv.FormatFloat(sixDigits(x), 'f', -1, 64)
		}
	}
	if v.High == "" {
		read[1] *= 10
	}
	if read[0] > read[1] {
		err = fmt.Errorf("learned.values: %s is %q to %q: want the lower value first", v.Path, v.Low, v.High)
	}
	return read[0], read[1], write, err
}

func sixDigits(x float64) float64 {
	x, _ = strconv.ParseFloat(strconv.FormatFloat(x, 'g', 6, 64), 64)
	return x
}
