package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/lullgo/lull/lab/sim"
)

func TestMistakes(t *testing.T) {
	for _, c := range []struct {
		seeds int
		names []string
		want  string
	}{
		{0, nil, "-seeds is 0"},
		{1, []string{"hung"}, `no table is called "hung"`},
	} {
		p := &printer{ctx: t.Context(), out: new(bytes.Buffer), seeds: c.seeds}
		err := run(p, c.names)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %s", c, err, c.want)
		}
	}
}

func TestScenariosAreValid(t *testing.T) {
	for _, s := range []sim.Scenario{
		cell{load: 0.2, processes: 1, length: second}.scenario(),
		cell{load: 0.95, processes: 100_000, spike: true, length: second}.scenario(),
		cell{load: 0.8, processes: 1, outage: sim.Errors, length: second}.scenario(),
		quiet{processes: 1, errors: 0.1, late: second}.scenario(),
	} {
		if err := s.Validate(); err != nil {
			t.Errorf("%+v: %v", s, err)
		}
	}
}

func TestPercent(t *testing.T) {
	for share, want := range map[float64]string{1: "100", 0.999999: "99.99+", 0.99994: "99.99", 0: "0.00"} {
		if got := percent(share); got != want {
			t.Errorf("%v: %s, want %s", share, got, want)
		}
	}
	if got := count(100000); got != "100,000" {
		t.Error(got)
	}
}
