package lullamqp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/lullgo/lull"
)

// Management is the HTTP API of RabbitMQ's management plugin. It shows what AMQP does not:
// arguments, bindings and policies. Its user needs the tag monitoring or management, and
// permissions on the virtual host. It may be used concurrently.
type Management struct {
	// URL is its address, such as "http://host:15672".
	URL string
	// User and Password are sent with each request (basic authentication).
	User, Password string
	// Vhost is the virtual host. Zero: "/".
	Vhost string
	// Client makes the requests. Zero: http.DefaultClient.
	Client *http.Client
}

// Check compares all that config needs with the server: queues and exchanges, their types and
// arguments, the bindings, and policies that would lose messages or hold up the delay levels. It
// changes nothing. An error of the type Mismatches lists all that is missing or different. Older
// servers apply a new policy after some seconds.
func (m Management) Check(ctx context.Context, config Config) error {
	if err := config.Validate(); err != nil {
		return fmt.Errorf("config of a queue: %w", err)
	}
	config = config.WithDefaults()
	var overview struct {
		Product string `json:"product_name"`
		Version string `json:"product_version"`
		Rabbit  string `json:"rabbitmq_version"`
	}
	if _, err := m.get(ctx, &overview, "overview"); err != nil {
		return err
	}
	if overview.Product == "" || overview.Version == "" {
		overview.Product, overview.Version = "RabbitMQ", overview.Rabbit
	}
	if err := config.supported(ServerInfo{Product: overview.Product, Version: overview.Version}); err != nil {
		return lull.Permanent(err)
	}
	var found Mismatches
	t := config.topology()
	there := map[string]bool{}
	for _, o := range t.objects {
		ok, err := m.look(ctx, &found, o)
		if err != nil {
			return err
		}
		there[o.kind+" "+o.name] = ok
	}
	for _, b := range t.binds {
		kind, to := "queue ", "q"
		if b.toExchange {
			kind, to = "exchange ", "e"
		}
		type bound struct {
			Key string `json:"routing_key"`
		}
		var bindings []bound
		if there["exchange "+b.source] && there[kind+b.target] {
			if _, err := m.get(ctx, &bindings, "bindings", m.vhost(), "e", b.source, to, b.target); err != nil {
				return err
			}
		}
		if !slices.ContainsFunc(bindings, func(each bound) bool { return each.Key == b.key }) {
			found.add("binding", b.source+" -> "+b.target, "missing", fmt.Sprintf("the key %q", b.key), "")
		}
	}
	return found.err()
}

func (m Management) vhost() string { return cmp.Or(m.Vhost, "/") }

// description is an exchange or a queue as the API describes it.
type description struct {
	Type      string
	Durable   bool
	Arguments map[string]any
	Policy    string
	Operator  string `json:"operator_policy"`
	Effective any    `json:"effective_policy_definition"` // of a queue; an empty one may be a list
}

// policy returns the definition that the server applies.
func (d *description) policy() map[string]any {
	p, _ := d.Effective.(map[string]any)
	return p
}

// harmful are the keys of policies that lose messages, deliver them early, or hold up a level.
var harmful = []string{"message-ttl", "expires", "max-length", "max-length-bytes"}

// look compares o with the server. It reports whether o is there.
func (m Management) look(ctx context.Context, found *Mismatches, o object) (bool, error) {
	var is description
	ok, err := m.get(ctx, &is, o.kind+"s", m.vhost(), o.name)
	if err != nil {
		return false, err
	}
	if !ok {
		found.missing(o)
		return false, nil
	}
	if is.Type != o.of {
		found.add(o.kind, o.name, "type", o.of, is.Type)
	}
	if !is.Durable {
		found.add(o.kind, o.name, "durable", "true", "false")
	}
	found.compare(o.kind, o.name, o.args, is.Arguments)
	effective, policy := is.policy(), policies(is.Policy, is.Operator)+" of queue "+o.name
	for _, key := range harmful {
		if v, there := effective[key]; there {
			found.add("policy", policy, key, "none", fmt.Sprint(v))
		}
	}
	// If both a policy and an argument set a value, the argument counts; of two limits the lower
	// counts.
	limit, _ := integer(o.args["x-delivery-limit"])
	if v, ok := effective["delivery-limit"].(float64); ok && limit > 0 && int64(v) < limit {
		found.add("policy", policy, "delivery-limit", fmt.Sprintf("%d or more", limit), fmt.Sprint(v))
	}
	return true, nil
}

func policies(names ...string) string {
	names = slices.DeleteFunc(names, func(s string) bool { return s == "" })
	return strings.Join(names, " and ")
}

// compare adds the arguments that differ from those that should be there.
func (p *Mismatches) compare(kind, name string, want amqp.Table, is map[string]any) {
	text := func(v any) string {
		if f, ok := v.(float64); ok {
			return fmt.Sprintf("%.0f", f)
		}
		return fmt.Sprint(v)
	}
	keys := slices.AppendSeq(slices.Collect(maps.Keys(want)), maps.Keys(is))
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		w, wanted := want[key]
		f, there := is[key]
		switch {
		case !there:
			p.add(kind, name, key, text(w), "not set")
		case !wanted:
			p.add(kind, name, key, "not set", text(f))
		case text(w) != text(f):
			p.add(kind, name, key, text(w), text(f))
		}
	}
}

// get requests one object. ok is false if it does not exist.
func (m Management) get(ctx context.Context, into any, path ...string) (ok bool, err error) {
	at, err := url.Parse(m.URL)
	if err != nil || at.Host == "" {
		return false, lull.Permanent(fmt.Errorf("lullamqp: Management.URL is %q: want one such as http://host:15672", m.URL))
	}
	for i, p := range path {
		path[i] = url.PathEscape(p)
	}
	target := strings.TrimSuffix(at.String(), "/") + "/api/" + strings.Join(path, "/")
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return false, fmt.Errorf("lullamqp: %w", err)
	}
	req.SetBasicAuth(m.User, m.Password)
	res, err := cmp.Or(m.Client, http.DefaultClient).Do(req)
	if err != nil {
		return false, fmt.Errorf("lullamqp: management: %w", err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, 4<<20))
	switch {
	case err != nil:
		return false, fmt.Errorf("lullamqp: management: %w", err)
	case res.StatusCode == http.StatusNotFound:
		return false, nil
	case res.StatusCode == http.StatusUnauthorized, res.StatusCode == http.StatusForbidden:
		return false, lull.Permanent(fmt.Errorf("lullamqp: management: %s for the user %q", res.Status, m.User))
	case res.StatusCode != http.StatusOK:
		return false, fmt.Errorf("lullamqp: management: %s says %s", target, res.Status)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return false, errors.Join(fmt.Errorf("lullamqp: management: %s does not answer as it should", target), err)
	}
	return true, nil
}
