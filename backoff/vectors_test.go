package backoff

import (
	"encoding/json"
	"math"
	"math/big"
	"os"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

func readVectors(t *testing.T, name string, into any) {
	t.Helper()
	b := must.Have(os.ReadFile("testdata/" + name))
	if err := json.Unmarshal(b, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// fraction is a source that always returns a/b of its range, rounded up.
func fraction(a, b uint64) func() uint64 {
	x := new(big.Int).Lsh(new(big.Int).SetUint64(a), 64)
	x.Add(x, new(big.Int).SetUint64(b-1))
	x.Quo(x, new(big.Int).SetUint64(b))
	v := x.Uint64()
	return func() uint64 { return v }
}

func highest() uint64 { return math.MaxUint64 }
func lowest() uint64  { return 0 }

// Envoy draws random % ceiling in milliseconds. The same fraction of our own
// range must give the same delay, to the nanosecond by which our range is
// closed and Envoy's is open.
func TestEnvoyVectors(t *testing.T) {
	var file struct {
		Cases []struct {
			Base, Max uint64
			Random    []uint64
			DelayMS   []uint64 `json:"delay_ms"`
		}
		ExponentialNoJitter []struct {
			Init, Max uint64
			Mult      float64
			Want      []uint64
		} `json:"exponential_no_jitter"`
	}
	readVectors(t, "envoy_backoff.json", &file)
	if len(file.Cases) != 3 || len(file.ExponentialNoJitter) != 2 {
		t.Fatalf("found %d and %d cases, want 3 and 2", len(file.Cases), len(file.ExponentialNoJitter))
	}
	for _, c := range file.Cases {
		s := Schedule{Base: ms(c.Base), Cap: ms(c.Max)}
		ceiling := c.Base // in the words of the source: doubles up to max
		for i, r := range c.Random {
			retry := i + 1
			check.Equal(t, s.Ceiling(retry), ms(ceiling), "base %d max %d: Ceiling(%d)", c.Base, c.Max, retry)
			got := s.Delay(retry, 0, fraction(r%ceiling, ceiling))
			if want := ms(c.DelayMS[i]); got < want || got > want+1 {
				t.Errorf("base %d max %d: Delay(%d) = %v, want %v", c.Base, c.Max, retry, got, want)
			}
			ceiling = min(2*ceiling, c.Max)
		}
	}
	for _, c := range file.ExponentialNoJitter {
		s := Schedule{Jitter: None, Base: ms(c.Init), Cap: ms(c.Max), Factor: c.Mult}
		// Envoy rounds to whole milliseconds at every step and multiplies what it
		// rounded; the error it carries along is at most half a millisecond a step,
		// grown by the factor. Doubling has none.
		var slack float64
		for i, want := range c.Want {
			got := s.Delay(i+1, 0, nil)
			if d := math.Abs(float64(got - ms(want))); d > slack {
				t.Errorf("init %d mult %v: Delay(%d) = %v, want %v ± %v", c.Init, c.Mult, i+1, got, ms(want), time.Duration(slack))
			}
			if c.Mult != 2 {
				slack = slack*c.Mult + float64(500*time.Microsecond)
			}
		}
	}
}

// The AWS SDKs' sequences fix the jitter factor at 1: the delays are the upper
// ends of the ranges.
func TestAWSVectors(t *testing.T) {
	var file struct {
		Cases []struct {
			Name      string
			Base, Cap float64
			Delays    []float64
		}
	}
	readVectors(t, "aws_delays.json", &file)
	if len(file.Cases) != 16 {
		t.Fatalf("found %d cases, want 16", len(file.Cases))
	}
	for _, c := range file.Cases {
		s := Schedule{Base: seconds(c.Base), Cap: seconds(c.Cap)}
		for i, want := range c.Delays {
			if got := s.Delay(i+1, 0, highest); got != seconds(want) {
				t.Errorf("%s: Delay(%d) = %v, want %v", c.Name, i+1, got, seconds(want))
			}
			if got := s.Max(i + 1); got != seconds(want) {
				t.Errorf("%s: Max(%d) = %v, want %v", c.Name, i+1, got, seconds(want))
			}
		}
	}
}

func ms[T uint64 | int](n T) time.Duration { return time.Duration(n) * time.Millisecond }

func seconds(s float64) time.Duration { return time.Duration(math.Round(s * 1e9)) }
