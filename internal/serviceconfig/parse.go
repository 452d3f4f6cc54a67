package serviceconfig

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/tree"
)

// Parse reads a gRPC service config in JSON. The error is [tree.Mistakes] with everything that is
// wrong, in the order of the text; errors.As finds it as an engine.Problems, too.
//
// It ignores unknown fields, as the format demands, and lists them in Config.Ignored. Names of fields and of status codes
// may have any case, as in grpc-go; other implementations insist on "maxAttempts". OK among the codes to retry is refused,
// as in grpc-java, since it has no meaning. A timeout must be positive: one of zero fails every call.
func Parse(data []byte) (Config, error) {
	roots, err := tree.ParseJSON(data)
	m, wrong := errors.AsType[tree.Mistake](err)
	if !wrong && len(roots) > 1 {
		m, wrong = tree.Mistake{Position: (&tree.Reader{}).Place(roots[1]), Found: "not JSON: there is more after the end"}, true
	}
	if wrong {
		m.Path, m.Found, m.Allowed = rootPath, fmt.Sprintf("%s (column %d)", m.Found, m.Column), "an object"
		return Config{}, tree.Mistakes{m}
	}
	return FromTree(roots[0])
}

// rootPath is the path of the config itself, in messages.
const rootPath = "service config"

// FromTree is Parse for a tree.
func FromTree(root *tree.Node) (Config, error) { return fromTree(root, false) }

// FromGAPIC is FromTree for the service configs in googleapis. Their retryPolicies may have no
// maxAttempts, which is 0 then: the clients that are generated of them retry until the timeout.
func FromGAPIC(root *tree.Node) (Config, error) { return fromTree(root, true) }

func fromTree(root *tree.Node, gapic bool) (Config, error) {
	p := &parser{named: make(map[string]string), gapic: gapic}
	p.Same, p.JSON = tree.Fold, true
	c := p.config(root)
	if err := p.Mistakes.Err(); err != nil {
		return Config{}, err
	}
	c.Ignored = p.ignored
	return c, nil
}

// Validate reports everything that is wrong with a config that was made in code, by the rules of
// Parse. The error is [tree.Mistakes], without places.
func (c Config) Validate() error { _, err := FromTree(c.Tree()); return err }

// parser notes what it meets on its way.
type parser struct {
	tree.Reader
	ignored []string
	named   map[string]string // patterns, and the paths that named them first
	gapic   bool              // maxAttempts may be missing
}

func (p *parser) ignoreRest(o *tree.Object) {
	for _, m := range o.Rest() {
		p.ignored = append(p.ignored, o.At(m.Key))
	}
}

func (p *parser) config(root *tree.Node) (c Config) {
	if !p.Check(root.Kind == tree.Map, root, rootPath, "an object") {
		return c
	}
	o := p.Object(root, "")
	defer p.ignoreRest(o)
	methods, path := o.List("methodConfig")
	for i, each := range methods {
		if mc, ok := p.methodConfig(each, tree.Element(path, i)); ok {
			c.Methods = append(c.Methods, mc)
		}
	}
	c.Throttling = p.throttling(o.Object("retryThrottling"))
	return c
}

// methodConfig reads the configuration of some methods. ok is false if it names none: it then
// applies to nothing, which is no error.
func (p *parser) methodConfig(n *tree.Node, path string) (mc MethodConfig, ok bool) {
	o := p.Object(n, path)
	defer p.ignoreRest(o)
	names, namePath := o.List("name")
	for i, each := range names {
		mc.Names = append(mc.Names, p.name(each, tree.Element(namePath, i)))
	}
	mc.Timeout = p.positive(o.Get("timeout"))
	retry, hedging := o.Object("retryPolicy"), o.Object("hedgingPolicy")
	mc.Retry, mc.Hedging = p.retryPolicy(retry), p.hedgingPolicy(hedging)
	if retry != nil && hedging != nil {
		p.Wrong(hedging.Node, hedging.Path, "given beside a retryPolicy", "one of the two", "")
	}
	if len(mc.Names) == 0 && o != nil {
		p.ignored = append(p.ignored, path)
	}
	return mc, len(mc.Names) > 0
}

func (p *parser) name(n *tree.Node, path string) (name MethodName) {
	before := len(p.Mistakes)
	o := p.Object(n, path)
	defer p.ignoreRest(o)
	name.Service = o.String("service")
	name.Method = o.String("method")
	pattern := name.Pattern()
	_, proper := NameOf(pattern)
	first, twice := p.named[pattern]
	switch {
	case len(p.Mistakes) > before:
	case name.Service == "" && name.Method != "":
		p.Wrong(n, path+".service", "missing", "the service of method "+tree.Quote(name.Method), "")
	case !proper:
		p.Wrong(n, path, tree.Quote(pattern), "the full name of a service and the name of a method, without slashes", "")
	case twice:
		p.Wrong(n, path, tree.Quote(pattern)+" once more", "each name once (this one is "+first+")", "")
	default:
		p.named[pattern] = path
	}
	return name
}

func (p *parser) retryPolicy(o *tree.Object) *RetryPolicy {
	if o == nil {
		return nil
	}
	defer p.ignoreRest(o)
	r := &RetryPolicy{
		MaxAttempts:       p.maxAttempts(o),
		InitialBackoff:    p.positive(o.Require("initialBackoff", allowedDuration)),
		MaxBackoff:        p.positive(o.Require("maxBackoff", allowedDuration)),
		BackoffMultiplier: p.number(o, "backoffMultiplier", "a positive number", func(f float64) bool { return f > 0 }),
	}
	const allowedCodes = `a list of status codes that is not empty, such as ["UNAVAILABLE"]`
	if n, path := o.Require("retryableStatusCodes", allowedCodes); n != nil {
		r.RetryableStatusCodes = p.codes(n, path, allowedCodes)
		if n.Kind == tree.List && len(n.Items) == 0 {
			p.Wrong(n, path, "empty", allowedCodes, "")
		}
	}
	r.PerAttemptRecvTimeout = p.positive(o.Get("perAttemptRecvTimeout"))
	return r
}

func (p *parser) hedgingPolicy(o *tree.Object) *HedgingPolicy {
	if o == nil {
		return nil
	}
	defer p.ignoreRest(o)
	h := &HedgingPolicy{MaxAttempts: p.maxAttempts(o)}
	h.HedgingDelay, _ = o.Duration("hedgingDelay", 0, "zero or "+allowedDuration, tree.ParseSeconds)
	if n, path := o.Get("nonFatalStatusCodes"); n != nil {
		h.NonFatalStatusCodes = p.codes(n, path, "a list of status codes")
	}
	return h
}

func (p *parser) throttling(o *tree.Object) *budget.GRPCConfig {
	if o == nil {
		return nil
	}
	defer p.ignoreRest(o)
	return &budget.GRPCConfig{
		MaxTokens:  int(p.number(o, "maxTokens", "a whole number from 1 to 1000", func(f float64) bool { return f >= 1 && f <= 1000 && f == math.Trunc(f) })),
		TokenRatio: p.number(o, "tokenRatio", "a number from 0.001", func(f float64) bool { return f >= 0.001 }),
	}
}

func (p *parser) maxAttempts(o *tree.Object) int {
	if p.gapic && !o.Has("maxAttempts") {
		return 0
	}
	n := p.number(o, "maxAttempts", "a whole number from 2", func(f float64) bool { return f >= 2 && f == math.Trunc(f) })
	return int(min(n, math.MaxInt32))
}

const allowedDuration = `a positive duration in seconds such as "0.25s", with up to nine decimals`

// positive reads a duration; zero if there is none, which was reported if it is wrong.
func (p *parser) positive(n *tree.Node, path string) time.Duration {
	if n == nil {
		return 0
	}
	d, _ := p.Duration(n, path, 1, allowedDuration, tree.ParseSeconds)
	return d
}

// number reads a field that must be there, a number for which right holds.
func (p *parser) number(o *tree.Object, name, allowed string, right func(float64) bool) float64 {
	n, path := o.Require(name, allowed)
	if n == nil {
		return 0
	}
	f, ok := tree.AnyNumber(n)
	if !p.Check(ok && right(f), n, path, allowed) {
		return 0
	}
	return f
}

// codes reads a list of status codes, each once.
func (p *parser) codes(n *tree.Node, path, allowed string) (all []Code) {
	if !p.Check(n.Kind == tree.List, n, path, allowed) {
		return nil
	}
	n.Use = max(n.Use, tree.Opened)
	for i, each := range n.Items {
		if c, ok := p.code(each, tree.Element(path, i)); ok && !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	return all
}

func (p *parser) code(n *tree.Node, path string) (c Code, ok bool) {
	suggestion := ""
	switch n.Kind {
	case tree.Text:
		if c, ok = CodeOf(n.Text); !ok {
			suggestion = choice.Nearest(n.Text, codeNames[1:])
		}
	case tree.Number:
		f, isNumber := tree.AnyNumber(n)
		c, ok = Code(f), isNumber && f >= 0 && f <= float64(unauthenticated) && f == math.Trunc(f)
	}
	if !ok || c == OK {
		p.Wrong(n, path, p.Found(n), `the name of a status code, such as "UNAVAILABLE", or its number from 1 to 16`, suggestion)
		return c, false
	}
	return c, true
}
