package lint

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/lullgo/lull/internal/choice"
)

// A Rule is a check of policies and call graphs.
type Rule struct {
	// ID is its name in output, comments and flags, in lower case with "-" between words.
	ID       string   `json:"-"`
	Severity Severity `json:"severity"`
	// Title is the meaning of a finding, in a line.
	Title string `json:"title"`
	// Why describes the consequences, and how the rule decides.
	Why string `json:"why"`
	// Sources are public primary sources.
	Sources []Source `json:"sources"`
	// Bad is a file in which the rule finds something, Good one in which none does.
	Bad  string `json:"-"`
	Good string `json:"-"`

	section string // of rules.md
}

// A Source is a public text on which a rule is based.
type Source struct {
	Title string `json:"title"`
	URL   string `json:"url,omitempty"`
}

//go:embed rules.md
var rulesPage string

// checks are the checks of the rules of rules.md. Check itself finds mistakes in files, and comments that ignore nothing.
var checks = map[string]func(*pass){
	"no-time-limit":             eachPolicy(noTimeLimit),
	"attempt-timeout-missing":   eachPolicy(attemptTimeoutMissing),
	"attempt-never-made":        eachPolicy(attemptNeverMade),
	"worst-case-over-deadline":  eachPolicy(worstCaseOverDeadline),
	"attempt-timeout-below-p99": eachPolicy(attemptTimeoutBelowP99),
	"worst-case-over-slo":       eachService(worstCaseOverSLO),
	"worst-case-over-slo-third": eachService(worstCaseOverSLOThird),
	"caller-gives-up-first":     callerGivesUpFirst,
	"backoff-missing":           eachPolicy(backoffMissing),
	"jitter-missing":            eachPolicy(jitterMissing),
	"jitter-useless":            eachPolicy(jitterUseless),
	ruleCap:                     eachPolicy(capBelowBase),
	"budget-missing":            eachPolicy(budgetMissing),
	"budget-too-large":          eachPolicy(budgetTooLarge),
	"hedge-without-budget":      eachPolicy(hedgeWithoutBudget),
	"retries-in-layers":         retriesInLayers,
	"call-cycle":                callCycle,
	"retry-not-idempotent":      eachPolicy(retryNotIdempotent),
	"breaker-cannot-trip":       eachPolicy(breakerCannotTrip),
	"breaker-trips-on-one":      eachPolicy(breakerTripsOnOne),
	"slow-call-unseen":          eachPolicy(slowCallUnseen),
	"visibility-below-handler":  eachService(visibilityBelowHandler),
	ruleUnknown:                 policyUnknown,
	ruleMistake:                 func(*pass) {},
	ruleDirective:               func(*pass) {},
}

// catalogue returns all rules, in the order of rules.md. They are read once, and not by commands that need none.
var catalogue = sync.OnceValue(func() []Rule { return readRules(rulesPage) })

const ruleSection = `(?s)^(\S+)\n\n([^\n]*)\. Severity: (\w+)\.\n\n(.*)\n\nBad:\n\n` + "```yaml\n(.*)```\n\nGood:\n\n```yaml\n(.*)```" + `\n\nSources:\n\n(.*)$`

func readRules(page string) (all []Rule) {
	section := regexp.MustCompile(ruleSection)
	for _, text := range strings.Split(page, "\n## ")[1:] {
		m := section.FindStringSubmatch(text)
		if m == nil {
			panic("rules.md: not of the form of a rule: " + text)
		}
		r := Rule{ID: m[1], Title: m[2], Why: m[4], Bad: m[5], Good: m[6], section: "## " + text}
		if err := r.Severity.UnmarshalText([]byte(m[3])); err != nil {
			panic(err)
		}
		for line := range strings.Lines(m[7]) {
			title, url, _ := strings.Cut(strings.Trim(line, "-[ )\n"), "](")
			r.Sources = append(r.Sources, Source{title, url})
		}
		all = append(all, r)
	}
	return all
}

// Rules returns every rule. The order is stable; the slice is the caller's own.
func Rules() []Rule { return slices.Clone(catalogue()) }

// FindRule returns the rule with the given id. The error names the nearest and lists them all.
func FindRule(id string) (Rule, error) {
	if i := slices.IndexFunc(catalogue(), func(r Rule) bool { return r.ID == id }); i >= 0 {
		return catalogue()[i], nil
	}
	guess := ""
	if near := nearestRule(id); near != "" {
		guess = "did you mean " + near + "? "
	}
	return Rule{}, fmt.Errorf("no rule is called %q: %sthere are %s", id, guess, strings.Join(ruleIDs(), ", "))
}

func ruleIDs() []string {
	return choice.Each(catalogue(), func(r Rule) string { return r.ID })
}

func nearestRule(id string) string { return choice.Nearest(id, ruleIDs()) }

func paragraph(s string) string { return strings.Join(strings.Fields(s), " ") }

func paragraphs(why string) []string { return choice.Each(strings.Split(why, "\n\n"), paragraph) }

// Explain returns the full description of the rule, for people.
func (r Rule) Explain() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s)\n%s.\n", r.ID, r.Severity, r.Title)
	for _, p := range paragraphs(r.Why) {
		b.WriteString("\n" + wrap(p, 80) + "\n")
	}
	b.WriteString("\nSources:\n")
	for _, s := range r.Sources {
		b.WriteString("  " + s.Title + "\n")
		if s.URL != "" {
			b.WriteString("    " + s.URL + "\n")
		}
	}
	fmt.Fprintf(&b, "\nBad:\n%s\nGood:\n%s", indented(r.Bad), indented(r.Good))
	return b.String()
}

// Markdown returns the section of the rule in rules.md.
func (r Rule) Markdown() string { return r.section }

func indented(s string) string {
	return "  " + strings.ReplaceAll(strings.TrimSuffix(s, "\n"), "\n", "\n  ") + "\n"
}

func wrap(s string, width int) string {
	lines := []string{}
	for _, word := range strings.Fields(s) {
		if last := len(lines) - 1; last >= 0 && utf8.RuneCountInString(lines[last]+" "+word) <= width {
			lines[last] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return strings.Join(lines, "\n")
}

// Severity is how serious a finding is.
type Severity uint8

const (
	// Note: worth knowing; perhaps nothing needs to change.
	Note Severity = iota
	// Warning: it works in normal operation, and not in an outage.
	Warning
	// Error: it cannot do what it promises, or does harm.
	Error
	severities
)

var severityNames = [severities]string{"note", "warning", "error"}

// String returns the severity as it is printed and typed, such as "warning".
func (s Severity) String() string { return choice.Name("severity", severityNames[:], s) }

// MarshalText returns the name of the severity. The error is for a value that is none.
func (s Severity) MarshalText() ([]byte, error) {
	return choice.Marshal("Severity", severityNames[:], s)
}

// UnmarshalText reads the name of a severity, in any case. The error names the text and what is allowed.
func (s *Severity) UnmarshalText(text []byte) error {
	return choice.Unmarshal("Severity", severityNames[:], s, text)
}
