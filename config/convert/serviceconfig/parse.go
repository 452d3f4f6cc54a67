package serviceconfig

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/config/convert/internal/tree"
)

// Problem is one thing that is wrong in a service config.
type Problem = tree.Problem

// Problems is everything that is wrong with one, in the order of the text: the error of
// [Parse]. errors.As finds it.
type Problems = tree.Problems

// Fields are the problems as a [lull.Problems], for those who report mistakes of code and
// of files alike. The places are left out.
func Fields(err error) lull.Problems {
	var all Problems
	if !errors.As(err, &all) {
		return nil
	}
	var list lull.Problems
	for _, p := range all {
		list.Add(p.Path, p.Found, p.Allowed)
	}
	return list
}

// A Place is a line and a column of a text. Both count from 1, columns in characters.
type Place struct{ Line, Column int }

// Places says where the fields of a config are: by path, such as
// "methodConfig[0].retryPolicy.maxAttempts".
type Places map[string]Place

// At is the place of path, or of the nearest that it belongs to.
func (p Places) At(path string) Place {
	for {
		if at, ok := p[path]; ok || path == "" {
			return at
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
}

// Parse reads a gRPC service config in JSON. The error is [Problems] with everything that
// is wrong.
//
// What it does not know it reads over, as the format demands, and lists in
// Config.Ignored. The names of fields are taken in any case, as grpc-go takes them, and
// those of status codes as well; other implementations insist on "maxAttempts". OK among
// the codes to retry is refused, as in grpc-java: nothing can be meant by it. A timeout
// must be positive: one of zero fails every call.
func Parse(data []byte) (Config, error) {
	roots, err := tree.ParseJSON(data)
	var syntax *tree.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return Config{}, Problems{{Line: syntax.Line, Column: syntax.Column, Path: "service config", Found: "no JSON: " + err.Error(), Allowed: "an object"}}
	case len(roots) > 1:
		return Config{}, Problems{{Line: roots[1].Line, Column: roots[1].Column, Path: "service config", Found: "no JSON: there is more after the end", Allowed: "an object"}}
	}
	c, _, err := FromTree(roots[0])
	return c, err
}

// FromTree is Parse of a value that was read already. The places are those of the
// fields that it has.
func FromTree(root *tree.Node) (Config, Places, error) {
	p := &parser{named: make(map[string]string)}
	p.Same = tree.Fold
	c := p.config(root)
	if len(p.Problems) > 0 {
		return Config{}, nil, p.Problems
	}
	c.Ignored = p.ignored
	places := make(Places, len(p.Places))
	for path, at := range p.Places {
		places[path] = Place{at[0], at[1]}
	}
	return c, places, nil
}

// parser notes what it meets on its way.
type parser struct {
	tree.Reader
	ignored []string
	named   map[string]string // patterns, and the paths that named them first
}

const allowedDuration = `a positive duration in seconds such as "0.25s", with up to nine decimals`

// object begins to read n; nil if it is none.
func (p *parser) object(n *tree.Node, path string) *tree.Object {
	if n == nil {
		return nil
	}
	if n.Kind != tree.Map {
		at := path
		if at == "" {
			at = "service config"
		}
		p.Wrong(n, at, found(n), "an object", "")
		return nil
	}
	return p.Object(n, path)
}

// found is what n is, in the words of JSON.
func found(n *tree.Node) string {
	switch n.Kind {
	case tree.Null:
		return "null"
	case tree.Map:
		return "an object"
	}
	return n.Found()
}

func (p *parser) check(ok bool, n *tree.Node, path, allowed string) bool {
	if !ok {
		p.Wrong(n, path, found(n), allowed, "")
	}
	return ok
}

// rest notes the members that nobody asked for.
func (p *parser) rest(o *tree.Object) {
	for _, m := range o.Rest() {
		p.ignored = append(p.ignored, o.At(m.Key))
	}
}

func (p *parser) config(root *tree.Node) (c Config) {
	o := p.object(root, "")
	if o == nil {
		return c
	}
	defer p.rest(o)
	methods, path := o.List("methodConfig")
	for i, each := range methods {
		if mc, ok := p.methodConfig(each, path+"["+strconv.Itoa(i)+"]"); ok {
			c.Methods = append(c.Methods, mc)
		}
	}
	if n, path := o.Get("retryThrottling"); n != nil {
		c.Throttling = p.throttling(n, path)
	}
	return c
}

// methodConfig reads what is said of some methods, or of none (ok is false): that
// applies to nothing, and is not an error.
func (p *parser) methodConfig(n *tree.Node, path string) (mc MethodConfig, ok bool) {
	o := p.object(n, path)
	if o == nil {
		return mc, false
	}
	defer p.rest(o)
	names, namePath := o.List("name")
	for i, each := range names {
		mc.Names = append(mc.Names, p.name(each, namePath+"["+strconv.Itoa(i)+"]"))
	}
	mc.Timeout = p.duration(o, "timeout", 1)
	retry, retryPath := o.Get("retryPolicy")
	hedging, hedgingPath := o.Get("hedgingPolicy")
	if retry != nil {
		mc.Retry = p.retryPolicy(retry, retryPath)
	}
	if hedging != nil {
		mc.Hedging = p.hedgingPolicy(hedging, hedgingPath)
	}
	if retry != nil && hedging != nil {
		p.Wrong(hedging, hedgingPath, "given beside a retryPolicy", "one of the two", "")
	}
	if len(mc.Names) == 0 {
		p.ignored = append(p.ignored, path)
	}
	return mc, len(mc.Names) > 0
}

func (p *parser) name(n *tree.Node, path string) (name MethodName) {
	o := p.object(n, path)
	if o == nil {
		return name
	}
	defer p.rest(o)
	before := len(p.Problems)
	name.Service = o.String("service")
	name.Method = o.String("method")
	if len(p.Problems) > before {
		return name
	}
	if name.Service == "" && name.Method != "" {
		p.Wrong(n, path+".service", "missing", "the service of method "+tree.Quote(name.Method), "")
		return name
	}
	pattern := name.Pattern()
	if back, ok := NameOf(pattern); !ok || back != name {
		p.Wrong(n, path, tree.Quote(pattern), "the full name of a service and the name of a method, without slashes", "")
		return name
	}
	if first, twice := p.named[pattern]; twice {
		p.Wrong(n, path, tree.Quote(pattern)+" once more", "each name once (this one is "+first+")", "")
		return name
	}
	p.named[pattern] = path
	return name
}

func (p *parser) retryPolicy(n *tree.Node, path string) *RetryPolicy {
	o := p.object(n, path)
	if o == nil {
		return nil
	}
	defer p.rest(o)
	r := &RetryPolicy{MaxAttempts: p.maxAttempts(o)}
	if p.require(o, "initialBackoff", allowedDuration) {
		r.InitialBackoff = p.duration(o, "initialBackoff", 1)
	}
	if p.require(o, "maxBackoff", allowedDuration) {
		r.MaxBackoff = p.duration(o, "maxBackoff", 1)
	}
	const allowedMultiplier = "a positive number"
	if p.require(o, "backoffMultiplier", allowedMultiplier) {
		n, path := o.Get("backoffMultiplier")
		f, ok := tree.AnyNumber(n)
		p.check(ok && f > 0, n, path, allowedMultiplier)
		r.BackoffMultiplier = f
	}
	const allowedCodes = `a list of status codes that is not empty, such as ["UNAVAILABLE"]`
	if p.require(o, "retryableStatusCodes", allowedCodes) {
		n, path := o.Get("retryableStatusCodes")
		r.RetryableStatusCodes = p.codes(n, path, allowedCodes)
		if n.Kind == tree.List && len(n.Items) == 0 {
			p.Wrong(n, path, "empty", allowedCodes, "")
		}
	}
	r.PerAttemptRecvTimeout = p.duration(o, "perAttemptRecvTimeout", 1)
	return r
}

// require notes that a field is missing.
func (p *parser) require(o *tree.Object, name, allowed string) bool {
	if o.Has(name) {
		return true
	}
	o.Require(name, allowed)
	return false
}

func (p *parser) hedgingPolicy(n *tree.Node, path string) *HedgingPolicy {
	o := p.object(n, path)
	if o == nil {
		return nil
	}
	defer p.rest(o)
	h := &HedgingPolicy{MaxAttempts: p.maxAttempts(o)}
	h.HedgingDelay = p.duration(o, "hedgingDelay", 0)
	if n, path := o.Get("nonFatalStatusCodes"); n != nil {
		h.NonFatalStatusCodes = p.codes(n, path, "a list of status codes")
	}
	return h
}

func (p *parser) throttling(n *tree.Node, path string) *budget.GRPCConfig {
	o := p.object(n, path)
	if o == nil {
		return nil
	}
	defer p.rest(o)
	t := new(budget.GRPCConfig)
	const allowedTokens = "a whole number from 1 to 1000"
	if p.require(o, "maxTokens", allowedTokens) {
		n, path := o.Get("maxTokens")
		f, ok := tree.AnyNumber(n)
		p.check(ok && f >= 1 && f <= 1000 && f == math.Trunc(f), n, path, allowedTokens)
		t.MaxTokens = int(max(min(f, 1000), 0))
	}
	const allowedRatio = "a number from 0.001"
	if p.require(o, "tokenRatio", allowedRatio) {
		n, path := o.Get("tokenRatio")
		f, ok := tree.AnyNumber(n)
		p.check(ok && f >= 0.001, n, path, allowedRatio)
		t.TokenRatio = f
	}
	return t
}

// duration reads one of at least least; zero if there is none.
func (p *parser) duration(o *tree.Object, name string, least time.Duration) time.Duration {
	allowed := allowedDuration
	if least == 0 {
		allowed = "zero or " + allowed
	}
	n, path := o.Get(name)
	if n == nil {
		return 0
	}
	if n.Kind != tree.Text {
		p.check(false, n, path, allowed)
		return 0
	}
	d, _ := p.Duration(n, path, least, allowed, tree.ParseSeconds)
	return d
}

func (p *parser) codes(n *tree.Node, path, allowed string) (all []Code) {
	if !p.check(n.Kind == tree.List, n, path, allowed) {
		return nil
	}
	for i, each := range n.Items {
		c, ok := code(each)
		at := path + "[" + strconv.Itoa(i) + "]"
		p.Places[at] = [2]int{each.Line, each.Column}
		if !p.check(ok && c != OK, each, at, `the name of a status code, such as "UNAVAILABLE", or its number from 1 to 16`) {
			continue
		}
		if !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	return all
}

func (p *parser) maxAttempts(o *tree.Object) int {
	const allowed = "a whole number from 2"
	if !p.require(o, "maxAttempts", allowed) {
		return 0
	}
	n, path := o.Get("maxAttempts")
	f, ok := tree.AnyNumber(n)
	p.check(ok && f >= 2 && f == math.Trunc(f), n, path, allowed)
	return int(max(min(f, math.MaxInt32), 0))
}
