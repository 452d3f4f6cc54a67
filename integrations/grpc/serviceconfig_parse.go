package lullgrpc

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/budget"
)

// ParseServiceConfig reads a gRPC service config in JSON. The error is a
// [lull.Problems] with everything that is wrong, each problem naming its place:
//
//	methodConfig[0].retryPolicy.maxAttempts is 1: want a whole number from 2
//
// What it does not know it reads over, as the format demands, and lists in
// ServiceConfig.Ignored. The names of fields are taken in any case, as grpc-go
// takes them, and those of status codes as well; other implementations insist on
// "maxAttempts". OK among the codes to retry is refused, as in grpc-java: nothing
// can be meant by it. A timeout must be positive: one of zero fails every call.
func ParseServiceConfig(data []byte) (ServiceConfig, error) {
	root, err := parseJSON(data)
	if err != nil {
		return ServiceConfig{}, lull.Problems{{Field: "service config", Value: "no JSON: " + err.Error(), Allowed: "an object"}}
	}
	r := &configReader{named: make(map[string]string)}
	sc := r.config(root)
	if err := r.problems.Err(); err != nil {
		return ServiceConfig{}, err
	}
	sc.Ignored = r.ignored
	return sc, nil
}

// configReader notes what it meets on its way.
type configReader struct {
	problems lull.Problems
	ignored  []string
	named    map[string]string // patterns, and the paths that named them first
}

const allowedDuration = `a positive duration in seconds such as "0.25s", with up to nine decimals`

func (r *configReader) config(n *node) (sc ServiceConfig) {
	o, ok := r.object(n, "")
	if !ok {
		return sc
	}
	defer o.rest()
	for i, each := range o.list("methodConfig") {
		path := "methodConfig[" + strconv.Itoa(i) + "]"
		if mc, ok := r.methodConfig(each, path); ok {
			sc.Methods = append(sc.Methods, mc)
		}
	}
	if n, path := o.get("retryThrottling"); n != nil {
		sc.Throttling = r.throttling(n, path)
	}
	return sc
}

// methodConfig reads what is said of some methods, or of none (ok is false): that
// applies to nothing, and is not an error.
func (r *configReader) methodConfig(n *node, path string) (mc MethodConfig, ok bool) {
	o, ok := r.object(n, path)
	if !ok {
		return mc, false
	}
	defer o.rest()
	for i, each := range o.list("name") {
		mc.Names = append(mc.Names, r.name(each, path+".name["+strconv.Itoa(i)+"]"))
	}
	if n, path := o.get("timeout"); n != nil {
		mc.Timeout = r.duration(n, path, 1)
	}
	retry, retryPath := o.get("retryPolicy")
	hedging, hedgingPath := o.get("hedgingPolicy")
	if retry != nil {
		mc.Retry = r.retryPolicy(retry, retryPath)
	}
	if hedging != nil {
		mc.Hedging = r.hedgingPolicy(hedging, hedgingPath)
	}
	if retry != nil && hedging != nil {
		r.problems.Add(hedgingPath, "given beside a retryPolicy", "one of the two")
	}
	if len(mc.Names) == 0 {
		r.ignored = append(r.ignored, path)
	}
	return mc, len(mc.Names) > 0
}

func (r *configReader) name(n *node, path string) (name MethodName) {
	o, ok := r.object(n, path)
	if !ok {
		return name
	}
	defer o.rest()
	before := len(r.problems)
	name.Service = o.text("service")
	name.Method = o.text("method")
	if len(r.problems) > before {
		return name
	}
	if name.Service == "" && name.Method != "" {
		r.problems.Add(path+".service", "missing", "the service of method "+strconv.Quote(name.Method))
		return name
	}
	p := name.pattern()
	if !isPattern(p) || strings.Contains(name.Service, "/") || strings.Contains(name.Method, "/") {
		r.problems.Add(path, strconv.Quote(p), "the full name of a service and the name of a method, without slashes")
		return name
	}
	if first, twice := r.named[p]; twice {
		r.problems.Add(path, strconv.Quote(p)+" once more", "each name once (this one is "+first+")")
		return name
	}
	r.named[p] = path
	return name
}

func (r *configReader) retryPolicy(n *node, path string) *RetryPolicy {
	o, ok := r.object(n, path)
	if !ok {
		return nil
	}
	defer o.rest()
	p := &RetryPolicy{MaxAttempts: o.maxAttempts()}
	p.InitialBackoff = r.duration(o.require("initialBackoff", allowedDuration))
	p.MaxBackoff = r.duration(o.require("maxBackoff", allowedDuration))
	const allowedMultiplier = "a positive number"
	if n, path, _ := o.require("backoffMultiplier", allowedMultiplier); n != nil {
		f, ok := number(n)
		r.problems.Check(ok && f > 0, path, n.found(), allowedMultiplier)
		p.BackoffMultiplier = f
	}
	const allowedCodes = `a list of status codes that is not empty, such as ["UNAVAILABLE"]`
	if n, path, _ := o.require("retryableStatusCodes", allowedCodes); n != nil {
		p.RetryableStatusCodes = r.codes(n, path, allowedCodes)
		if list, ok := n.value.([]*node); ok && len(list) == 0 {
			r.problems.Add(path, "empty", allowedCodes)
		}
	}
	if n, path := o.get("perAttemptRecvTimeout"); n != nil {
		p.PerAttemptRecvTimeout = r.duration(n, path, 1)
	}
	return p
}

func (r *configReader) hedgingPolicy(n *node, path string) *HedgingPolicy {
	o, ok := r.object(n, path)
	if !ok {
		return nil
	}
	defer o.rest()
	p := &HedgingPolicy{MaxAttempts: o.maxAttempts()}
	if n, path := o.get("hedgingDelay"); n != nil {
		p.HedgingDelay = r.duration(n, path, 0)
	}
	if n, path := o.get("nonFatalStatusCodes"); n != nil {
		p.NonFatalStatusCodes = r.codes(n, path, "a list of status codes")
	}
	return p
}

func (r *configReader) throttling(n *node, path string) *budget.GRPCConfig {
	o, ok := r.object(n, path)
	if !ok {
		return nil
	}
	defer o.rest()
	t := new(budget.GRPCConfig)
	const allowedTokens = "a whole number from 1 to 1000"
	if n, path, _ := o.require("maxTokens", allowedTokens); n != nil {
		f, ok := number(n)
		r.problems.Check(ok && f >= 1 && f <= 1000 && f == math.Trunc(f), path, n.found(), allowedTokens)
		t.MaxTokens = int(f)
	}
	const allowedRatio = "a number from 0.001"
	if n, path, _ := o.require("tokenRatio", allowedRatio); n != nil {
		f, ok := number(n)
		r.problems.Check(ok && f >= 0.001, path, n.found(), allowedRatio)
		t.TokenRatio = f
	}
	return t
}

// duration reads a duration of at least least; a nil n has been complained of.
func (r *configReader) duration(n *node, path string, least time.Duration) time.Duration {
	if n == nil {
		return 0
	}
	text, ok := n.value.(string)
	d, valid := parseDuration(text)
	allowed := allowedDuration
	if least == 0 {
		allowed = "zero or " + allowed
	}
	r.problems.Check(ok && valid && d >= least, path, n.found(), allowed)
	return d
}

func (r *configReader) codes(n *node, path, allowed string) (all []codes.Code) {
	list, ok := n.value.([]*node)
	if !ok {
		r.problems.Add(path, n.found(), allowed)
		return nil
	}
	for i, each := range list {
		c, ok := statusCode(each)
		if !ok || c == codes.OK {
			r.problems.Add(fmt.Sprintf("%s[%d]", path, i), each.found(), `the name of a status code, such as "UNAVAILABLE", or its number from 1 to 16`)
			continue
		}
		if !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	return all
}

// statusCode reads a code by number or by name.
func statusCode(n *node) (codes.Code, bool) {
	if name, ok := n.value.(string); ok {
		i := slices.IndexFunc(codeNames[:], func(s string) bool { return strings.EqualFold(s, name) })
		return codes.Code(max(i, 0)), i >= 0
	}
	f, ok := number(n)
	if !ok || f < 0 || f > float64(codes.Unauthenticated) || f != math.Trunc(f) {
		return 0, false
	}
	return codes.Code(f), true
}

func number(n *node) (float64, bool) {
	text, ok := n.value.(json.Number)
	if !ok {
		return 0, false
	}
	f, err := text.Float64()
	return f, err == nil
}

// object is a JSON object that is being read, and what was read of it.
type object struct {
	r       *configReader
	path    string
	members []member
	read    []bool
}

func (r *configReader) object(n *node, path string) (*object, bool) {
	members, ok := n.value.([]member)
	if !ok {
		if path == "" {
			path = "service config"
		}
		r.problems.Add(path, n.found(), "an object")
		return nil, false
	}
	return &object{r, path, members, make([]bool, len(members))}, true
}

func (o *object) at(name string) string {
	if o.path == "" {
		return name
	}
	return o.path + "." + name
}

// get is the member of that name, in any case, and its path; nil if there is
// none, or it is null.
func (o *object) get(name string) (*node, string) {
	var found *node
	path := o.at(name)
	for i, m := range o.members {
		if !strings.EqualFold(m.name, name) {
			continue
		}
		o.read[i] = true
		if found != nil {
			o.r.problems.Add(path, "given twice", "one value")
			break
		}
		found = m.value
	}
	if found != nil && found.value == nil {
		return nil, path
	}
	return found, path
}

// require is get of a member that must be there, and the least of a duration that
// it may be.
func (o *object) require(name, allowed string) (*node, string, time.Duration) {
	n, path := o.get(name)
	if n == nil {
		o.r.problems.Add(path, "missing", allowed)
	}
	return n, path, 1
}

func (o *object) list(name string) []*node {
	n, path := o.get(name)
	if n == nil {
		return nil
	}
	list, ok := n.value.([]*node)
	if !ok {
		o.r.problems.Add(path, n.found(), "a list")
	}
	return list
}

func (o *object) text(name string) string {
	n, path := o.get(name)
	if n == nil {
		return ""
	}
	text, ok := n.value.(string)
	if !ok {
		o.r.problems.Add(path, n.found(), "a text")
	}
	return text
}

func (o *object) maxAttempts() int {
	const allowed = "a whole number from 2"
	n, path, _ := o.require("maxAttempts", allowed)
	if n == nil {
		return 0
	}
	f, ok := number(n)
	ok = ok && f >= 2 && f == math.Trunc(f)
	o.r.problems.Check(ok, path, n.found(), allowed)
	return int(min(f, math.MaxInt32))
}

// rest notes the members that nobody asked for.
func (o *object) rest() {
	for i, m := range o.members {
		if !o.read[i] {
			o.r.ignored = append(o.r.ignored, o.at(m.name))
		}
	}
}
