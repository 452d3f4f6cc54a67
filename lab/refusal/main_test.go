package main

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
)

// Fields 14 and 15 are ticks of 10 ms, and the program's name may have anything in it.
func TestCPUTime(t *testing.T) {
	rest := " 1 2 3 4 5 6 7 8 9 10 250 50 11 12"
	for stat, want := range map[string]time.Duration{
		"7 (python3) S" + rest:    3 * time.Second,
		"7 (a) b (c d)) R" + rest: 3 * time.Second,
		"7 (python3) Z" + rest:    -1,
		"7 (python3) S 1 2 3":     -1,
		"":                        -1,
		"7 (python3) S" + strings.Replace(rest, "250", "x", 1): -1,
	} {
		got, err := cpuTime(stat)
		if (err != nil) != (want < 0) || err == nil && got != want {
			t.Errorf("%q: %v, error %v, want %v", stat, got, err, want)
		}
	}
}

func TestProcessor(t *testing.T) {
	if got := processor("processor\t: 0\nmodel\t\t: 1\nmodel name\t: Some CPU @ 2.00GHz\n\nprocessor\t: 1\nmodel name\t: Another\n"); got != "Some CPU @ 2.00GHz" {
		t.Error(got)
	}
}

// The shares are those of the 503 without a body. What was not measured has none.
func TestTable(t *testing.T) {
	const us = time.Microsecond
	lines := strings.Split(strings.TrimSpace(table([]row{
		{"a", "kept", [len(requests)]time.Duration{50 * us, 70 * us, 1000 * us, 10_000 * us}},
		{"b", "new", [len(requests)]time.Duration{7 * us, 70 * us}},
	})), "\n")
	for i, line := range lines {
		check.Equal(t, strings.Count(line, "|"), strings.Count(lines[0], "|"), "cells of line %d", i)
	}
	cells := func(line string) (all []string) {
		for c := range strings.SplitSeq(strings.Trim(line, "|"), "|") {
			all = append(all, strings.TrimSpace(c))
		}
		return all
	}
	for i, want := range [][]string{
		{"a", "kept", "50 µs", "70 µs", "1000 µs", "10000 µs", "5.0 %", "0.5 %"},
		{"b", "new", "7 µs", "70 µs", "–", "–", "–", "–"},
	} {
		check.Slices(t, cells(lines[i+2]), want, "cells(lines[i+2])")
	}
}

func TestSettings(t *testing.T) {
	for _, wrong := range []struct {
		rounds int
		cpu    time.Duration
	}{{0, tick}, {1, tick - 1}} {
		if err := run(t.Context(), wrong.rounds, wrong.cpu, "", io.Discard); err == nil {
			t.Errorf("%+v", wrong)
		}
	}
}
