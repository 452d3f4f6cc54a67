package convert

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/tree"
)

// Spring Boot merges the documents of a file, and application-prod.yml after application.yml; some are for profiles only. Of two values
// the later one counts. (Its reference documentation, "Externalized Configuration".)

func isSpring(n *tree.Node) bool {
	return slices.ContainsFunc(n.Members, func(m tree.Member) bool {
		first, _, _ := strings.Cut(m.Key, ".")
		return plain(first) == "resilience4j" || first == "spring" && n.Get("apiVersion") == nil
	})
}

// An application is the documents of one Spring Boot application, in the order in which they count.
type application struct {
	docs []springDocument
	// profiles are the sets of profiles that documents name; the empty one is the first.
	profiles [][]string
	noted    map[Entry]bool         // of all that was merged
	policies map[string]lull.Policy // of each instance, with the first profiles that have it
}

type springDocument struct {
	*document
	when activation
}

func applications(docs []*document) (all []*application) {
	stems, profiles := map[string]bool{}, map[string]bool{}
	activations := map[*document]activation{}
	for _, d := range docs {
		stems[d.place()] = true
		activations[d] = d.activation()
		for _, name := range slices.Concat(activations[d].sets...) {
			profiles[name] = true
		}
		_, own := profileOf(d.place(), nil, nil)
		profiles[own] = true // it may be empty, which nobody looks for
	}
	byName := map[string]*application{}
	for _, specific := range []bool{false, true} { // profile-specific files count after all others
		for _, d := range docs {
			base, own := profileOf(d.place(), stems, profiles)
			if specific != (own != "") {
				continue
			}
			a := byName[base]
			if a == nil {
				a = &application{profiles: [][]string{nil}, noted: map[Entry]bool{}, policies: map[string]lull.Policy{}}
				byName[base] = a
				all = append(all, a)
			}
			when := activations[d]
			if own != "" {
				when = allOf(when, profile(own))
			}
			a.docs = append(a.docs, springDocument{d, when})
		}
	}
	for _, a := range all {
		for _, d := range a.docs {
			for _, set := range d.when.sets {
				slices.Sort(set)
				a.try(slices.Compact(set))
			}
		}
	}
	return all
}

// try adds a set of profiles, unless the same documents count with another one.
func (a *application) try(set []string) {
	if !slices.ContainsFunc(a.profiles, func(known []string) bool {
		return !slices.ContainsFunc(a.docs, func(d springDocument) bool { return d.when.on(known) != d.when.on(set) })
	}) && len(a.profiles) < mostProfiles {
		a.profiles = append(a.profiles, set)
	}
}

const mostProfiles = 100

// place is the file of a document without its ending, or the key of a ConfigMap in it.
func (d *document) place() string {
	name := filepath.ToSlash(d.File)
	if d.key != "" {
		name += "\x00" + d.prefix + "\x00" + d.key
	}
	return strings.TrimSuffix(name, path.Ext(name))
}

// profileOf splits a profile from the name of a file: application-prod, or shop-prod beside shop if other documents name the profile.
func profileOf(name string, files, profiles map[string]bool) (base, profile string) {
	start := strings.LastIndexAny(name, "/\x00") + 1
	for i := start + 1; i < len(name)-1; i++ {
		if name[i] == '-' && (slices.Contains([]string{"application", "bootstrap"}, name[start:i]) || files[name[:i]] && profiles[name[i+1:]]) {
			return name[:i], name[i+1:]
		}
	}
	return name, ""
}

// An activation says with which profiles a document counts. sets are those to try: with them it may count, or may not.
type activation struct {
	on   func(profiles []string) bool
	sets [][]string
}

func profile(name string) activation {
	if name == "default" {
		return activation{on: func(set []string) bool { return len(set) == 0 || slices.Contains(set, name) }}
	}
	return activation{func(set []string) bool { return slices.Contains(set, name) }, [][]string{{name}}}
}

// allOf of nothing is always.
func allOf(all ...activation) activation {
	var sets [][]string
	for _, each := range all {
		both := slices.Clone(each.sets)
		for _, one := range sets {
			both = append(both, one)
			for _, other := range each.sets {
				both = append(both, slices.Concat(one, other))
			}
		}
		sets = both[:min(len(both), mostProfiles)]
	}
	return activation{func(set []string) bool {
		return !slices.ContainsFunc(all, func(each activation) bool { return !each.on(set) })
	}, sets}
}

func anyOf(all ...activation) activation {
	var sets [][]string
	for _, each := range all {
		sets = append(sets, each.sets...)
	}
	return activation{func(set []string) bool {
		return slices.ContainsFunc(all, func(each activation) bool { return each.on(set) })
	}, sets[:min(len(sets), mostProfiles)]}
}

// activation reads when a document counts. An expression that Spring would refuse is a mistake.
func (d *document) activation() activation {
	var when []activation
	for _, key := range []string{"spring.config.activate.on-profile", "spring.profiles"} {
		n, at := property(d.root, "", key)
		if n == nil || n.Kind == tree.Map { // spring.profiles.active is something else
			continue
		}
		texts := n.Items
		if n.Scalar() {
			texts = nil
			for text := range strings.SplitSeq(n.Text, ",") {
				texts = append(texts, &tree.Node{Kind: tree.Text, Text: text, Line: n.Line, Column: n.Column})
			}
		}
		var some []activation
		for _, text := range texts {
			each, ok := profiles(text.Text)
			if !ok || !text.Scalar() {
				d.Wrong(n, at, n.Found(), "a name of a profile, or an expression such as prod & (eu | us)", "")
				return allOf(when...)
			}
			some = append(some, each)
		}
		when = append(when, anyOf(some...))
	}
	if n, _ := property(d.root, "", "spring.config.activate.on-cloud-platform"); n != nil && n.Scalar() {
		when = append(when, profile(strings.ToLower(n.Text)))
	}
	return allOf(when...)
}

// property finds a property below n, at the path to it. Its words may be joined by dots or be keys of their own.
func property(n *tree.Node, at, key string) (*tree.Node, string) {
	for _, m := range n.Members {
		if len(m.Key) == 0 || plain(m.Key) == "" {
			continue
		}
		if plain(m.Key) == plain(key) {
			return m.Value, tree.Join(at, m.Key)
		}
		words, rest := strings.Count(m.Key, ".")+1, key
		for range words {
			_, rest, _ = strings.Cut(rest, ".")
		}
		if rest != "" && plain(m.Key) == plain(strings.TrimSuffix(key, "."+rest)) {
			if found, path := property(m.Value, tree.Join(at, m.Key), rest); found != nil {
				return found, path
			}
		}
	}
	return nil, ""
}

// profileNames are the names in an expression of profiles. Its operators are those of Go: !, & and | and parentheses.
var profileNames = regexp.MustCompile(`[^!&|() \t]+`)

// profiles reads an expression, in which Spring wants parentheses between & and |.
func profiles(text string) (activation, bool) {
	e, err := parser.ParseExpr(profileNames.ReplaceAllStringFunc(text, strconv.Quote))
	if err != nil {
		return activation{}, false
	}
	return activationOf(e)
}

func activationOf(e ast.Expr) (activation, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		name, err := strconv.Unquote(e.Value)
		return profile(name), err == nil
	case *ast.ParenExpr:
		return activationOf(e.X)
	case *ast.UnaryExpr:
		a, ok := activationOf(e.X)
		return activation{func(set []string) bool { return !a.on(set) }, a.sets}, ok && e.Op == token.NOT
	case *ast.BinaryExpr:
		left, ok := activationOf(e.X)
		right, both := activationOf(e.Y)
		if inner, mixed := e.X.(*ast.BinaryExpr); !ok || !both || mixed && inner.Op != e.Op {
			break
		}
		if inner, mixed := e.Y.(*ast.BinaryExpr); mixed && inner.Op != e.Op {
			break
		}
		switch e.Op {
		case token.AND:
			return allOf(left, right), true
		case token.OR:
			return anyOf(left, right), true
		}
	}
	return activation{}, false
}

// merged is what counts with these profiles, with its places. Of a list the last one counts as a whole. Nil: no document counts.
func (a *application) merged(profiles []string) *document {
	m := &document{root: tree.NewMap(), files: map[*tree.Node]string{}, noted: a.noted}
	m.Same = samePlain
	for _, d := range a.docs {
		if !d.when.on(profiles) {
			continue
		}
		if m.File == "" {
			m.File, m.prefix, m.based = d.File, d.prefix, d.based
			m.root.Line, m.root.Column = d.root.Line, d.root.Column
		}
		for _, member := range d.root.Members {
			if words := strings.Split(member.Key, "."); plain(words[0]) == "resilience4j" {
				m.merge(m.root, 0, words, member, d.File)
			}
		}
	}
	if m.File == "" {
		return nil
	}
	return m
}

// nameDepth is how many keys are above the name of an instance: resilience4j, the registry, and instances or configs.
const nameDepth = 3

// merge sets the value of a member, whose key has these words, in n, which is that many keys below the root.
func (d *document) merge(n *tree.Node, depth int, words []string, of tree.Member, file string) {
	key, rest := words[0], words[1:]
	switch last := len(words) - 1; {
	case depth == nameDepth && of.Value.Kind < tree.List && last > 0: // the last word is a property
		key, rest = strings.Join(words[:last], "."), words[last:]
	case depth >= nameDepth:
		key, rest = strings.Join(words, "."), nil
	}
	i := slices.IndexFunc(n.Members, func(m tree.Member) bool { return plain(m.Key) == plain(key) })
	if i < 0 {
		i = len(n.Members)
		n.Members = append(n.Members, tree.Member{Key: key, Line: of.Line, Column: of.Column, Value: &tree.Node{}})
	}
	m := &n.Members[i]
	if len(rest) == 0 && of.Value.Kind != tree.Map {
		if of.Value.Kind > tree.Null || m.Value.Kind == tree.Null {
			m.Line, m.Column, m.Value = of.Line, of.Column, of.Value
			d.files[of.Value] = file
		}
		return
	}
	if m.Value.Kind != tree.Map {
		m.Value = &tree.Node{Kind: tree.Map, Line: of.Value.Line, Column: of.Value.Column}
		d.files[m.Value] = file
	}
	if len(rest) > 0 {
		d.merge(m.Value, depth+1, rest, of, file)
		return
	}
	of.Value.Use = max(of.Value.Use, tree.Opened)
	inner := m.Value
	for _, member := range of.Value.Members {
		d.merge(inner, depth+1, strings.Split(member.Key, "."), member, file)
	}
}

func samePlain(key, name string) bool { return plain(key) == plain(name) }

// placeholder is a value that is a property of another name, with what counts if there is none.
var placeholder = regexp.MustCompile(`^\$\{([^:{}]+)(?::(.*))?\}$`)

// resolve replaces placeholders by the values of properties, or by their defaults. Others are refused where they are read.
func (a *application) resolve() {
	for _, d := range a.docs {
		for _, m := range d.root.Members {
			if first, _, _ := strings.Cut(m.Key, "."); plain(first) == "resilience4j" {
				a.resolveIn(d.document, m.Value, tree.Join("", m.Key))
			}
		}
	}
}

func (a *application) resolveIn(d *document, n *tree.Node, at string) {
	for i, item := range n.Items {
		a.resolveIn(d, item, tree.Element(at, i))
	}
	for _, m := range n.Members {
		a.resolveIn(d, m.Value, tree.Join(at, m.Key))
	}
	if n.Kind != tree.Text || !strings.HasPrefix(n.Text, "${") {
		return
	}
	text, from := n.Text, ""
	for range 10 { // one may lead to another
		m := placeholder.FindStringSubmatch(text)
		if m == nil {
			break
		}
		from = m[1]
		if value := a.property(from); value != "" {
			text = value
		} else if text = m[2]; text == "" {
			return
		}
	}
	if strings.Contains(text, "${") {
		return
	}
	n.Text = text
	if text == "true" || text == "false" {
		n.Kind = tree.Bool
	}
	use := n.Use
	d.note(Assumed, at, "the environment may set "+from+"; here it does not")
	n.Use = use
}

// property is the value that a property has without profiles; empty: it has none.
func (a *application) property(name string) (text string) {
	for _, d := range a.docs {
		if n, _ := property(d.root, "", name); n != nil && n.Scalar() && d.when.on(nil) {
			text = n.Text
		}
	}
	return text
}

// nameFor is the name of the dependency for an instance with these profiles: its own, if its policy is the same without them.
func (a *application) nameFor(name string, profiles []string, p lull.Policy) string {
	first, known := a.policies[name]
	if !known {
		a.policies[name] = p
	}
	if len(profiles) == 0 || known && first == p || !known && len(a.profiles) <= 2 {
		return name
	}
	return name + " (" + strings.Join(profiles, ", ") + ")"
}
