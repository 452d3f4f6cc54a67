//go:build servers

package torture

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/must"
)

// slow is a client of which each call begins and ends late: a program that is slow to start and to exit.
func slow(client Client, before, after time.Duration) Client {
	return changed{client, func(ctx context.Context, s Session, c Call) Outcome {
		time.Sleep(before)
		defer time.Sleep(after)
		return s.Call(ctx, c)
	}}
}

// A client that starts slowly has the verdicts of one that does not.
func TestASlowStart(t *testing.T) {
	t.Parallel()
	cases := must.Have(Select([]string{"deadline-hint", "deadline-silent", "deadline-attempts"}))
	for i := range cases {
		cases[i].timeout = time.Second
	}
	checkGrades(t, slow(Lull("lullhttp", lull.Policy{}), 1100*ms, 100*ms), cases, func(string) Grade { return Pass })
}

// The time of a case begins when the client comes: what it needed until then is no part of it.
func TestTheLimitBeginsWhenTheClientComes(t *testing.T) {
	t.Parallel()
	cases := must.Have(Select([]string{"once-success"}))
	cases[0].limit, cases[0].script = 4*time.Second, []answer{{status: 200, delay: 2 * time.Second}}
	checkGrades(t, slow(NetHTTP(), 2500*ms, 0), cases, func(string) Grade { return Pass })
	cases[0].limit, cases[0].script = time.Second, []answer{{status: 200, fault: faultSilent}}
	checkGrades(t, slow(NetHTTP(), 0, 0), cases, func(string) Grade { return Fail })
}

// tardy is a client of which the machine takes a share: a timeout of less than so long is up before its
// request arrives.
func tardy(client Client, by time.Duration) Client {
	return changed{client, func(ctx context.Context, s Session, c Call) Outcome {
		if c.Timeout > 0 && c.Timeout <= by {
			time.Sleep(c.Timeout)
			return Outcome{Text: "its time was up"}
		}
		return s.Call(ctx, c)
	}}
}

// A request that does not arrive in time is given longer times, and the verdict is that of a quick machine.
func TestLongerTimes(t *testing.T) {
	t.Parallel()
	cases := must.Have(Select([]string{"deadline-silent"}))
	cases[0].timeout = time.Second // two in the second try, four in the third
	card := must.Have(Run(t.Context(), tardy(NetHTTP(), 2*time.Second), Options{Cases: cases}))
	r := card.Results[0]
	if want := "try 3: "; r.Grade != Pass || !strings.HasPrefix(r.Events[0].Text, want) || !strings.HasSuffix(r.Events[0].Text, "times are 4 times as long") {
		t.Errorf("%s (%s), and %q is first, want a pass and %q", r.Grade, r.Why, r.Events[0].Text, want)
	}
	if c := cases[0].withLongerTimes(4); c.timeout != 4*time.Second || c.limit != 4*defaultLimit || cases[0].timeout != time.Second || cases[0].limit != 0 {
		t.Errorf("four times as long are %v of %v, and the first %v of %v", c.timeout, c.limit, cases[0].timeout, cases[0].limit)
	}
	hedged := caseNamed("hedge-get")
	if c := hedged.withLongerTimes(2); c.script[0].delay != 6*time.Second || hedged.script[0].delay != 3*time.Second {
		t.Errorf("the slow answer takes %v in the second try, and %v in the first", c.script[0].delay, hedged.script[0].delay)
	}
}
