package codec

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/pretty"
	"github.com/lullgo/lull/internal/seed"
)

func TestIntegers(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "-0": 0, "7": 7, "-7": -7, "25M": 25_000_000, "25 M": 25_000_000, "100k": 100_000, "1.5k": 1500,
		"0.001k": 1, "2G": 2_000_000_000, "25_000_000": 25_000_000, "9223372036854775807": math.MaxInt64, "3.0": 3, ".5k": 500,
	} {
		if got, ok := integer(text); !ok || got != want {
			t.Errorf("integer(%q) = %d, %v, want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{
		"", "-", "k", "1.", "1.5", "0.0001k", "9223372036854775808", "9223372036854775807k", "010", "0x10", "1__0", "_1", "1_",
		"1e3", "1_0e1", "+1", "1,000", "1 000", "25m", "25K", "10%", "one", "1kk", "1.2.3", "--1", "٣", "nan", "1._5",
	} {
		if got, ok := integer(text); ok {
			t.Errorf("integer(%q) = %d, want a refusal", text, got)
		}
	}
}

func TestNumbers(t *testing.T) {
	for text, want := range map[string]float64{
		"0": 0, "-0": 0, "0.1": 0.1, "800": 800, "-1": -1, "1.5k": 1500, "2.5e-3": 0.0025, "1E6": 1e6, "1e+2": 100, "25M": 25e6, ".5": 0.5,
	} {
		if got, ok := number(text, Plain); !ok || got != want || math.Signbit(got) != math.Signbit(want) {
			t.Errorf("number(%q) = %v, %v, want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{
		"1e-350", "-1e-399", "0.0001e-399", "", "nan", "NaN", ".nan", "inf", "-inf", ".inf", "Infinity", "1e400", "1e999999999999", "1ke3", "e5", "1e", "0x1p4", "1_", "10%", "1/2", "1,5",
	} {
		if got, ok := number(text, Plain); ok {
			t.Errorf("number(%q) = %v, want a refusal", text, got)
		}
	}
	for text, want := range map[string]float64{"10%": 0.1, "10 %": 0.1, "0.1": 0.1, "7%": 0.07, "0.01%": 0.0001, "100%": 1, "-5%": -0.05, "250%": 2.5, "1": 1, "1.0": 1, "1e-1": 0.1, "-1": -1, "-20": -20, "101": 101} {
		if got, ok := number(text, Share); !ok || got != want {
			t.Errorf("number(%q) = %v, %v, want %v", text, got, ok, want)
		}
	}
	// Per cent to some, times to others; and units that are for more than a share.
	for _, text := range []string{"%", "1k%", "1.2345k%", "1e1%", "10%%", "% 10", "ten%", "10", "1.5", "100", "2", "1.0000001", "1e1", "0.05k", "0.001k", "1k"} {
		if got, ok := number(text, Share); ok {
			t.Errorf("number(%q) = %v, want a refusal", text, got)
		}
	}
}

func TestDurations(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "0s": 0, "250ms": 250 * time.Millisecond, "1h30m": 90 * time.Minute, "1.5s": 1500 * time.Millisecond, "-1s": -time.Second, "none": lull.NoTimeout,
	} {
		if got, ok := duration(text, Timeout); !ok || got != want {
			t.Errorf("duration(%q) = %v, %v, want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "1", "100", "1d", "1 s", "s", "1e3s", "forever", "9999999h", "nan", "at-once", "0.4ns", "-0.1ns", "0.0000000001s"} {
		if got, ok := duration(text, Timeout); ok {
			t.Errorf("duration(%q) = %v, want a refusal", text, got)
		}
	}
	if got, ok := duration("at-once", Delay); !ok || got != hedge.AtOnce {
		t.Errorf(`duration("at-once") = %v, %v`, got, ok)
	}
	if got, ok := duration("none", Delay); ok {
		t.Errorf(`duration("none") = %v for a delay`, got)
	}
	if got, ok := duration("none", Plain); ok {
		t.Errorf(`duration("none") = %v for a field that is no timeout`, got)
	}
}

func TestWhatIsWrittenIsReadAgain(t *testing.T) {
	seed := seed.Fresh(t)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 100_000 {
		n := int64(random.Uint64()) >> random.IntN(64)
		if got, ok := integer(prettyInteger(n)); !ok || got != n {
			t.Fatalf("seed %d: integer %d is written %s and read %d, %v", seed, n, prettyInteger(n), got, ok)
		}
		if got, ok := duration(pretty.Duration(time.Duration(n)), Plain); !ok || int64(got) != n {
			t.Fatalf("seed %d: duration %d is written %s and read %d, %v", seed, n, pretty.Duration(time.Duration(n)), got, ok)
		}
		x := math.Float64frombits(random.Uint64())
		if random.IntN(2) == 0 {
			x = float64(random.IntN(100_000)) / 100_000
		}
		if math.IsNaN(x) || math.IsInf(x, 0) {
			continue
		}
		for _, f := range []Form{Plain, Share} {
			if got, ok := number(prettyNumber(x, f), f); !ok || got != x {
				t.Fatalf("seed %d: number %v is written %s and read %v, %v", seed, x, prettyNumber(x, f), got, ok)
			}
		}
	}
	for x, want := range map[float64]string{0.07: "7%", 1: "100%", 2.5: "250%", 93.30279220456295: "9330.279220456295%", 0.000012: "0.0012%", 1e-7: "1e-07", -1: "-1", 101: "101"} {
		check.Equal(t, prettyNumber(x, Share), want, "%v is written", x)
	}
}

func TestSuggestions(t *testing.T) {
	for wrong, want := range map[string]string{
		"100 ms": "100ms", "3 sec": "3s", "1d": "24h", "2 days": "48h", "5min": "5m", "1.5 Seconds": "1.5s", "100": "", "soon": "", "1S": "1s", "1m 30s": "1m30s", "2H 5M": "2h5m",
		"None": "none", "non": "none", "off": "none", "Infinite": "none", "never": "none", "at-once": "", "0": "", "0 s": "0s",
	} {
		check.Equal(t, nearestDuration(wrong, Timeout), want, "nearest duration to %q", wrong)
	}
	for wrong, want := range map[string]string{"AtOnce": "at-once", "at once": "at-once", "none": "", "off": "", "1 s": "1s"} {
		check.Equal(t, nearestDuration(wrong, Delay), want, "nearest delay to %q", wrong)
	}
	check.Equal(t, nearestDuration("never", Plain), "", "nearest duration to never")
	for wrong, want := range map[string]string{"10": "10%", "1.5": "1.5%", "100": "100%", "1e1": "10%", "5 percent": "", "10K": "", "+0.5": "0.5", "ten": ""} {
		check.Equal(t, nearestShare(wrong), want, "nearest share to %q", wrong)
	}
	isInteger := func(s string) bool { _, ok := integer(s); return ok }
	for wrong, want := range map[string]string{"25m": "25M", "10K": "10k", "10,000": "10000", "+5": "5", "many": "", "": ""} {
		check.Equal(t, nearestNumber(wrong, isInteger), want, "nearest number to %q", wrong)
	}
}

func TestPath(t *testing.T) {
	for path, want := range map[string]string{
		"Attempts": "attempts", "AttemptTimeout": "attempt_timeout", "DontRetry": "dont_retry", "UpTo": "up_to", "HTTP": "http", "": "",
		"Services[0].Queue.MaxWait": "services.0.queue.max_wait", "Budget.Ratio": "budget.ratio", "A[1][23].B": "a.1.23.b",
	} {
		check.Equal(t, Path(path), want, "Path(%q)", path)
	}
}
