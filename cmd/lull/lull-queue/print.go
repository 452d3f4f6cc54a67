package main

import (
	"bufio"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/lullgo/lull/cmd/lull/internal/term"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/queue"
)

type letterPrinter struct {
	out    *bufio.Writer
	table  *tabwriter.Writer
	lines  *json.Encoder // nil: the table
	body   bool
	counts map[string]int // by reason
}

func newLetterPrinter(w io.Writer, asJSON, body bool) *letterPrinter {
	p := &letterPrinter{out: bufio.NewWriter(w), body: body, counts: map[string]int{}}
	if asJSON {
		p.lines = json.NewEncoder(p.out)
		return p
	}
	p.table = tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(p.table, "DIED\tREASON\tCODE\tATTEMPTS\tREDRIVES\tSOURCE\tID\tERROR")
	return p
}

const widest = 60 // of an error in the table

func (p *letterPrinter) print(l *queue.Letter) error {
	p.counts[l.Reason]++
	if p.lines != nil {
		return p.lines.Encode(letterJSON(l))
	}
	last := ""
	if len(l.Errors) > 0 {
		last = term.Printable(l.Errors[0])
		if len(last) > widest {
			last = strings.ToValidUTF8(last[:widest-3], "") + "..."
		}
	}
	_, err := fmt.Fprintf(p.table, "%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\n", died(l), orDash(l.Reason), orDash(l.Code), known(l.Attempts), l.Redrives,
		orDash(l.Source), orDash(l.OriginalID), last)
	if p.body {
		fmt.Fprintf(p.table, "  %s\n", bodyText(l.Body))
	}
	return err
}

// end prints how many letters there were of each kind, and whether the reading was cut short.
func (p *letterPrinter) end(seen queue.Progress, cut bool) error {
	if p.lines == nil {
		if seen.Matched > 0 {
			p.table.Flush()
		}
		text := choice.Either(cut, fmt.Sprintf("Cut short, there may be more: %d of %d seen.", seen.Matched, seen.Seen), p.summary(seen))
		fmt.Fprintln(p.out, text)
	}
	return p.out.Flush()
}

func (p *letterPrinter) summary(seen queue.Progress) string {
	if seen.Matched == 0 {
		return fmt.Sprintf("No dead letters (%d seen).", seen.Seen)
	}
	var kinds []string
	for reason, n := range p.counts {
		kinds = append(kinds, fmt.Sprintf("%d %s", n, orDash(reason)))
	}
	slices.Sort(kinds)
	return fmt.Sprintf("%d of %d seen: %s.", seen.Matched, seen.Seen, strings.Join(kinds, ", "))
}

func died(l *queue.Letter) string {
	if at := l.Died(); !at.IsZero() {
		return at.UTC().Format("2006-01-02T15:04:05Z")
	}
	return "-"
}

// known returns a number, "-" for zero, which means that it is not known.
func known(n int) string {
	return choice.Either(n == 0, "-", strconv.Itoa(n))
}

func orDash(s string) string { return cmp.Or(term.Printable(s), "-") }

func bodyText(b []byte) string {
	if utf8.Valid(b) {
		return term.Printable(string(b))
	}
	return fmt.Sprintf("%d bytes, base64: %s", len(b), base64.StdEncoding.EncodeToString(b))
}

// letterFields is a letter as JSON. It leaves out what is not known.
type letterFields struct {
	ID           string            `json:"id"`
	Reason       string            `json:"reason"`
	Code         string            `json:"code,omitempty"`
	Errors       []string          `json:"errors,omitempty"`
	Attempts     int               `json:"attempts,omitempty"`
	Redrives     int               `json:"redrives"`
	Source       string            `json:"source,omitempty"`
	FirstFailure time.Time         `json:"first_failure,omitzero"`
	LastFailure  time.Time         `json:"last_failure,omitzero"`
	Enqueued     time.Time         `json:"enqueued,omitzero"`
	Group        string            `json:"group,omitempty"`
	TraceParent  string            `json:"traceparent,omitempty"`
	TraceState   string            `json:"tracestate,omitempty"`
	Headers      map[string]string `json:"headers,omitempty"`
	Body         *string           `json:"body,omitempty"`        // if it is UTF-8
	BodyBase64   []byte            `json:"body_base64,omitempty"` // otherwise
}

func letterJSON(l *queue.Letter) letterFields {
	f := letterFields{
		ID: l.OriginalID, Reason: l.Reason, Code: l.Code, Errors: l.Errors, Attempts: l.Attempts, Redrives: l.Redrives,
		Source: l.Source, FirstFailure: l.FirstFailure.UTC(), LastFailure: l.LastFailure.UTC(), Enqueued: l.Enqueued.UTC(),
		Group: l.Group, TraceParent: l.TraceParent, TraceState: l.TraceState, Headers: l.Headers,
	}
	if utf8.Valid(l.Body) {
		text := string(l.Body)
		f.Body = &text
	} else {
		f.BodyBase64 = l.Body
	}
	return f
}
