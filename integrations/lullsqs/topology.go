package lullsqs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/queue"
)

// A Topology names the queues that a consumer needs: a queue, and one for its dead letters. It is
// plain, comparable data.
type Topology struct {
	// Queue is the name of the queue. One that ends in ".fifo" is a FIFO queue.
	Queue string
	// DeadLetters is the name of the queue of dead letters. Empty: Queue with "-dead"
	// ("orders-dead", "orders-dead.fifo").
	DeadLetters string
	// Policy is the policy of the consumer's dependency. DeliveryLimit is compared with its Attempts. Zero: queue.Policy.
	Policy lull.Policy
	// DeliveryLimit is SQS' own limit (maxReceiveCount). After it, SQS moves a message to the dead
	// letters by itself and without an envelope. It also counts deferrals. At least Policy.Attempts + 2,
	// up to 1000. Zero: Policy.Attempts + 10, and [Check] accepts any value from Policy.Attempts + 2.
	DeliveryLimit int
	// MaxAge is how long SQS keeps a message that nobody acknowledges: longer than
	// queue.Config.WorstCase. Whole seconds from 1 minute to 13 days. Zero: 4 days when the queue
	// is declared, and any value when it is checked.
	MaxAge time.Duration
	// DeadLetterMaxAge is how long SQS keeps dead letters. It must be longer than MaxAge: when SQS
	// itself moves a message of a standard queue there, the time in its former queue counts. Whole
	// seconds up to 14 days. Zero: 14 days when the queue is declared, and anything longer than
	// MaxAge when it is checked.
	DeadLetterMaxAge time.Duration
}

// The defaults and limits of SQS.
const (
	defaultRetention = 4 * 24 * time.Hour
	longestRetention = 14 * 24 * time.Hour
)

// Validate reports everything that is wrong with t at once.
func (t Topology) Validate() error {
	var l problem.List
	d := t.withDefaults()
	const wanted = "1 to 80 letters, digits, hyphens and underscores, with .fifo at the end for a FIFO queue"
	l.Check(isQueueName(t.Queue), "Queue", strconv.Quote(t.Queue), wanted)
	if isQueueName(t.Queue) {
		l.Check(isQueueName(d.DeadLetters), "DeadLetters", strconv.Quote(d.DeadLetters), wanted)
		l.Check(d.DeadLetters != t.Queue, "DeadLetters", strconv.Quote(d.DeadLetters), "another queue than Queue")
		l.Check(isFIFO(d.DeadLetters) == isFIFO(t.Queue), "DeadLetters", strconv.Quote(d.DeadLetters), "a FIFO queue (.fifo) if Queue is one, and only then")
	}
	attempts := d.attempts()
	l.In("Policy", t.Policy.Validate())
	l.Check(d.DeliveryLimit >= attempts+2 && d.DeliveryLimit <= 1000, "DeliveryLimit", t.DeliveryLimit, fmt.Sprintf("%d (Policy.Attempts + 2) to 1000 receives, or 0 for the default", attempts+2))
	l.Check(isWholeSeconds(t.MaxAge) && d.MaxAge >= time.Minute && d.MaxAge < longestRetention, "MaxAge", t.MaxAge, "whole seconds from 1 minute to less than 14 days, or 0 for the default of 4 days")
	l.Check(isWholeSeconds(t.DeadLetterMaxAge) && d.DeadLetterMaxAge > d.MaxAge && d.DeadLetterMaxAge <= longestRetention, "DeadLetterMaxAge", t.DeadLetterMaxAge, "whole seconds, more than MaxAge and up to 14 days, or 0 for 14 days")
	return l.Err()
}

func (t Topology) withDefaults() Topology {
	if t.DeadLetters == "" {
		name, fifo := strings.CutSuffix(t.Queue, ".fifo")
		t.DeadLetters = name + "-dead"
		if fifo {
			t.DeadLetters += ".fifo"
		}
	}
	t.Policy = cmp.Or(t.Policy, queue.Policy())
	t.DeliveryLimit = cmp.Or(t.DeliveryLimit, min(t.attempts()+10, 1000))
	t.MaxAge = cmp.Or(t.MaxAge, defaultRetention)
	t.DeadLetterMaxAge = cmp.Or(t.DeadLetterMaxAge, longestRetention)
	return t
}

func (t Topology) attempts() int { return t.Policy.WithDefaults().MaxAttempts() }

var queueName = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.fifo)?$`)

func isQueueName(s string) bool { return len(s) <= 80 && queueName.MatchString(s) }

// A Mismatches is an error of [Declare] or [Check]: everything that is missing or different.
type Mismatches []string

// Error lists all of it, one a line.
func (m Mismatches) Error() string { return strings.Join(m, "\n") }

func (m *Mismatches) add(format string, args ...any) { *m = append(*m, fmt.Sprintf(format, args...)) }

// Check finds out whether the queues of t exist and are as they must be. It returns the Config of a
// [Broker]. It changes nothing. The error is a [Mismatches] with everything that is missing or
// different, marked with lull.Permanent. If the queues could not be asked, it is another error.
//
// It needs the permissions sqs:GetQueueUrl and sqs:GetQueueAttributes.
func Check(ctx context.Context, a Admin, t Topology) (Config, error) {
	return prepare(ctx, a, t, false)
}

// Declare is Check, but makes the queues that are missing, and sets the redrive policy of a queue
// that has none. It does not change what exists and is different, since others may rely on it, and
// reports it as Check does. Many processes may call it, and call it again.
//
// It also needs the permissions sqs:CreateQueue and sqs:SetQueueAttributes. SQS needs a moment until a queue that was made
// can be used everywhere, and a minute until one that was deleted can be made again.
func Declare(ctx context.Context, a Admin, t Topology) (Config, error) {
	return prepare(ctx, a, t, true)
}

type state struct {
	name, url string
	attrs     map[string]string
}

func prepare(ctx context.Context, a Admin, t Topology, declare bool) (Config, error) {
	if a == nil {
		return Config{}, errors.New("lullsqs: Declare and Check need a client")
	}
	if err := t.Validate(); err != nil {
		return Config{}, fmt.Errorf("topology of queues of SQS: %w", err)
	}
	exact := t
	t = t.withDefaults()
	dead, err := find(ctx, a, t.DeadLetters)
	if err != nil {
		return Config{}, err
	}
	if dead.url == "" && declare {
		if dead, err = create(ctx, a, t.DeadLetters, map[string]string{"MessageRetentionPeriod": inSeconds(t.DeadLetterMaxAge)}); err != nil {
			return Config{}, err
		}
	}
	main, err := find(ctx, a, t.Queue)
	if err != nil {
		return Config{}, err
	}
	if declare && dead.attrs["QueueArn"] != "" {
		policy := redrivePolicy{Target: dead.attrs["QueueArn"], Receives: json.Number(strconv.Itoa(t.DeliveryLimit))}.String()
		switch {
		case main.url == "":
			main, err = create(ctx, a, t.Queue, map[string]string{"MessageRetentionPeriod": inSeconds(t.MaxAge), "RedrivePolicy": policy})
		case main.attrs["RedrivePolicy"] == "":
			if _, err = a.SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{QueueUrl: &main.url, Attributes: map[string]string{"RedrivePolicy": policy}}, NoRetries); err == nil {
				main.attrs["RedrivePolicy"] = policy
			}
			err = failed(ctx, "set the redrive policy of "+t.Queue, err)
		}
		if err != nil {
			return Config{}, err
		}
	}
	if m := compare(main, dead, t, exact); len(m) > 0 {
		return Config{}, lull.Permanent(fmt.Errorf("queues of SQS: %w", m))
	}
	return Config{Queue: main.url, DeadLetters: dead.url, MaxAge: time.Duration(main.number("MessageRetentionPeriod")) * time.Second}, nil
}

func inSeconds(d time.Duration) string { return strconv.FormatInt(int64(d/time.Second), 10) }

// find reads a queue. The url is empty if it does not exist.
func find(ctx context.Context, a Admin, name string) (state, error) {
	s := state{name: name}
	u, err := a.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &name}, NoRetries)
	if code(err) == "NonExistentQueue" || code(err) == "QueueDoesNotExist" {
		return s, nil
	}
	if err != nil {
		return s, failed(ctx, "find the queue "+name, err)
	}
	return read(ctx, a, name, aws.ToString(u.QueueUrl))
}

func read(ctx context.Context, a Admin, name, url string) (state, error) {
	s := state{name: name, url: url}
	o, err := a.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll}}, NoRetries)
	if err != nil {
		return s, failed(ctx, "read the attributes of the queue "+name, err)
	}
	s.attrs = o.Attributes
	if s.attrs == nil {
		s.attrs = map[string]string{}
	}
	return s, nil
}

func create(ctx context.Context, a Admin, name string, attrs map[string]string) (state, error) {
	if isFIFO(name) {
		attrs["FifoQueue"] = "true"
	}
	o, err := a.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &name, Attributes: attrs}, NoRetries)
	if code(err) == "QueueDeletedRecently" {
		return state{}, lull.RetryAfter(failed(ctx, "make the queue "+name, err), time.Minute)
	}
	if c := code(err); c == "QueueNameExists" || c == "QueueAlreadyExists" { // another process was faster, with other attributes
		return find(ctx, a, name)
	}
	if err != nil {
		return state{}, failed(ctx, "make the queue "+name, err)
	}
	s, err := read(ctx, a, name, aws.ToString(o.QueueUrl))
	for k, v := range attrs { // they may not show everywhere yet
		if s.attrs != nil && s.attrs[k] == "" {
			s.attrs[k] = v
		}
	}
	return s, err
}

// compare returns what is wrong. want has the values that are required exactly (zero: any).
func compare(main, dead state, t, want Topology) (m Mismatches) {
	for _, s := range []state{main, dead} {
		switch {
		case s.url == "":
			m.add("the queue %s does not exist", s.name)
		case isFIFO(s.name) && s.attrs["FifoQueue"] != "true":
			m.add("%s: FifoQueue is %q: want true", s.name, s.attrs["FifoQueue"])
		}
	}
	if main.url != "" {
		compareRedrive(&m, main, dead, t, want)
		compareRetention(&m, main, want.MaxAge)
	}
	if dead.url == "" {
		return m
	}
	if dead.attrs["RedrivePolicy"] != "" {
		m.add("%s: it has a RedrivePolicy: want none, for to be read counts as a receive", dead.name)
	}
	compareRetention(&m, dead, want.DeadLetterMaxAge)
	if main.url == "" {
		return m
	}
	if a, b := main.number("MessageRetentionPeriod"), dead.number("MessageRetentionPeriod"); want.DeadLetterMaxAge == 0 && a > 0 && b > 0 && b <= a {
		m.add("%s: MessageRetentionPeriod is %d s: want more than the %d s of %s", dead.name, b, a, main.name)
	}
	if a, b := main.number("MaximumMessageSize"), dead.number("MaximumMessageSize"); a > 0 && b > 0 && b < a {
		m.add("%s: MaximumMessageSize is %d bytes: want the %d of %s, or more", dead.name, b, a, main.name)
	}
	compareAllow(&m, main, dead)
	return m
}

func (s state) number(name string) int64 {
	n, _ := strconv.ParseInt(s.attrs[name], 10, 64)
	return n
}

func compareRetention(m *Mismatches, s state, want time.Duration) {
	if got := s.number("MessageRetentionPeriod"); want > 0 && time.Duration(got)*time.Second != want {
		m.add("%s: MessageRetentionPeriod is %d s: want %s s", s.name, got, inSeconds(want))
	}
}

// redrivePolicy is the attribute RedrivePolicy. SQS writes its number as text or as a number, and reads both.
type redrivePolicy struct {
	Target   string      `json:"deadLetterTargetArn"`
	Receives json.Number `json:"maxReceiveCount"`
}

func (p redrivePolicy) receives() int {
	n, _ := p.Receives.Int64()
	return int(n)
}

func (p redrivePolicy) String() string {
	b, _ := json.Marshal(p)
	return string(b)
}

func compareRedrive(m *Mismatches, main, dead state, t, want Topology) {
	text := main.attrs["RedrivePolicy"]
	if text == "" {
		m.add("%s: it has no RedrivePolicy: want one with a maxReceiveCount of %d to %s, for messages that no consumer settles", main.name, t.DeliveryLimit, dead.name)
		return
	}
	var p redrivePolicy
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		m.add("%s: RedrivePolicy is %s, which cannot be read: %v", main.name, text, err)
		return
	}
	if target := dead.attrs["QueueArn"]; target != "" && p.Target != target {
		m.add("%s: RedrivePolicy.deadLetterTargetArn is %s: want %s", main.name, p.Target, target)
	}
	switch n := p.receives(); {
	case want.DeliveryLimit != 0 && n != want.DeliveryLimit:
		m.add("%s: RedrivePolicy.maxReceiveCount is %d: want %d", main.name, n, want.DeliveryLimit)
	case n < t.attempts()+2:
		m.add("%s: RedrivePolicy.maxReceiveCount is %d: want %d or more, 2 more than there are attempts", main.name, n, t.attempts()+2)
	}
}

// compareAllow checks which queues the queue of dead letters accepts messages from.
func compareAllow(m *Mismatches, main, dead state) {
	text := dead.attrs["RedriveAllowPolicy"]
	if text == "" {
		return
	}
	var p struct {
		Permission string   `json:"redrivePermission"`
		Sources    []string `json:"sourceQueueArns"`
	}
	if json.Unmarshal([]byte(text), &p) != nil {
		return
	}
	if p.Permission == "denyAll" || p.Permission == "byQueue" && !slices.Contains(p.Sources, main.attrs["QueueArn"]) {
		m.add("%s: RedriveAllowPolicy is %s: want one that allows %s", dead.name, text, main.name)
	}
}
