package lullhttp

import (
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
)

func TestClassifyStatus(t *testing.T) {
	kinds := map[engine.VerdictKind][]int{
		lull.KindSuccess:     {101, 200, 201, 204, 206, 299, 301, 302, 304, 308, 399},
		lull.KindTransient:   {408, 425, 500, 502, 503, 504, 520, 521, 522, 523, 524, 527, 530, 599},
		lull.KindRateLimited: {429, 529},
		lull.KindPermanent: {400, 401, 402, 403, 404, 405, 406, 407, 409, 410, 411, 412, 413, 414, 415, 416, 417, 418, 421, 422,
			423, 424, 426, 428, 431, 451, 499, 501, 505, 506, 507, 508, 510, 511, 525, 526,
			math.MinInt, -1, 0, 1, 99, 100, 102, 103, 199, 600, 999, math.MaxInt},
	}
	for kind, statuses := range kinds {
		for _, s := range statuses {
			want := lull.Verdict{Kind: kind, Code: strconv.Itoa(s)}
			if kind == lull.KindSuccess {
				want.Code = ""
			}
			if got := ClassifyStatus(s); got != want {
				t.Errorf("ClassifyStatus(%d) = %+v, want %+v", s, got, want)
			}
		}
	}
	// RFC 9110, 15: a number that is not known counts as the first of its class.
	for s := range 1000 {
		switch got := ClassifyStatus(s); {
		case got.NeverSent || got.After != 0:
			t.Errorf("ClassifyStatus(%d) = %+v claims too much", s, got)
		case got.Kind != lull.KindSuccess && got.Code != strconv.Itoa(s):
			t.Errorf("ClassifyStatus(%d) has code %q", s, got.Code)
		}
	}
}

func TestClassifyStatusAllocates(t *testing.T) {
	for s := 400; s < 600; s++ {
		if n := testing.AllocsPerRun(10, func() { ClassifyStatus(s) }); n != 0 {
			t.Errorf("ClassifyStatus(%d) allocates %v times", s, n)
		}
	}
}

func TestClassifyResponse(t *testing.T) {
	w := wait(5*time.Second, "Retry-After")
	zero := wait(0, "Retry-After")
	stop := Hint{Stop: true, Source: "X-Should-Retry"}
	yes := Hint{Retry: true, Source: "X-Should-Retry"}
	yesWait := Hint{Retry: true, After: time.Second, Source: "Retry-After"}
	const s = 5 * time.Second
	for _, c := range []struct {
		name   string
		status int
		hint   Hint
		kind   engine.VerdictKind
		after  time.Duration
	}{
		{"503", 503, noHint, lull.KindTransient, 0},
		{"503 that names a wait is a rate limit", 503, w, lull.KindRateLimited, s},
		{"503, come now", 503, zero, lull.KindTransient, 0},
		{"500 that names a wait", 500, w, lull.KindTransient, s},
		{"429", 429, noHint, lull.KindRateLimited, 0},
		{"429 that names a wait", 429, w, lull.KindRateLimited, s},
		{"403 that names a wait is a rate limit", 403, w, lull.KindRateLimited, s},
		{"403", 403, noHint, lull.KindPermanent, 0},
		{"403, wait of zero", 403, zero, lull.KindPermanent, 0},
		{"404 that names a wait", 404, w, lull.KindPermanent, 0},
		{"409 that names a wait passes", 409, w, lull.KindRateLimited, s},
		{"413 that names a wait passes", 413, w, lull.KindRateLimited, s},
		{"423 that names a wait passes", 423, w, lull.KindRateLimited, s},
		{"409", 409, noHint, lull.KindPermanent, 0},
		{"413, wait of zero", 413, zero, lull.KindPermanent, 0},
		{"423, don't", 423, stop, lull.KindPermanent, 0},
		{"410 that names a wait", 410, w, lull.KindPermanent, 0},
		{"400 that names a wait", 400, w, lull.KindPermanent, 0},
		{"503, don't", 503, stop, lull.KindOverloaded, 0},
		{"429, don't", 429, stop, lull.KindOverloaded, 0},
		{"402, don't: the dependency is well", 402, stop, lull.KindPermanent, 0},
		{"409, do", 409, yes, lull.KindTransient, 0},
		{"409, do, in a second", 409, yesWait, lull.KindTransient, time.Second},
		{"429, do", 429, yes, lull.KindRateLimited, 0},
		{"501, do", 501, yes, lull.KindTransient, 0},
		{"103, do", 103, yes, lull.KindPermanent, 0},
		{"200, don't", 200, stop, lull.KindSuccess, 0},
		{"200 that names a wait", 200, w, lull.KindSuccess, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := lull.Verdict{Kind: c.kind, After: c.after, Code: strconv.Itoa(c.status)}
			if c.kind == lull.KindSuccess {
				want.Code = ""
			}
			if got := classifyResponse(c.status, c.hint, c.hint.Source != ""); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

// What the user settled, a hint cannot make retryable.
func TestHintedKeepsTheUsersKind(t *testing.T) {
	w := wait(time.Second, "Retry-After")
	stop := Hint{Stop: true, Source: "X-Should-Retry"}
	yes := Hint{Retry: true, Source: "X-Should-Retry"}
	for _, k := range []engine.VerdictKind{lull.KindSuccess, lull.KindOverloaded, lull.KindPermanent} {
		for _, h := range []Hint{w, stop, yes, noHint} {
			if got, want := withHint(k, 503, h), (lull.Verdict{Kind: k, Code: "503"}); got != want {
				t.Errorf("hinted(%v, %+v) = %+v", k, h, got)
			}
		}
	}
	if got, want := withHint(lull.KindTransient, 404, w), (lull.Verdict{Kind: lull.KindTransient, After: time.Second, Code: "404"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got, want := withHint(lull.KindTransient, 404, stop), (lull.Verdict{Kind: lull.KindOverloaded, Code: "404"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
