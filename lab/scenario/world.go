package scenario

import (
	"cmp"
	"fmt"
	"io/fs"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/lullgo/lull/config/syntax"
	"github.com/lullgo/lull/internal/codec"
	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/internal/tree"
	"github.com/lullgo/lull/lab/sim"
)

const section = "learned"

// ReadLearned is [Read] that also returns the section "learned"; nil if the file has none.
func ReadLearned(path string) (sim.Scenario, *Learned, error) {
	data, err := codec.ReadFile(path)
	if err != nil {
		return sim.Scenario{}, nil, err
	}
	return ParseLearned(path, data)
}

// ParseLearned is [Parse] that also returns the section "learned"; nil if the file has none.
func ParseLearned(name string, data []byte) (sim.Scenario, *Learned, error) {
	root, err := os.OpenRoot(folder(name))
	if err != nil {
		return parseLearned(name, data, nil)
	}
	defer root.Close()
	return parseLearned(name, data, root.FS())
}

func parseLearned(name string, data []byte, files fs.FS) (s sim.Scenario, l *Learned, err error) {
	r := codec.NewReader(syntax.ParseOwn, name, files)
	n := r.Document(data)
	if n == nil {
		return s, nil, r.Mistakes.Err()
	}
	r.Basis = "horizon" // faults and ramps must lie before it
	learned, rest := tree.Without(n.Members, section)
	scenario := *n
	scenario.Members = rest
	r.Decode(&scenario, reflect.ValueOf(&s).Elem(), "", codec.Plain)
	if learned != nil {
		l = &Learned{}
		r.Decode(learned.Value, reflect.ValueOf(l).Elem(), section, codec.Plain)
	}
	if !codec.Has(r.Places, "name") {
		s.Name = codec.Stem(name)
	}
	for i := range s.Services {
		r.Names = append(r.Names, s.Services[i].Name)
	}
	r.Validated(s.Validate())
	r.Names = nil
	if l != nil && len(r.Mistakes) == 0 {
		r.Validated(l.validate(s))
	}
	if err := r.Mistakes.Err(); err != nil {
		return sim.Scenario{}, nil, err
	}
	return s, l, nil
}

// validate reports what does not fit s, or itself.
func (l *Learned) validate(s sim.Scenario) error {
	var p problem.List
	_, err := time.Parse(time.RFC3339Nano, l.Zero)
	p.Check(err == nil || l.Zero == "", "Learned.Zero", tree.Quote(l.Zero), "a time such as 2026-11-29T14:03:00Z")
	for i, v := range l.Values {
		field := fmt.Sprintf("Learned.Values[%d]", i)
		if !known(s, v.Path) {
			p.Add(field+".Path", tree.Quote(v.Path), "the path of a field of this scenario, such as services.0.errors")
			continue
		}
		p.Check(v.Low == "" == (v.High == ""), field+".High", tree.Quote(v.High), "a value if there is a low one, else none")
		p.Check(v.Low == "" || fits(s, v.Path, v.Low), field+".Low", tree.Quote(v.Low), "a value of "+v.Path)
		p.Check(v.High == "" || fits(s, v.Path, v.High), field+".High", tree.Quote(v.High), "a value of "+v.Path)
	}
	for i, q := range l.Unknown {
		field := fmt.Sprintf("Learned.Unknown[%d]", i)
		p.Check(q.Ask != "", field+".Ask", tree.Quote(q.Ask), "a question")
		if !known(s, q.Path) {
			p.Add(field+".Path", tree.Quote(q.Path), "the path of a field of this scenario, such as services.0.workers")
			continue
		}
		p.Check(q.Least == "" || fits(s, q.Path, q.Least), field+".Least", tree.Quote(q.Least), "a value of "+q.Path+", or none")
	}
	o := &l.Observed
	for _, list := range o.lists() {
		p.Check(len(*list.values) == len(o.Calls), "Learned.Observed."+list.name, fmt.Sprintf("a list of %d", len(*list.values)), fmt.Sprintf("as many as calls, %d", len(o.Calls)))
	}
	for i, f := range o.Failed {
		p.Check(f <= 1, fmt.Sprintf("Learned.Observed.Failed[%d]", i), f, "a share, or a number below 0 if it is unknown")
	}
	p.Check(o.Step > 0 || o.Step == 0 && len(o.Calls) == 0, "Learned.Observed.Step", o.Step, "a positive duration")
	return p.Err()
}

type observedList struct {
	name   string
	values *[]float64
}

func (o *Observed) lists() []observedList {
	return []observedList{{"Calls", &o.Calls}, {"Attempts", &o.Attempts}, {"Failed", &o.Failed}, {"P50", &o.P50}, {"P99", &o.P99}}
}

// fits reports whether the field at path can have the value.
func fits(s sim.Scenario, path, value string) bool { return Set(&s, path+"="+value) == nil }

// known reports whether s has a field at path.
func known(s sim.Scenario, path string) bool {
	if path == "" || strings.ContainsRune(path, '=') {
		return false
	}
	err := Set(&s, path+"=?")
	mistakes, _ := err.(tree.Mistakes)
	return !slices.ContainsFunc(mistakes, func(m tree.Mistake) bool { return m.Found == "unknown" })
}

// FormatLearned writes a world: s as [Format] does, with what l says of a field above it, as a comment, and l as the section
// "learned". [ParseLearned] reads the same from it, but for observed figures: they are rounded to four digits.
func FormatLearned(s sim.Scenario, l Learned) ([]byte, error) {
	o := l.Observed
	for _, list := range o.lists() {
		rounded := make([]float64, len(*list.values))
		for i, v := range *list.values {
			rounded[i] = fourDigits(v)
		}
		*list.values = rounded
	}
	l.Observed = o
	w := codec.Writer{}
	world := w.Node(reflect.ValueOf(s), "", codec.Plain)
	remarks := map[string][]string{}
	add := func(path, text string) {
		at := nearest(world, path)
		if at != path {
			text = path + ": " + text
		}
		remarks[at] = append(remarks[at], text)
	}
	for _, v := range l.Values {
		if v.Low == "" {
			add(v.Path, v.By)
		} else {
			add(v.Path, v.Low+" to "+v.High+": "+v.By)
		}
	}
	for _, q := range l.Unknown {
		known := "not known. "
		if q.Least != "" {
			known = "at least " + q.Least + ". "
		}
		add(q.Path, known+q.String())
	}
	for path, texts := range remarks {
		remark(world, path, texts)
	}
	learned := w.Node(reflect.ValueOf(l), section, codec.Plain)
	if observed := learned.Get("observed"); observed != nil {
		for _, m := range observed.Members {
			m.Value.Flow = true
		}
	}
	if w.Err != nil {
		return nil, fmt.Errorf("scenario: %w", w.Err)
	}
	learned.Comment = "What is known of the values above (95 % intervals), and what was observed. The simulator does not need it."
	return syntax.YAML(100, world.Set(section, learned))
}

func fourDigits(v float64) float64 {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return v
	}
	scale := math.Pow(10, 3-math.Floor(math.Log10(math.Abs(v))))
	return math.Round(v*scale) / scale
}

// step returns the part of n that name leads to; nil: it is not written.
func step(n *tree.Node, name string) *tree.Node {
	if n.Kind == tree.List {
		for i, item := range n.Items {
			if name == fmt.Sprint(i) {
				return item
			}
		}
		return nil
	}
	return n.Get(name)
}

// nearest returns the longest part of path that is written in n, and can have a comment.
func nearest(n *tree.Node, path string) string {
	at := ""
	for _, name := range strings.Split(path, ".") {
		if n = step(n, name); n == nil {
			break
		}
		at = codec.Field(at, name)
	}
	return cmp.Or(at, "horizon")
}

// remark puts a comment above the part of n at path. What a comment stands in has a line for each of its fields.
func remark(n *tree.Node, path string, texts []string) {
	for _, name := range strings.Split(path, ".") {
		n.Flow = false
		if n = step(n, name); n == nil {
			return // a scenario without a horizon, which is not valid
		}
	}
	n.Comment = strings.Join(texts, "\n")
}

// Answer sets the value of s that a question of l asks for. The error says why it cannot be that; s and l are then unchanged.
func (l *Learned) Answer(s *sim.Scenario, q Question, value string) error {
	told := *s
	if err := Set(&told, q.Path+"="+value); err != nil {
		return err
	}
	told.Services = slices.Clone(told.Services)
	var more []Question
	for i := range told.Services { // workers without a queue would refuse all that comes when they are busy
		if v := &told.Services[i]; v.Workers > 0 && s.Services[i].Workers == 0 && v.Queue.Limit == 0 {
			v.Queue.Limit = 1000
			more = append(more, Question{Path: fmt.Sprintf("services.%d.queue.limit", i), Ask: "How many requests can wait for a worker? Assumed: 1000."})
		}
	}
	if err := told.Validate(); err != nil {
		return err
	}
	*s = told
	l.Unknown = append(slices.DeleteFunc(slices.Clone(l.Unknown), func(other Question) bool { return other == q }), more...)
	l.Values = append(slices.Clone(l.Values), Interval{q.Path, value, value, "told by you"})
	return nil
}
