package lullamqp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/choice"
)

// topology is everything that must be on the server for a queue.
type topology struct {
	objects []object // in the order in which they are declared
	binds   []binding
}

// object is a durable exchange or queue.
type object struct {
	kind, name string     // "exchange" or "queue"
	of         string     // its type: "topic", "fanout", "quorum"
	args       amqp.Table // beside the type
}

const (
	kindExchange = "exchange"
	kindQueue    = "queue"
)

// declare makes o if it is not there. passive: it only checks whether o is there.
func (o object) declare(ch *amqp.Channel, passive bool) (err error) {
	switch {
	case o.kind == kindExchange && passive:
		err = ch.ExchangeDeclarePassive(o.name, o.of, true, false, false, false, nil)
	case o.kind == kindExchange:
		err = ch.ExchangeDeclare(o.name, o.of, true, false, false, false, o.args)
	case passive:
		_, err = ch.QueueDeclarePassive(o.name, true, false, false, false, nil)
	default:
		_, err = ch.QueueDeclare(o.name, true, false, false, false, o.args)
	}
	return err
}

type binding struct {
	source, key, target string
	toExchange          bool
}

// topology returns what c needs: the queue, that of its dead letters, and the delay levels.
func (c *Config) topology() topology {
	var t topology
	var queues []object
	add := func(name string, args amqp.Table) {
		args["x-queue-type"] = "quorum"
		queues = append(queues, object{kindQueue, name, "quorum", args})
	}
	bind := func(source, key, target string) {
		t.binds = append(t.binds, binding{source: source, key: key, target: target})
	}
	t.objects = append(t.objects,
		object{kindExchange, c.lost(), "fanout", nil},
		object{kindExchange, c.deliver(), "topic", amqp.Table{"alternate-exchange": c.lost()}},
	)
	add(c.lost(), amqp.Table{})
	bind(c.lost(), "", c.lost())
	next := c.deliver()
	for l := range levels {
		name := c.level(l)
		t.objects = append(t.objects, object{kindExchange, name, "topic", nil})
		// At-least-once: the message leaves the level when the next has confirmed it. The strategy
		// takes effect only together with reject-publish.
		add(name, amqp.Table{
			"x-message-ttl":          int64(unit/time.Millisecond) << l,
			"x-dead-letter-exchange": next,
			"x-dead-letter-strategy": "at-least-once",
			"x-overflow":             "reject-publish",
		})
		t.binds = append(t.binds, binding{source: name, key: bitPattern(l, "0"), target: next, toExchange: true})
		bind(name, bitPattern(l, "1"), name)
		next = name
	}
	// The limit is set although it is never reached. Without one, RabbitMQ 4 has a limit of 20, and
	// drops letters that were looked at more often.
	add(c.DeadLetters, amqp.Table{"x-delivery-limit": int64(1_000_000)})
	own := amqp.Table{
		"x-delivery-limit":          int64(c.DeliveryLimit),
		"x-dead-letter-exchange":    "",
		"x-dead-letter-routing-key": c.DeadLetters,
		"x-dead-letter-strategy":    "at-least-once",
		"x-overflow":                "reject-publish",
	}
	if n := c.Native; n != (Native{}) {
		own["x-delayed-retry-type"] = "failed"
		own["x-delayed-retry-min"] = n.Min.Milliseconds()
		own["x-delayed-retry-max"] = n.Max.Milliseconds()
	}
	add(c.Queue, own)
	bind(c.deliver(), queuePattern(c.Queue), c.Queue)
	// Exchanges first: a queue loses messages if it dead-letters to an exchange that is not there.
	t.objects = append(t.objects, queues...)
	return t
}

// Mismatches are all that Declare or Check has found wrong.
type Mismatches []Mismatch

// A Mismatch is one thing that is missing on the server, or differs from what it must be.
type Mismatch struct {
	// Kind is "queue", "exchange", "binding" or "policy".
	Kind string
	// Name is the queue's or exchange's name; of a binding "source -> target".
	Name string
	// What is wrong: "missing", or the name of an argument or other property.
	What string
	// Want and Found are its values, if they are known.
	Want, Found string
}

func (p Mismatch) String() string {
	s := p.Kind + " " + p.Name + ": " + p.What
	if p.Found != "" {
		s += " is " + p.Found
	}
	if p.Want != "" {
		s += ", want " + p.Want
	}
	return s
}

// Error returns all of them, one a line.
func (p Mismatches) Error() string {
	lines := choice.Each(p, Mismatch.String)
	if len(lines) == 1 {
		return "lullamqp: " + lines[0]
	}
	return fmt.Sprintf("lullamqp: %d problems:\n%s", len(lines), strings.Join(lines, "\n"))
}

func (p *Mismatches) add(kind, name, what, want, found string) {
	*p = append(*p, Mismatch{kind, name, what, want, found})
}

func (p *Mismatches) missing(o object) {
	want := choice.Either(o.kind == kindExchange, "a durable "+o.of+" exchange", "a durable queue")
	p.add(o.kind, o.name, "missing", want+withArgs(o.args), "")
}

func (p Mismatches) err() error {
	if len(p) == 0 {
		return nil
	}
	return lull.Permanent(p)
}

// Declare makes everything that config needs and that is not there yet: the queue, the queue of its
// dead letters, and the delay levels (22 quorum queues, which all queues with config.Prefix share).
// It may be called again, and by several processes at once. It changes nothing that is there. If
// something is there with other arguments, it returns an error of the type Mismatches with all of
// them. (RabbitMQ cannot change a queue's arguments: delete it, or change config.)
//
// The user needs the permissions configure, write and read on these names.
func (c *Client) Declare(ctx context.Context, config Config) error {
	s, t, err := c.survey(ctx, config, false)
	if err != nil {
		return err
	}
	defer s.close()
	if len(s.found) > 0 {
		return s.found.err() // no bindings to something different
	}
	for _, b := range t.binds {
		err := s.do(ctx, func(ch *amqp.Channel) error {
			if b.toExchange {
				return ch.ExchangeBind(b.target, b.key, b.source, false, nil)
			}
			return ch.QueueBind(b.target, b.key, b.source, false, nil)
		})
		if err != nil {
			return explain(fmt.Sprintf("bind %s to %s", b.target, b.source), err)
		}
	}
	return nil
}

// Check reports whether all that config needs is there, with the arguments that it must have. It
// changes nothing. An error of the type Mismatches lists all that is missing or different.
//
// Over AMQP a server shows whether a queue or exchange is there. It shows the first argument that
// differs, and only to users who may configure the object. It shows no bindings and no policies.
// [Management.Check] checks everything.
func (c *Client) Check(ctx context.Context, config Config) error {
	s, _, err := c.survey(ctx, config, true)
	if err != nil {
		return err
	}
	defer s.close()
	return s.found.err()
}

// checkPresent checks that all exchanges and queues that config needs are there, whatever their
// arguments. Every user who may connect may ask for that.
func (c *Client) checkPresent(ctx context.Context, config Config) error {
	s, err := c.newInspector(ctx, &config)
	if err != nil {
		return err
	}
	defer s.close()
	for _, o := range config.topology().objects {
		if _, err := s.exists(ctx, o); err != nil {
			return err
		}
	}
	if len(s.found) > 0 {
		return lull.Permanent(fmt.Errorf("lullamqp: the queue %s cannot be used: %w; Client.Declare makes what is missing", config.Queue, s.found))
	}
	return nil
}

// survey looks at the exchanges and queues that config needs. Unless readOnly is set, it makes those
// that are missing. The caller closes the inspector.
func (c *Client) survey(ctx context.Context, config Config, readOnly bool) (s *inspector, t topology, err error) {
	if err := config.Validate(); err != nil {
		return nil, t, fmt.Errorf("config of a queue: %w", err)
	}
	config = config.WithDefaults()
	if s, err = c.newInspector(ctx, &config); err != nil {
		return nil, t, err
	}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	t = config.topology()
	for _, o := range t.objects {
		if err := s.compare(ctx, o, readOnly); err != nil {
			return s, t, err
		}
	}
	return s, t, nil
}

// inspector looks at objects on the server. Each refusal ends its channel.
type inspector struct {
	conn  *amqp.Connection
	ch    *amqp.Channel
	found Mismatches
}

func (c *Client) newInspector(ctx context.Context, config *Config) (*inspector, error) {
	conn, err := c.in.get(ctx)
	if err != nil {
		return nil, err
	}
	if err := config.supported(serverOf(conn)); err != nil {
		return nil, lull.Permanent(err)
	}
	return &inspector{conn: conn}, nil
}

// do calls f with a working channel.
func (s *inspector) do(ctx context.Context, f func(*amqp.Channel) error) error {
	if s.ch == nil || s.ch.IsClosed() {
		ch, err := callWithin(ctx, s.conn.Channel)
		if err != nil {
			return err
		}
		s.ch = ch
	}
	return runWithin(ctx, func() error { return f(s.ch) })
}

func (s *inspector) close() {
	if s.ch != nil && !s.ch.IsClosed() {
		go s.ch.Close()
	}
}

func answered(err error, code int) bool {
	e, ok := errors.AsType[*amqp.Error](err)
	return ok && e.Server && e.Code == code
}

// exists reports whether there is an object of that name. If not, it records a mismatch.
func (s *inspector) exists(ctx context.Context, o object) (bool, error) {
	err := s.do(ctx, func(ch *amqp.Channel) error { return o.declare(ch, true) })
	if answered(err, amqp.NotFound) {
		s.found.missing(o)
		return false, nil
	}
	return err == nil, explain("look at the "+o.kind+" "+o.name, err)
}

func (c *Client) queue(ctx context.Context, name string) error {
	conn, err := c.in.get(ctx)
	if err != nil {
		return err
	}
	s := &inspector{conn: conn}
	defer s.close()
	err = s.do(ctx, func(ch *amqp.Channel) error { return object{kind: kindQueue, name: name}.declare(ch, true) })
	return explain("look at the queue "+name, err)
}

// compare compares o with the server's object. Unless readOnly is set, it makes a missing one.
func (s *inspector) compare(ctx context.Context, o object, readOnly bool) error {
	if readOnly {
		if there, err := s.exists(ctx, o); !there {
			return err
		}
	}
	err := s.do(ctx, func(ch *amqp.Channel) error { return o.declare(ch, false) })
	switch {
	case err == nil:
		return nil
	case answered(err, amqp.PreconditionFailed):
		e, _ := errors.AsType[*amqp.Error](err)
		m, _ := inequivalent(o.kind, o.name, e.Reason)
		s.found = append(s.found, m)
		return nil
	case readOnly && answered(err, amqp.AccessRefused):
		return nil // it is there; a user who may not configure it learns no more
	}
	return explain("declare the "+o.kind+" "+o.name, err)
}

var inequivalence = regexp.MustCompile(`inequivalent arg '([^']*)' for (?:queue|exchange) '.*' in vhost '.*': ` +
	`received (?:the value )?(.*?)(?: of type '[^']*')? but current is (?:the value )?(.*?)(?: of type '([^']*)')?$`)

// inequivalent reads the server's error text for a declaration that does not fit. has is the type of the existing value, if the
// text has it.
func inequivalent(kind, name, reason string) (m Mismatch, has string) {
	part := inequivalence.FindStringSubmatch(reason)
	if part == nil {
		return Mismatch{Kind: kind, Name: name, What: strings.TrimPrefix(reason, "PRECONDITION_FAILED - ")}, ""
	}
	return Mismatch{Kind: kind, Name: name, What: part[1], Want: part[2], Found: part[3]}, part[4]
}

func withArgs(args amqp.Table) string {
	if len(args) == 0 {
		return ""
	}
	parts := choice.Each(slices.Sorted(maps.Keys(args)), func(name string) string { return fmt.Sprintf("%s=%v", name, args[name]) })
	return " with " + strings.Join(parts, ", ")
}
