package outlier

import (
	"testing"
	"time"

	"github.com/lullgo/lull/internal/must"
)

// Off: everything fails, nobody goes.
func TestOff(t *testing.T) {
	s := must.Have(New(Config{Off: true, Unconditional: true, FailurePercent: 1, FailureMinHosts: 1, FailureMinCalls: 1, ConsecutiveGateway: 1, MaxEjected: 100},
		func(c Change) { t.Error(c) }))
	s.Update(0, keys(3))
	for i := range 1000 {
		now := time.Duration(i) * 100 * ms
		e, _ := s.Pick(now, dice.Uint64, nil)
		o := GatewayFailure
		if e.Key() == keys(1)[0] {
			o = Success
		}
		s.Done(now, e, o, dice.Uint64)
	}
}

// Time that runs backwards a little is taken as it comes.
func TestTimeRunsBackwards(t *testing.T) {
	s := must.Have(New(Config{}))
	s.Update(5*time.Second, keys(3))
	for i := range 2000 {
		now := time.Duration(i)*20*ms - time.Duration(i%7)*50*ms
		e, ok := s.Pick(now, dice.Uint64, nil)
		if !ok {
			t.Fatal("no endpoint")
		}
		s.Done(now-time.Second, e, Success, dice.Uint64)
	}
	for _, st := range s.States(0) {
		if st.Ejected || st.Load != 0 {
			t.Errorf("%+v", st)
		}
	}
}

// An endpoint that starts anew has no calls that began since: those under way are of before.
func TestWhatIsUnderWayWhenAnEndpointStartsAnewIsOfBefore(t *testing.T) {
	s := must.Have(New(Config{Jitter: -1}))
	s.Update(0, keys(1))
	h := s.hosts[0]
	for _, want := range []int64{1, 2, 0, 1} {
		if want == 0 {
			s.forget(h)
		} else {
			s.Pick(0, middle, nil)
		}
		if n := s.growth(h); n != want {
			t.Errorf("%d calls began, want %d", n, want)
		}
	}
}
