package breaker

import (
	"fmt"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/must"
)

// A dependency that hangs fails each call after its time-out, which may be
// longer than the window.
func TestHangOpens(t *testing.T) {
	const window = DefaultWindow
	for _, windows := range []float64{0.01, 0.5, 1, 1.5, 3, 6, 20} {
		timeout := time.Duration(windows * float64(window))
		for _, gap := range []time.Duration{10 * time.Millisecond, 400 * time.Millisecond} {
			for _, before := range []time.Duration{0, time.Hour} { // of health
				t.Run(fmt.Sprintf("timeout %v, a call each %v, after %v of health", timeout, gap, before), func(t *testing.T) {
					var opened time.Duration
					b := must.Have(New(rated(Config{}), func(c Change) { opened = c.At }))
					var flying flights
					for now := max(0, before-2*window); opened == 0; now += gap {
						flying.land(b, now, timeout, Failure)
						if tok, _ := b.Start(now); now < before {
							b.Done(now, tok, Success, nil)
						} else {
							flying = append(flying, tok)
						}
						// Half a window of failures is half of what is judged, after health; a
						// window gives even the slow client its twenty calls.
						if limit := before + timeout + window + gap; now > limit {
							t.Fatalf("still closed %v after the hang began", now-before)
						}
					}
					t.Logf("opened %v after the first failure", opened-before-timeout)
				})
			}
		}
	}
}

// By default a hang is noticed when calls have ended in nothing but time-outs for
// two seconds, however many they are, or with the third, if that is later.
func TestHangOpensByDefault(t *testing.T) {
	for _, timeout := range []time.Duration{10 * time.Millisecond, time.Second, time.Minute} {
		for _, gap := range []time.Duration{time.Millisecond, time.Second, 12 * time.Second} {
			var opened time.Duration
			b := must.Have(New(Config{}, func(c Change) {
				if opened == 0 {
					opened = c.At
				}
			}))
			const healthy = time.Minute
			var flying flights
			for now := time.Duration(0); opened == 0 && now < time.Hour; now += gap {
				flying.land(b, now, timeout, Failure)
				if tok, _ := b.Start(now); now < healthy {
					b.Done(now, tok, Success, nil)
				} else {
					flying = append(flying, tok)
				}
			}
			first := healthy + timeout
			if least, most := first+2*time.Second, first+max(2*time.Second, 2*gap)+2*gap; opened < least || opened > most {
				t.Errorf("timeout %v, a call each %v: opened %v after the hang began, want %v to %v", timeout, gap, opened-healthy, least-healthy, most-healthy)
			}
		}
	}
}
