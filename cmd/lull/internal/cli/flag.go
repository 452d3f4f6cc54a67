package cli

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/lullgo/lull/internal/problem"
)

// Text is the value of a flag as it was typed. Flags are read as text, so that a
// command can report all mistakes at once, and "--load -1" is answered with what a load
// may be.
type Text string

// Decode implements kong's MapperValue.
func (t *Text) Decode(ctx *kong.DecodeContext) error {
	token := ctx.Scan.Pop()
	if token.IsEOL() {
		return fmt.Errorf("a value is missing")
	}
	*t = Text(fmt.Sprint(token.Value))
	return nil
}

// Quoted returns the text in quotes, for messages.
func (t Text) Quoted() string { return strconv.Quote(string(t)) }

// Texts are the values of a flag that may be given several times.
type Texts []Text

// Decode implements kong's MapperValue.
func (t *Texts) Decode(ctx *kong.DecodeContext) error {
	var one Text
	if err := one.Decode(ctx); err != nil {
		return err
	}
	*t = append(*t, one)
	return nil
}

// Split returns every part between commas, in order.
func (t Texts) Split() []string {
	var parts []string
	for _, one := range t {
		for part := range strings.SplitSeq(string(one), ",") {
			parts = append(parts, strings.TrimSpace(part))
		}
	}
	return parts
}

// Or returns the last value, or the default if the flag was not given. An empty value ("--load=") was given.
func (t Texts) Or(otherwise Text) Text {
	if len(t) == 0 {
		return otherwise
	}
	return t[len(t)-1]
}

// Names returns the name of each.
func Names[T any](all []T, name func(T) string) []string {
	names := make([]string, len(all))
	for i, each := range all {
		names[i] = name(each)
	}
	return names
}

// Duration reads a duration between two bounds. Like the other readers of flags it adds
// a problem to the list if the text is something else.
func Duration(l *problem.List, flag string, v Text, least, most time.Duration) time.Duration {
	d, err := time.ParseDuration(string(v))
	l.Check(err == nil && d >= least && d <= most, flag, v.Quoted(),
		fmt.Sprintf("a duration from %v to %v, such as 500ms or 1.5s", least, most))
	return d
}

// Whole reads a whole number between two bounds.
func Whole(l *problem.List, flag string, v Text, least, most int) int {
	n, err := strconv.Atoi(string(v))
	l.Check(err == nil && n >= least && n <= most, flag, v.Quoted(), fmt.Sprintf("a whole number from %d to %d", least, most))
	return n
}

// Number reads a number between two bounds; what describes it in the message.
func Number(l *problem.List, flag string, v Text, least, most float64, what string) float64 {
	n, err := strconv.ParseFloat(string(v), 64)
	l.Check(err == nil && !math.IsNaN(n) && n >= least && n <= most, flag, v.Quoted(), fmt.Sprintf("a number from %v to %v, %s", least, most, what))
	return n
}

// Seed reads the flag --seed.
func Seed(l *problem.List, v Text) uint64 {
	seed, err := strconv.ParseUint(string(v), 10, 64)
	l.Check(err == nil, "--seed", v.Quoted(), "a whole number from 0 to 18446744073709551615")
	return seed
}
