package convert

import (
	"errors"
	"slices"
	"strings"

	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/codec"
	"github.com/lullgo/lull/internal/serviceconfig"
	"github.com/lullgo/lull/internal/tree"
)

var ownBusiness = map[string]string{
	"loadbalancingconfig": "load balancing is gRPC's own business",
	"loadbalancingpolicy": "load balancing is gRPC's own business",
	"healthcheckconfig":   "health checking is gRPC's own business",
	"connectionscaling":   "connections are gRPC's own business",
	"comment":             "a comment",
}

func (r *reading) grpc(docs []*document) {
	for _, d := range docs {
		d.Same = tree.Fold
		read := choice.Either(r.options.GAPIC, serviceconfig.FromGAPIC, serviceconfig.FromTree)
		c, err := read(d.root)
		if wrong, ok := errors.AsType[tree.Mistakes](err); ok {
			for _, m := range wrong {
				if m.Found == "missing" && strings.HasSuffix(m.Path, "retryPolicy.maxAttempts") {
					m.Allowed += " (--gapic reads a service config of googleapis, which may have none)"
				}
				d.Mistakes = append(d.Mistakes, m)
			}
			continue
		}
		for _, path := range c.Ignored {
			d.ignored(path)
		}
		r.methods(d, c)
	}
}

// isChoices reports whether a list is one that gRPC finds in DNS (gRFC A2): service configs, and for which clients they are.
func isChoices(root *tree.Node) bool {
	return slices.ContainsFunc(root.Items, func(item *tree.Node) bool {
		return slices.ContainsFunc(item.Members, func(m tree.Member) bool { return tree.Fold(m.Key, "serviceConfig") })
	})
}

// choices reads the service config that is for all clients in Go; if there is none, the first that is for some of them.
func (r *reading) choices(f File, root *tree.Node, prefix string) {
	var chosen, some *document
	for i, item := range root.Items {
		d := r.newDocument(f, item, tree.Element(prefix, i))
		d.Same = tree.Fold
		all, any := d.choice()
		switch {
		case all && (chosen == nil || chosen == some):
			if some != nil {
				some.note(Lost, "serviceConfig", "it is for some clients only; that for all is taken")
			}
			chosen = d
		case any && chosen == nil:
			chosen, some = d, d
		case any:
			d.note(Lost, "serviceConfig", "another choice is taken")
		default:
			d.note(Lost, "serviceConfig", "it is not for clients in Go")
		}
		defer r.collect(d)
	}
	if chosen == nil {
		return
	}
	chosen.noteIf(chosen == some, Changed, "serviceConfig", "it is for some clients only")
	config := chosen.Object(chosen.root, "").Object("serviceConfig")
	if config != nil {
		r.documents[GRPC] = append(r.documents[GRPC], r.newDocument(f, config.Node, chosen.shown("serviceConfig")))
	}
}

func (d *document) choice() (all, any bool) {
	o := d.Object(d.root, "")
	inGo := !o.Has("clientLanguage")
	languages, path := o.List("clientLanguage")
	for i, l := range languages {
		d.Check(l.Kind == tree.Text, l, tree.Element(path, i), "a text such as go")
		inGo = inGo || strings.EqualFold(l.Text, "go")
	}
	percentage, limited := o.Whole("percentage", 0, 100, "a whole number from 0 to 100")
	o.Require("serviceConfig", "a service config")
	any = inGo && (!limited || percentage > 0) && o.Has("serviceConfig")
	return any && (!limited || percentage == 100) && !o.Has("clientHostname"), any
}

func (d *document) ignored(path string) {
	name := strings.ToLower(path[strings.LastIndexByte(path, '.')+1:])
	why, known := ownBusiness[name]
	switch {
	case known:
		d.note(Aside, path, why)
		if n := d.root.Get(path); n != nil {
			for _, at := range mentions(n, path) {
				d.note(Lost, at, "it is part of gRPC's load balancing, which is not read here; a policy knows no endpoints")
			}
		}
	case strings.HasSuffix(path, "]"):
		d.note(Lost, path, "it names no method, so that it applies to none")
	case name == "waitforready", name == "maxrequestmessagebytes", name == "maxresponsemessagebytes":
		d.note(Lost, path, "a policy has nothing like it: it is an option of the call in gRPC")
	default:
		d.note(Lost, path, "gRPC knows no such field, and reads over it")
	}
}

func (r *reading) methods(d *document, c serviceconfig.Config) {
	seen := 0
	for _, m := range d.root.Members { // c does not have the methods without a name
		if !tree.Fold(m.Key, "methodConfig") {
			continue
		}
		for j, item := range m.Value.Items {
			path := tree.Element(m.Key, j)
			if r.full || slices.Contains(c.Ignored, path) || seen >= len(c.Methods) || item.Kind != tree.Map {
				continue
			}
			r.method(d, path, c.Methods[seen], c.Throttling)
			seen++
		}
	}
	if len(c.Methods) == 0 && c.Throttling != nil {
		r.method(d, "", serviceconfig.MethodConfig{Names: []serviceconfig.MethodName{{}}}, c.Throttling)
	}
}

func (r *reading) method(d *document, path string, mc serviceconfig.MethodConfig, t *budget.GRPCConfig) {
	policy := r.base.of(GRPC).policy
	policy, lost := mc.Policy(policy, serviceconfig.Reading{PolicyOnly: true})
	var codes []code
	if mc.Retry != nil && mc.Retry.MaxAttempts == 0 {
		policy.Attempts = mostAttempts
		d.note(Assumed, tree.Join(path, "retryPolicy"), "without maxAttempts a generated client retries until the timeout; here it makes up to 1000 attempts")
	}
	if mc.Retry != nil {
		codes = mc.Retry.RetryableStatusCodes
	} else if mc.Hedging != nil {
		codes = mc.Hedging.NonFatalStatusCodes
	}
	if t != nil {
		b, more := serviceconfig.Budget(*t)
		policy.Budget = b
		for _, l := range more {
			d.note(kindOf(l), l.Field, l.Why)
		}
	}
	d.assume(mc.Timeout == 0 && path != "", path, "without timeout gRPC bounds no call")
	d.assume(mc.Retry == nil && mc.Hedging == nil && path != "", path,
		"without retryPolicy and hedgingPolicy gRPC makes one attempt")
	for i, n := range mc.Names {
		at := tree.Element(tree.Join(path, "name"), i)
		name := n.Pattern()
		for _, l := range lost {
			var a about
			if strings.HasSuffix(l.Field, "StatusCodes") {
				a = selection + about(":"+name)
			}
			d.noteAbout(true, a, kindOf(l), tree.Concat(path, l.Field), l.Why)
		}
		extras := GRPC.known()
		if extras.codes = codes; t != nil {
			extras.places["budget"] = d.at("retryThrottling").Position
		}
		r.add(d, name, nil, at, policy, extras)
	}
}

func kindOf(l serviceconfig.Loss) Kind {
	return choice.Either(l.Changed, Changed, Lost)
}

// grpc writes one service config: for the methods whose names the dependencies have, or for the only dependency.
func (w *writer) grpc() (*tree.Node, error) {
	var c serviceconfig.Config
	deps := w.set.File.Dependencies
	plain, names := 0, []string{}
	for _, d := range deps {
		names = append(names, d.Name)
		if _, ok := serviceconfig.NameOf(d.Name); !ok {
			plain++
		}
	}
	if plain > 1 {
		return nil, engine.Problems{{Field: "dependency", Value: "not given", Allowed: "the one to be written, since a service config is that of one server: " + choice.List(names) +
			`. (Dependencies called "/service/method", "/service/" or "/" are methods of one server.)`}}
	}
	methods := map[string]int{} // the index of each method, by its content
	throttled := ""             // the dependency that the retryThrottling is of
	for _, d := range deps {
		name, ok := serviceconfig.NameOf(d.Name)
		if !ok {
			w.note(d, Assumed, "", "it is the configuration of all methods; gRPC takes it from the server that is called")
		}
		one := w.serviceConfig(d, name)
		switch {
		case one.Throttling == nil:
		case c.Throttling == nil:
			c.Throttling, throttled = one.Throttling, d.Name
		case *c.Throttling != *one.Throttling:
			w.note(d, Lost, "budget", "a server has one retryThrottling for all its methods, and it is that of "+tree.Quote(throttled))
		}
		content := one.Methods[0]
		content.Names = nil
		key := string(serviceconfig.Config{Methods: []serviceconfig.MethodConfig{content}}.Tree().Compact())
		if i, ok := methods[key]; ok { // methods with the same content
			c.Methods[i].Names = append(c.Methods[i].Names, name)
			continue
		}
		methods[key] = len(c.Methods)
		c.Methods = append(c.Methods, one.Methods[0])
	}
	for _, d := range deps {
		if c.Throttling != nil && d.Policy.Budget.Unlimited && d.Policy.WithDefaults().Attempts > 1 {
			w.note(d, Changed, "budget", "a server has one retryThrottling for all its methods, and it is that of "+tree.Quote(throttled))
		}
	}
	w.services()
	return c.Tree(), nil
}

func (w *writer) serviceConfig(d config.Dependency, name serviceconfig.MethodName) serviceconfig.Config {
	note := w.of(d)
	one, lost, err := serviceconfig.Of(d.Policy, name)
	if err != nil {
		panic(err) // every policy of a Set is valid
	}
	mc := &one.Methods[0]
	for _, l := range lost {
		note(kindOf(l), codec.Path(l.Field), l.Why)
	}
	if mc.Retry != nil || mc.Hedging != nil {
		w.unsafe(d, "gRPC retries a method whether it is safe to repeat or not: name those that are")
	}
	known := w.set.known[d.Name]
	codes := known.codes
	if f := known.retried; f != nil {
		codes = f.codes()
		if len(codes) > 0 {
			w.took[selection+about(":"+d.Name)] = true
		}
		if left := slices.DeleteFunc(slices.Clone(f.on), func(word string) bool { return slices.Contains(onGRPC, word) }); len(codes) > 0 && len(left) > 0 {
			note(Lost, "", "of what is retried, gRPC knows no "+strings.Join(left, ", "))
		}
	} else if codes != nil {
		w.took[selection+about(":"+d.Name)] = true
	}
	switch {
	case mc.Retry != nil && len(codes) > 0:
		mc.Retry.RetryableStatusCodes = codes
	case mc.Hedging != nil && codes != nil:
		mc.Hedging.NonFatalStatusCodes = codes
	}
	w.facts(d)
	return one
}
