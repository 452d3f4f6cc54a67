package lullgrpc

import (
	"cmp"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/serviceconfig"
)

// rule is the policy of some methods.
type rule struct {
	index      int
	name       string // added to the target's for a dependency's; empty for the first rule
	policy     lull.Policy
	template   *lull.Dependency
	hasCodes   bool // codes has the codes to retry or to hedge after; else Classify decides
	codes      []codes.Code
	idempotent bool // a service config has a retryPolicy or a hedgingPolicy for these methods
}

const wantPattern = `want "/service/method", "/service/" or "/"`

func isPattern(p string) bool {
	_, ok := serviceconfig.NameOf(p)
	return ok
}

// longestMatch returns the value in m of the longest pattern that fits the method.
func longestMatch[T any](m map[string]T, method string) (v T, ok bool) {
	for _, p := range serviceconfig.Patterns(method) {
		if v, ok = m[p]; ok {
			return v, true
		}
	}
	return v, false
}

func (o *options) addRule(option string, r rule, patterns []string) error {
	r.index, r.name = len(o.rules), patterns[0]
	for _, p := range patterns {
		if !isPattern(p) {
			return fmt.Errorf("lullgrpc: %s(%q): %s", option, p, wantPattern)
		}
		if _, taken := o.byPattern[p]; taken {
			return fmt.Errorf("lullgrpc: %s(%q): the pattern has a policy already", option, p)
		}
		o.byPattern[p] = r.index
	}
	o.rules = append(o.rules, &r)
	return nil
}

// prepare makes the rules of the service configs, and validates all policies.
func (o *options) prepare() error {
	base := o.rules[0].policy
	for _, c := range o.configs {
		for _, mc := range c.config.Methods {
			if err := o.configure(mc, c.reading, base); err != nil {
				return err
			}
		}
	}
	for _, r := range o.rules {
		var err error
		if r.template, err = lull.NewDependency(cmp.Or(r.name, "the client"), r.policy, o.wiring...); err != nil {
			return fmt.Errorf("lullgrpc: %w", err)
		}
	}
	return nil
}

// configure makes a rule from the part of a service config for some methods.
func (o *options) configure(mc MethodConfig, reading ServiceConfigOptions, base lull.Policy) error {
	if len(mc.Names) == 0 {
		return nil
	}
	patterns := choice.Each(mc.Names, MethodName.pattern)
	r := rule{}
	r.policy, _ = mc.Policy(base, reading)
	switch {
	case mc.Retry != nil:
		r.codes, r.hasCodes, r.idempotent = mc.Retry.RetryableStatusCodes, true, true
	case mc.Hedging != nil:
		r.codes, r.hasCodes, r.idempotent = mc.Hedging.NonFatalStatusCodes, true, true
	}
	return o.addRule("WithServiceConfig", r, patterns)
}

type method struct {
	name       string
	rule       *rule
	idempotent bool
}

// maxMethods bounds the methods that a client remembers. A program has as many as its stubs. Only a proxy
// that forwards the methods of others could have more.
const maxMethods = 4096

// describeMethod returns all that is known of a method. The options decide whether it may be repeated, then
// its service config, then its descriptor.
func (o *options) describeMethod(name string) *method {
	m := &method{name: name, rule: o.rules[0]}
	if i, ok := longestMatch(o.byPattern, name); ok {
		m.rule = o.rules[i]
	}
	if yes, declared := longestMatch(o.idempotency, name); declared {
		m.idempotent = yes
	} else {
		m.idempotent = m.rule.idempotent || declaredIdempotent(name)
	}
	return m
}

// declaredIdempotent reports whether the method's descriptor is linked into the program and has an
// idempotency_level that allows repeating it.
func declaredIdempotent(name string) bool {
	full := protoreflect.FullName(strings.ReplaceAll(strings.TrimPrefix(name, "/"), "/", "."))
	if !full.IsValid() {
		return false
	}
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(full)
	if err != nil {
		return false
	}
	o, ok := d.Options().(*descriptorpb.MethodOptions)
	if !ok {
		return false
	}
	switch o.GetIdempotencyLevel() {
	case descriptorpb.MethodOptions_NO_SIDE_EFFECTS, descriptorpb.MethodOptions_IDEMPOTENT:
		return true
	}
	return false
}
