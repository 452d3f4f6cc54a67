package problem

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
)

func TestAnEmptyListIsNoError(t *testing.T) {
	var l List
	l.Check(true, "Base", 1, "anything")
	l.In("Backoff", nil)
	check.Equal(t, l.Err(), nil, "error")
}

func TestProblemsOfPartsAreNamedAfterThem(t *testing.T) {
	var part, whole List
	part.Check(false, "Base", -time.Second, "zero or a positive duration")
	part.Add("Cap", 3, "more")
	whole.Add("Attempts", -1, "at least 1")
	whole.In("Backoff", fmt.Errorf("wrapped: %w", part.Err()))
	whole.In("Limit", errors.New("no list"))
	err := whole.Err()
	const want = "Attempts is -1: want at least 1\n" +
		"Backoff.Base is -1s: want zero or a positive duration\n" +
		"Backoff.Cap is 3: want more\n" +
		"Limit is no list: want a valid Limit"
	check.Equal(t, err.Error(), want, "error")
	check.Equal(t, strings.Join(Fields(err), " "), "Attempts Backoff.Base Backoff.Cap Limit", "fields")
	if got := Fields(errors.New("other")); len(got) != 1 || got[0] != "(other)" || Fields(nil) != nil {
		t.Errorf("fields of another error: %q; of none: %q", got, Fields(nil))
	}
	var p Problem
	if !errors.As(err, &p) || p.Field != "Attempts" {
		t.Errorf("errors.As found %+v", p)
	}
}

// One rule for all that a user may write without a unit, however deep it stands.
func TestUnits(t *testing.T) {
	type part struct{ Base, Cap time.Duration }
	type config struct {
		Timeout time.Duration
		Off     bool
		Backoff part
		Limit   time.Duration
	}
	for _, c := range []struct {
		config config
		want   string
	}{
		{config{}, ""},
		{config{Timeout: -1, Limit: ShortestDuration, Backoff: part{Base: time.Hour}}, ""},
		{config{Timeout: 500}, "Timeout is 500ns: want at least 100µs (a number without a unit counts nanoseconds: was 500ms meant?)"},
		{config{Backoff: part{Cap: 60000}}, "Backoff.Cap is 60µs: want at least 100µs (a number without a unit counts nanoseconds: was 1m0s meant?)"},
		{config{Limit: 3}, "Limit is 3ns: want at least a second (a number without a unit counts nanoseconds: was 3ms meant?)"},
	} {
		var l List
		l.Check(c.config.Limit == 0 || c.config.Limit > 3, "Limit", c.config.Limit, "at least a second")
		l.Units(c.config)
		got := ""
		if err := l.Err(); err != nil {
			got = err.Error()
		}
		check.Equal(t, got, c.want, "%+v", c.config)
	}
}

func TestShares(t *testing.T) {
	for share, want := range map[float64]string{
		0.1: "",
		10:  "Ratio is 10: want up to 1 (10 % is 0.1: was that meant?)",
		-1:  "Ratio is -1: want up to 1",
		101: "Ratio is 101: want up to 1",
	} {
		var l List
		l.Share(share >= 0 && share <= 1, "Ratio", share, "up to 1")
		check.Equal(t, l.Error(), want, "%v", share)
	}
}
