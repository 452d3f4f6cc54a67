package demo

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// printTable prints the setting, the figures, findings, and what the figures mean. It fits
// 80 columns.
func printTable(w io.Writer, r result) error {
	out := bufio.NewWriter(w)
	of, words := r.setting.Scenario, r.setting.Scenario.words()
	fmt.Fprint(out, settingText(r.setting))
	if r.interrupted {
		fmt.Fprintf(out, "\nInterrupted after %.1f s. These are the calls begun until then; %d of them had\n%s\n",
			r.measured.Seconds(), r.unfinished, words.unfinished)
	}
	of.table(out, r)
	for _, text := range append([]string{strings.Join(of.findings(r), "\n")}, warnings(r)...) {
		if text != "" {
			fmt.Fprintf(out, "\n%s\n", text)
		}
	}
	fmt.Fprintf(out, "\n%s", words.definitions)
	return out.Flush()
}

func settingText(s setting) string {
	var b strings.Builder
	b.WriteString("The setting: a backend for each client, all alike, called at the same moments\n")
	fmt.Fprintf(&b, "  %-9s %.0f a second for %v, at random (Poisson, seed %d)\n", "calls", s.offered(), s.Duration, s.Seed)
	for _, line := range s.Scenario.describe(s) {
		fmt.Fprintf(&b, "  %-9s %s\n", line[0], line[1])
	}
	b.WriteString("The clients\n")
	for _, c := range s.Clients {
		for i, line := range strings.Split(c.about(s), "\n") {
			name := c.name
			if i > 0 {
				name = ""
			}
			fmt.Fprintf(&b, "  %-*s %s\n", s.Scenario.words().nameWidth, name, line)
		}
	}
	return b.String()
}

func warnings(r result) (texts []string) {
	const advice = "A lower --capacity or fewer --clients ask less."
	words := r.setting.Scenario.words()
	if lateness := r.late.p99(); lateness > words.late {
		texts = append(texts, fmt.Sprintf("Doubt: this machine was busy. One call in a hundred began %v late or more,\n"+
			"so %s are blurred. %s", lateness.Round(time.Millisecond), words.affected, advice))
	}
	if r.dialErrors > 0 {
		texts = append(texts, fmt.Sprintf("Doubt: %d %s could not even connect, for want of ports or open files here.\n%s",
			r.dialErrors, words.requests, advice))
	}
	return texts
}

func printJSON(out io.Writer, r result) error {
	setting, clients := r.setting.Scenario.json(r)
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(object{
		{"setting", setting},
		{"run", object{
			{"measured_ms", milliseconds(r.measured)}, // calls were begun for so long
			{"interrupted", r.interrupted},            // before its time
			{"unfinished_calls", r.unfinished},        // ended by the demo
			{"late_p99_ms", milliseconds(r.late.p99())},
			{"local_failures", r.dialErrors}, // attempts that this machine could not make
		}},
		{"clients", clients},
	})
}

// An object is one of JSON, with its fields in their order.
type object []struct {
	name  string
	value any
}

func (o object) MarshalJSON() ([]byte, error) {
	var fields [][]byte
	for _, f := range o {
		value, err := json.Marshal(f.value)
		if err != nil {
			return nil, err
		}
		fields = append(fields, append(strconv.AppendQuote(nil, f.name), append([]byte{':'}, value...)...))
	}
	return slices.Concat([]byte{'{'}, bytes.Join(fields, []byte{','}), []byte{'}'}), nil
}
