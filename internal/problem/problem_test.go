package problem

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestAnEmptyListIsNoError(t *testing.T) {
	var l List
	l.Check(true, "Base", 1, "anything")
	l.In("Backoff", nil)
	if err := l.Err(); err != nil {
		t.Errorf("error %v", err)
	}
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
	if err.Error() != want {
		t.Errorf("%v\nwant\n%v", err, want)
	}
	if got := strings.Join(Fields(err), " "); got != "Attempts Backoff.Base Backoff.Cap Limit" {
		t.Errorf("fields %q", got)
	}
	if got := Fields(errors.New("other")); len(got) != 1 || got[0] != "(other)" || Fields(nil) != nil {
		t.Errorf("fields of another error: %q; of none: %q", got, Fields(nil))
	}
	var p Problem
	if !errors.As(err, &p) || p.Field != "Attempts" {
		t.Errorf("errors.As found %+v", p)
	}
}
