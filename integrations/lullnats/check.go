package lullnats

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/queue"
)

// queueState is the state of a queue on the server. nil: it does not exist.
type queueState struct {
	version    string // of the server that the connection leads to
	stream     *jetstream.StreamInfo
	consumer   *jetstream.ConsumerInfo
	dead       *jetstream.StreamInfo
	advisories *jetstream.StreamInfo
	reaper     *jetstream.ConsumerInfo
}

// look asks the server for everything that c names.
func (k client) look(ctx context.Context, c Config) (p queueState, err error) {
	if err := k.ready(ctx); err != nil {
		return p, err
	}
	p.version = k.nc.ConnectedServerVersion()
	stream := func(name string) (info *jetstream.StreamInfo) {
		if err != nil {
			return nil
		}
		s, failed := k.js.Stream(ctx, name)
		if failed == nil {
			return s.CachedInfo()
		}
		if !absent(failed) {
			err = fmt.Errorf("lullnats: stream %s: %w", name, failed)
		}
		return nil
	}
	consumer := func(stream, name string) (info *jetstream.ConsumerInfo) {
		if err != nil {
			return nil
		}
		// Package jetstream does not return push consumers.
		info = &jetstream.ConsumerInfo{}
		failed := k.ask(ctx, "CONSUMER.INFO."+stream+"."+name, struct{}{}, info)
		if failed == nil {
			return info
		}
		if !absent(failed) {
			err = fmt.Errorf("lullnats: consumer %s of %s: %w", name, stream, failed)
		}
		return nil
	}
	if p.stream = stream(c.Stream); p.stream != nil {
		p.consumer = consumer(c.Stream, c.Consumer)
	}
	p.dead = stream(c.DeadStream)
	if c.reaps() {
		if p.advisories = stream(c.AdvisoryStream); p.advisories != nil {
			p.reaper = consumer(c.AdvisoryStream, c.reaper())
		}
	}
	return p, err
}

// Check reports everything that is missing of the queue that c names, or that is not as it must be,
// each in a line. It returns nil if nothing is wrong. If the server could not be asked, it returns
// that error instead.
func Check(ctx context.Context, js jetstream.JetStream, c Config) error {
	_, p, c, err := survey(ctx, js, c)
	if err != nil {
		return err
	}
	return p.problems(c).Err()
}

// survey looks at the queue that c names. It returns c with its defaults.
func survey(ctx context.Context, js jetstream.JetStream, c Config) (k client, p queueState, _ Config, err error) {
	if c, err = c.checked(); err != nil {
		return k, p, c, err
	}
	if k, err = newClient(js); err != nil {
		return k, p, c, err
	}
	p, err = k.look(ctx, c)
	return k, p, c, err
}

// verify returns the queue that c names, or an error that is marked with lull.Permanent if anything
// is missing or different. Any other error means that the server could not be asked.
func (k client) verify(ctx context.Context, c Config) (queueState, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second) // package jetstream waits for as long as ctx
	defer cancel()
	p, err := k.look(ctx, c)
	if err != nil {
		return p, err
	}
	if err := p.problems(c).Err(); err != nil {
		return p, lull.Permanent(fmt.Errorf("lullnats: the queue %s of %s is not as it must be: %w", c.Consumer, c.Stream, err))
	}
	return p, nil
}

// refusal returns err, unless it means only that the server could not be asked, and somebody still
// waits.
func refusal(ctx context.Context, err error) error {
	if err != nil && ctx.Err() == nil && lull.Classify(err).Kind != lull.KindPermanent {
		return nil
	}
	return err
}

// problems returns everything that is wrong on the server.
func (p queueState) problems(c Config) (l problem.List) {
	p.streamProblems(c, &l)
	p.consumerProblems(c, &l)
	p.deadProblems(c, &l)
	if c.reaps() {
		p.advisoryProblems(c, &l)
	}
	return l
}

func (p queueState) streamProblems(c Config, l *problem.List) {
	what := "stream " + c.Stream
	if p.stream == nil {
		l.Add(what, "missing", "a stream with the subject "+c.Subject)
		return
	}
	s := p.stream.Config
	field := func(name string) string { return what + ": " + name }
	has(l, field("Subjects"), s.Subjects, c.Subject)
	if c.Schedules {
		l.Check(s.Retention == jetstream.WorkQueuePolicy, field("Retention"), s.Retention, "WorkQueue, as other consumers would get what is put off")
		l.Check(s.AllowMsgSchedules, field("AllowMsgSchedules"), s.AllowMsgSchedules, "true (from server 2.12 on; this one is "+p.version+")")
		has(l, field("Subjects"), s.Subjects, c.LaterSubject+".>")
	}
	if c.MaxAge == 0 {
		l.Check(s.MaxAge == 0, field("MaxAge"), s.MaxAge, "0: the server drops what is older, dead letter or not")
	} else {
		l.Check(s.MaxAge == 0 || s.MaxAge >= c.MaxAge, field("MaxAge"), s.MaxAge, "at least "+c.MaxAge.String()+", or 0")
	}
	if worst := p.worst(c); c.MaxAge > 0 && s.MaxAge > 0 && s.MaxAge < worst {
		want := "at least " + worst.String() + ", the longest that a message takes under the policy (queue.Config.WorstCase), or 0"
		if worst == math.MaxInt64 {
			want = "0, as nothing bounds how long a message takes under the policy (queue.Config.WorstCase)"
		}
		l.Add(field("MaxAge"), s.MaxAge, want)
	}
	l.Check(s.Discard == jetstream.DiscardNew || s.MaxMsgs <= 0 && s.MaxBytes <= 0, field("Discard"), s.Discard, "New, or no MaxMsgs and MaxBytes: the server drops the oldest messages for new ones")
	l.Check(s.MaxMsgsPerSubject <= 0, field("MaxMsgsPerSubject"), s.MaxMsgsPerSubject, "no limit: the server drops messages for others with their subject")
	l.Check(s.Duplicates >= c.Duplicates, field("Duplicates"), s.Duplicates, "at least "+c.Duplicates.String())
	l.Check(!s.NoAck, field("NoAck"), s.NoAck, "false")
	l.Check(!s.Sealed, field("Sealed"), s.Sealed, "false")
	l.Check(c.Replicas == 0 || s.Replicas == c.Replicas, field("Replicas"), s.Replicas, fmt.Sprint(c.Replicas))
}

// worst returns the longest that a message takes under the policy.
func (p queueState) worst(c Config) time.Duration {
	lease := c.ackWait()
	if p.consumer != nil && p.consumer.Config.AckWait > 0 {
		lease = p.consumer.Config.AckWait
	}
	policy := c.Policy
	policy.Attempts = c.Attempts
	return queue.Config{Lease: lease}.WorstCase(policy, queue.Capabilities{MaxDelay: MaxDelay, Leases: true, Extends: true})
}

func (p queueState) consumerProblems(c Config, l *problem.List) {
	what := "consumer " + c.Consumer + " of " + c.Stream
	if p.stream == nil {
		return // then the consumer does not exist either
	}
	if p.consumer == nil {
		l.Add(what, "missing", "a durable pull consumer with explicit acknowledgements")
		return
	}
	s := p.consumer.Config
	field := func(name string) string { return what + ": " + name }
	filters := slices.Clone(s.FilterSubjects)
	if s.FilterSubject != "" {
		filters = append(filters, s.FilterSubject)
	}
	if len(filters) == 0 {
		filters = []string{">"}
	}
	has(l, field("FilterSubject"), filters, c.Subject)
	if c.Schedules {
		for _, f := range filters {
			l.Check(!covers(f, c.LaterSubject+".x"), field("FilterSubject"), f, "none that has "+c.LaterSubject+".>, where messages wait")
		}
	}
	l.Check(s.Durable != "" && s.InactiveThreshold == 0, field("InactiveThreshold"), s.InactiveThreshold, "0, of a durable consumer: the server deletes it with all that it knows")
	l.Check(s.DeliverSubject == "", field("DeliverSubject"), s.DeliverSubject, "none: a pull consumer")
	l.Check(s.AckPolicy == jetstream.AckExplicitPolicy, field("AckPolicy"), s.AckPolicy, "explicit")
	l.Check(len(s.BackOff) == 0, field("BackOff"), s.BackOff, "none: its first time is the lease instead of AckWait, and it is not heeded when a message fails")
	if len(s.BackOff) == 0 {
		if c.Lease > 0 {
			l.Check(s.AckWait == c.ackWait(), field("AckWait"), s.AckWait, c.ackWait().String()+", which is Lease and a second")
		} else {
			l.Check(s.AckWait >= restart+minLease, field("AckWait"), s.AckWait, "at least "+(restart+minLease).String()+", which is a lease and a second")
		}
	}
	if n := s.MaxDeliver; c.reaps() {
		l.Check(n == c.MaxDeliver, field("MaxDeliver"), n, fmt.Sprintf("%d, or Config.MaxDeliver to say what it is", c.MaxDeliver))
	} else {
		l.Check(n <= 0, field("MaxDeliver"), n, "no limit, or Config.MaxDeliver to say what it is")
	}
	l.Check(!s.HeadersOnly, field("HeadersOnly"), s.HeadersOnly, "false")
	l.Check(s.ReplayPolicy == jetstream.ReplayInstantPolicy, field("ReplayPolicy"), s.ReplayPolicy, "instant")
	l.Check(len(s.PriorityGroups) == 0, field("PriorityGroups"), s.PriorityGroups, "none")
	n := s.MaxAckPending
	switch {
	case c.Order == queue.Total:
		l.Check(n == 1, field("MaxAckPending"), n, "1, as Order is total")
	case n == 1:
		l.Add(field("MaxAckPending"), n, "more than 1, or Config.Order total")
	case n > 0 && c.Concurrency > n:
		l.Add(field("MaxAckPending"), n, fmt.Sprintf("at least Concurrency, %d", c.Concurrency))
	case n > 0 && (c.Outstanding < 0 || n < c.Outstanding):
		l.Add(field("MaxAckPending"), n, fmt.Sprintf("%d, or Config.Outstanding to say what it is", c.Outstanding))
	}
}

func (p queueState) deadProblems(c Config, l *problem.List) {
	what := "stream " + c.DeadStream
	if p.dead == nil {
		l.Add(what, "missing", "a stream for dead letters with the subject "+c.DeadSubject)
		return
	}
	s := p.dead.Config
	field := func(name string) string { return what + ": " + name }
	has(l, field("Subjects"), s.Subjects, c.DeadSubject)
	l.Check(s.Retention == jetstream.LimitsPolicy, field("Retention"), s.Retention, "Limits: dead letters are kept until they are removed")
	l.Check(s.Discard == jetstream.DiscardNew || s.MaxMsgs <= 0 && s.MaxBytes <= 0, field("Discard"), s.Discard, "New, or no MaxMsgs and MaxBytes: the server drops the oldest dead letters for new ones")
	l.Check(s.MaxMsgsPerSubject <= 0, field("MaxMsgsPerSubject"), s.MaxMsgsPerSubject, "no limit: the server drops dead letters for others")
	l.Check(s.Duplicates >= c.Duplicates, field("Duplicates"), s.Duplicates, "at least "+c.Duplicates.String())
	if p.stream != nil && s.MaxMsgSize > 0 {
		from := p.stream.Config.MaxMsgSize
		l.Check(from > 0 && s.MaxMsgSize >= from+queue.MaxEnvelope, field("MaxMsgSize"), s.MaxMsgSize, fmt.Sprintf("%d more than that of %s (%d), or no limit", queue.MaxEnvelope, c.Stream, from))
	}
	l.Check(!s.NoAck, field("NoAck"), s.NoAck, "false")
	l.Check(!s.Sealed, field("Sealed"), s.Sealed, "false")
	l.Check(!s.DenyDelete, field("DenyDelete"), s.DenyDelete, "false: redriven letters are deleted")
}

func (p queueState) advisoryProblems(c Config, l *problem.List) {
	what := "stream " + c.AdvisoryStream
	if p.advisories == nil {
		l.Add(what, "missing", "a stream for the server's advisories, with the subjects "+c.exceeded()+" and "+c.terminated()+" (or a negative Config.MaxDeliver)")
		return
	}
	for _, subject := range []string{c.exceeded(), c.terminated()} {
		has(l, what+": Subjects", p.advisories.Config.Subjects, subject)
	}
	if p.reaper == nil {
		l.Add("consumer "+c.reaper()+" of "+c.AdvisoryStream, "missing", "a durable pull consumer of "+c.exceeded()+" and "+c.terminated())
		return
	}
	s := p.reaper.Config
	field := func(name string) string { return "consumer " + c.reaper() + " of " + c.AdvisoryStream + ": " + name }
	filters := slices.Clone(s.FilterSubjects)
	if s.FilterSubject != "" {
		filters = append(filters, s.FilterSubject)
	}
	for _, subject := range []string{c.exceeded(), c.terminated()} {
		if len(filters) > 0 {
			has(l, field("FilterSubjects"), filters, subject)
		}
	}
	l.Check(s.DeliverSubject == "", field("DeliverSubject"), s.DeliverSubject, "none: a pull consumer")
	l.Check(s.AckPolicy == jetstream.AckExplicitPolicy, field("AckPolicy"), s.AckPolicy, "explicit")
	l.Check(s.MaxDeliver <= 0, field("MaxDeliver"), s.MaxDeliver, "no limit")
	l.Check(!s.HeadersOnly, field("HeadersOnly"), s.HeadersOnly, "false")
}

// has checks that one of the filters covers subject.
func has(l *problem.List, field string, filters []string, subject string) {
	ok := slices.ContainsFunc(filters, func(f string) bool { return covers(f, subject) })
	l.Check(ok, field, strings.Join(filters, " "), "one that has "+subject)
}
