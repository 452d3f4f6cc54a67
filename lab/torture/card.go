package torture

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// A Grade is the outcome of a case.
type Grade string

// The grades, the best first.
const (
	Pass          Grade = "pass"
	Warn          Grade = "warn" // allowed, but not what is recommended
	Fail          Grade = "fail"
	NotApplicable Grade = "n/a" // the client does not claim it
)

// Because returns a verdict with this grade.
func (g Grade) Because(format string, args ...any) Verdict {
	return Verdict{g, fmt.Sprintf(format, args...)}
}

// A Verdict is a grade and why.
type Verdict struct {
	Grade Grade  `json:"grade"`
	Why   string `json:"why"`
}

// A Result is the verdict on a case, and what it rests on.
type Result struct {
	Case     string `json:"case"`
	Group    string `json:"group"`
	Does     string `json:"does"`
	Right    string `json:"right"`
	Source   string `json:"source"`
	Verdict  `json:"verdict"`
	Calls    int           `json:"calls"`
	Attempts int           `json:"attempts"`
	Took     time.Duration `json:"took"`           // nanoseconds
	Note     string        `json:"note,omitempty"` // what was wrong with how the client ended
	Events   []Event       `json:"events"`
}

// A Card has the results of a client, or of a server (package probe).
type Card struct {
	Name    string        `json:"name"`
	Version string        `json:"version,omitempty"`
	Server  bool          `json:"server,omitempty"` // the card is that of a server
	Began   time.Time     `json:"began"`
	Took    time.Duration `json:"took"` // nanoseconds
	Results []Result      `json:"results"`
}

// A Line is the sum of a group of cases in a card.
type Line struct {
	Group                        string
	Pass, Warn, Fail, NotApplies int
	Grade                        Grade  // the worst of the group; NotApplicable if nothing applies
	Why                          string // the first case with that grade, and its reason; empty for a pass
}

// Lines returns the lines of the card: for a client one for each of Groups, for a server one for
// each group that has results.
func (c *Card) Lines() []Line { return c.lines(groupsOf([]*Card{c})) }

// Matrix returns the groups of several cards, and for each card its line for each group.
func Matrix(cards []*Card) (groups []string, lines [][]Line) {
	groups = groupsOf(cards)
	for _, c := range cards {
		lines = append(lines, c.lines(groups))
	}
	return groups, lines
}

func groupsOf(cards []*Card) []string {
	if !ofServers(cards) {
		return Groups
	}
	var groups []string
	for _, c := range cards {
		for _, r := range c.Results {
			if !slices.Contains(groups, r.Group) {
				groups = append(groups, r.Group)
			}
		}
	}
	return groups
}

func ofServers(cards []*Card) bool { return len(cards) > 0 && cards[0].Server }

func (c *Card) lines(groups []string) []Line {
	lines := make([]Line, len(groups))
	for i, group := range groups {
		of := Card{Results: slices.DeleteFunc(slices.Clone(c.Results), func(r Result) bool { return r.Group != group })}
		l := Line{Group: group, Pass: of.Count(Pass), Warn: of.Count(Warn), Fail: of.Count(Fail), NotApplies: of.Count(NotApplicable), Grade: NotApplicable}
		for _, r := range of.Results {
			if r.Grade.severity() > l.Grade.severity() {
				l.Grade, l.Why = r.Grade, r.Case+": "+r.Why
			}
		}
		if l.Grade == Pass {
			l.Why = ""
		}
		lines[i] = l
	}
	return lines
}

// severity is -1 for what is no grade.
func (g Grade) severity() int { return slices.Index([]Grade{NotApplicable, Pass, Warn, Fail}, g) }

// Count returns how many results have a grade.
func (c *Card) Count(g Grade) int {
	n := 0
	for _, r := range c.Results {
		if r.Grade == g {
			n++
		}
	}
	return n
}

// Result returns the result of a case, and reports whether there is one.
func (c *Card) Result(name string) (Result, bool) {
	i := slices.IndexFunc(c.Results, func(r Result) bool { return r.Case == name })
	if i < 0 {
		return Result{}, false
	}
	return c.Results[i], true
}

// WriteJSON writes cards as JSON.
func WriteJSON(w io.Writer, cards []*Card) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	e.SetEscapeHTML(false)
	return e.Encode(map[string][]*Card{"cards": cards})
}

// mostJSON bounds what ReadJSON reads.
const mostJSON = 256 << 20

// ReadJSON reads what WriteJSON wrote.
func ReadJSON(r io.Reader) ([]*Card, error) {
	var doc struct {
		Cards []*Card `json:"cards"`
	}
	switch err := json.NewDecoder(io.LimitReader(r, mostJSON)).Decode(&doc); {
	case err == io.EOF:
		return nil, errors.New("an empty file")
	case err != nil:
		return nil, fmt.Errorf("not the JSON of cards: %w", err)
	}
	for i, c := range doc.Cards {
		switch {
		case c == nil:
			return nil, fmt.Errorf("cards[%d] is null, want an object", i)
		case c.Name == "":
			return nil, fmt.Errorf("cards[%d].name is empty", i)
		case c.Server != doc.Cards[0].Server:
			return nil, fmt.Errorf("cards[%d].server is %v, and that of cards[0] is not: clients and servers do not go together", i, c.Server)
		}
		for j, r := range c.Results {
			if r.Grade.severity() < 0 {
				return nil, fmt.Errorf("cards[%d].results[%d].verdict.grade is %q, want pass, warn, fail or n/a", i, j, r.Grade)
			}
		}
	}
	return doc.Cards, nil
}

// WriteJUnit writes cards as JUnit's XML. A warning is a test that passes, with its text as
// output; what does not apply is skipped.
func WriteJUnit(w io.Writer, cards []*Card) error {
	type message struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
	type test struct {
		Class   string   `xml:"classname,attr"`
		Name    string   `xml:"name,attr"`
		Time    string   `xml:"time,attr"`
		Failure *message `xml:"failure,omitempty"`
		Skipped *message `xml:"skipped,omitempty"`
		Out     string   `xml:"system-out,omitempty"`
	}
	type suite struct {
		Name     string `xml:"name,attr"`
		Tests    int    `xml:"tests,attr"`
		Failures int    `xml:"failures,attr"`
		Skipped  int    `xml:"skipped,attr"`
		Time     string `xml:"time,attr"`
		Cases    []test `xml:"testcase"`
	}
	var doc struct {
		XMLName xml.Name `xml:"testsuites"`
		Suites  []suite  `xml:"testsuite"`
	}
	for _, c := range cards {
		s := suite{Name: c.Name, Tests: len(c.Results), Failures: c.Count(Fail), Skipped: c.Count(NotApplicable), Time: fmt.Sprintf("%.3f", c.Took.Seconds())}
		for _, r := range c.Results {
			t := test{Class: r.Group, Name: r.Case, Time: fmt.Sprintf("%.3f", r.Took.Seconds())}
			switch r.Grade {
			case Fail:
				t.Failure = &message{r.Why, r.Right + " (" + r.Source + ")"}
			case NotApplicable:
				t.Skipped = &message{Message: r.Why}
			default:
				t.Out = string(r.Grade) + ": " + r.Why
			}
			s.Cases = append(s.Cases, t)
		}
		doc.Suites = append(doc.Suites, s)
	}
	text, err := xml.MarshalIndent(doc, "", " ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, text)
	return err
}
