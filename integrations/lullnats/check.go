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
	stream := func(name string) *jetstream.StreamInfo {
		if err != nil {
			return nil
		}
		var s jetstream.Stream
		if s, err = k.stream(ctx, name); err == nil {
			return s.CachedInfo()
		}
		if absent(err) {
			err = nil
		}
		return nil
	}
	consumer := func(stream *jetstream.StreamInfo, name string) (info *jetstream.ConsumerInfo) {
		if err != nil || stream == nil {
			return nil
		}
		// Package jetstream does not return push consumers.
		of := stream.Config.Name
		failed := k.ask(ctx, "CONSUMER.INFO."+of+"."+name, struct{}{}, &info)
		if failed == nil {
			return info
		}
		if !absent(failed) {
			err = found("consumer "+name+" of "+of, failed)
		}
		return nil
	}
	p.stream = stream(c.Stream)
	p.consumer = consumer(p.stream, c.Consumer)
	p.dead = stream(c.DeadLetters)
	if c.reaps() {
		p.advisories = stream(c.AdvisoryStream)
		p.reaper = consumer(p.advisories, c.reaper())
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
	if k, c, err = connect(js, c); err == nil {
		p, err = k.look(ctx, c)
	}
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

// refusal returns nil if the server could not be asked while ctx is alive, else err.
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

type checkedPart struct {
	*problem.List
	what string
}

func (x checkedPart) check(ok bool, field string, value any, allowed string) {
	x.Check(ok, x.what+": "+field, value, allowed)
}

// checkSubject checks that one of the filters covers subject.
func (x checkedPart) checkSubject(field string, filters []string, subject string) {
	ok := slices.ContainsFunc(filters, func(f string) bool { return matchesAll(f, subject) })
	x.check(ok, field, strings.Join(filters, " "), "one that has "+subject)
}

// checkLimits checks that a stream keeps what it is given.
func (x checkedPart) checkLimits(s jetstream.StreamConfig, c Config, what, others string) {
	x.check(s.Discard == jetstream.DiscardNew || s.MaxMsgs <= 0 && s.MaxBytes <= 0, "Discard", s.Discard, "New, or no MaxMsgs and MaxBytes: the server drops the oldest "+what+" for new ones")
	x.check(s.MaxMsgsPerSubject <= 0, "MaxMsgsPerSubject", s.MaxMsgsPerSubject, "no limit: the server drops "+what+" for others"+others)
	x.check(s.Duplicates >= c.Duplicates, "Duplicates", s.Duplicates, "at least "+c.Duplicates.String())
}

// checkWritable checks that a stream answers, and takes what is published.
func (x checkedPart) checkWritable(s jetstream.StreamConfig) {
	x.check(!s.NoAck, "NoAck", s.NoAck, "false")
	x.check(!s.Sealed, "Sealed", s.Sealed, "false")
}

// filters returns the subjects that a consumer gets.
func filters(s jetstream.ConsumerConfig) []string {
	if s.FilterSubject != "" {
		return append(slices.Clone(s.FilterSubjects), s.FilterSubject)
	}
	if len(s.FilterSubjects) == 0 {
		return []string{">"}
	}
	return s.FilterSubjects
}

func (p queueState) streamProblems(c Config, l *problem.List) {
	x := checkedPart{l, "stream " + c.Stream}
	if p.stream == nil {
		l.Add(x.what, "missing", "a stream with the subject "+c.Subject)
		return
	}
	s := p.stream.Config
	x.checkSubject("Subjects", s.Subjects, c.Subject)
	if c.Schedules {
		x.check(s.Retention == jetstream.WorkQueuePolicy, "Retention", s.Retention, "WorkQueue, as other consumers would get what is put off")
		x.check(s.AllowMsgSchedules, "AllowMsgSchedules", s.AllowMsgSchedules, "true (from server 2.12 on; this one is "+p.version+")")
		x.checkSubject("Subjects", s.Subjects, c.LaterSubject+".>")
	}
	if c.MaxAge == 0 {
		x.check(s.MaxAge == 0, "MaxAge", s.MaxAge, "0: the server drops what is older, dead letter or not")
	} else {
		x.check(s.MaxAge == 0 || s.MaxAge >= c.MaxAge, "MaxAge", s.MaxAge, "at least "+c.MaxAge.String()+", or 0")
	}
	if worst := p.worst(c); c.MaxAge > 0 && s.MaxAge > 0 && s.MaxAge < worst {
		want := "at least " + worst.String() + ", the longest that a message takes under the policy (queue.Config.WorstCase), or 0"
		if worst == math.MaxInt64 {
			want = "0, as nothing bounds how long a message takes under the policy (queue.Config.WorstCase)"
		}
		x.check(false, "MaxAge", s.MaxAge, want)
	}
	x.checkLimits(s, c, "messages", " with their subject")
	x.checkWritable(s)
	x.check(c.Replicas == 0 || s.Replicas == c.Replicas, "Replicas", s.Replicas, fmt.Sprint(c.Replicas))
}

// worst returns the longest that a message takes under the policy.
func (p queueState) worst(c Config) time.Duration {
	lease := c.ackWait()
	if p.consumer != nil && p.consumer.Config.AckWait > 0 {
		lease = p.consumer.Config.AckWait
	}
	return queue.Config{Lease: lease}.WorstCase(c.Policy, queue.Capabilities{MaxDelay: MaxDelay, Leases: true, Extends: true})
}

func (p queueState) consumerProblems(c Config, l *problem.List) {
	x := checkedPart{l, "consumer " + c.Consumer + " of " + c.Stream}
	if p.stream == nil {
		return // then the consumer does not exist either
	}
	if p.consumer == nil {
		l.Add(x.what, "missing", "a durable pull consumer with explicit acknowledgements")
		return
	}
	s := p.consumer.Config
	x.checkSubject("FilterSubject", filters(s), c.Subject)
	if c.Schedules {
		for _, f := range filters(s) {
			x.check(!matchesAll(f, c.LaterSubject+".x"), "FilterSubject", f, "none that has "+c.LaterSubject+".>, where messages wait")
		}
	}
	x.check(s.Durable != "" && s.InactiveThreshold == 0, "InactiveThreshold", s.InactiveThreshold, "0, of a durable consumer: the server deletes it with all that it knows")
	x.checkPull(s)
	x.check(len(s.BackOff) == 0, "BackOff", s.BackOff, "none: its first time is the lease instead of AckWait, and it is not heeded when a message fails")
	if len(s.BackOff) == 0 {
		if c.Lease > 0 {
			x.check(s.AckWait == c.ackWait(), "AckWait", s.AckWait, c.ackWait().String()+", which is Lease and a second")
		} else {
			x.check(s.AckWait >= restartError+minLease, "AckWait", s.AckWait, "at least "+(restartError+minLease).String()+", which is a lease and a second")
		}
	}
	if n := s.MaxDeliver; c.reaps() {
		x.check(n == c.DeliveryLimit, "MaxDeliver", n, fmt.Sprintf("%d, or Config.DeliveryLimit to say what it is", c.DeliveryLimit))
	} else {
		x.check(n <= 0, "MaxDeliver", n, "no limit, or Config.DeliveryLimit to say what it is")
	}
	x.check(!s.HeadersOnly, "HeadersOnly", s.HeadersOnly, "false")
	x.check(s.ReplayPolicy == jetstream.ReplayInstantPolicy, "ReplayPolicy", s.ReplayPolicy, "instant")
	x.check(len(s.PriorityGroups) == 0, "PriorityGroups", s.PriorityGroups, "none")
	n := s.MaxAckPending
	switch {
	case c.Order == queue.Total:
		x.check(n == 1, "MaxAckPending", n, "1, as Order is total")
	case n == 1:
		x.check(false, "MaxAckPending", n, "more than 1, or Config.Order total")
	case n > 0 && c.Concurrency > n:
		x.check(false, "MaxAckPending", n, fmt.Sprintf("at least Concurrency, %d", c.Concurrency))
	case n > 0 && (c.Outstanding < 0 || n < c.Outstanding):
		x.check(false, "MaxAckPending", n, fmt.Sprintf("%d, or Config.Outstanding to say what it is", c.Outstanding))
	}
}

func (p queueState) deadProblems(c Config, l *problem.List) {
	x := checkedPart{l, "stream " + c.DeadLetters}
	if p.dead == nil {
		l.Add(x.what, "missing", "a stream for dead letters with the subject "+c.DeadLetterSubject)
		return
	}
	s := p.dead.Config
	x.checkSubject("Subjects", s.Subjects, c.DeadLetterSubject)
	x.check(s.Retention == jetstream.LimitsPolicy, "Retention", s.Retention, "Limits: dead letters are kept until they are removed")
	x.checkLimits(s, c, "dead letters", "")
	if p.stream != nil && s.MaxMsgSize > 0 {
		from := p.stream.Config.MaxMsgSize
		x.check(from > 0 && s.MaxMsgSize >= from+queue.MaxEnvelope, "MaxMsgSize", s.MaxMsgSize, fmt.Sprintf("%d more than that of %s (%d), or no limit", queue.MaxEnvelope, c.Stream, from))
	}
	x.checkWritable(s)
	x.check(!s.DenyDelete, "DenyDelete", s.DenyDelete, "false: redriven letters are deleted")
}

func (p queueState) advisoryProblems(c Config, l *problem.List) {
	x, subjects := checkedPart{l, "stream " + c.AdvisoryStream}, c.advisories()
	if p.advisories == nil {
		l.Add(x.what, "missing", "a stream for the server's advisories, with the subjects "+strings.Join(subjects, " and ")+" (or a negative Config.DeliveryLimit)")
		return
	}
	for _, subject := range subjects {
		x.checkSubject("Subjects", p.advisories.Config.Subjects, subject)
	}
	x.what = "consumer " + c.reaper() + " of " + c.AdvisoryStream
	if p.reaper == nil {
		l.Add(x.what, "missing", "a durable pull consumer of "+strings.Join(subjects, " and "))
		return
	}
	s := p.reaper.Config
	for _, subject := range subjects {
		x.checkSubject("FilterSubjects", filters(s), subject)
	}
	x.checkPull(s)
	x.check(s.MaxDeliver <= 0, "MaxDeliver", s.MaxDeliver, "no limit")
	x.check(!s.HeadersOnly, "HeadersOnly", s.HeadersOnly, "false")
}

// checkPull checks that a consumer hands out what is asked for, and awaits acknowledgements.
func (x checkedPart) checkPull(s jetstream.ConsumerConfig) {
	x.check(s.DeliverSubject == "", "DeliverSubject", s.DeliverSubject, "none: a pull consumer")
	x.check(s.AckPolicy == jetstream.AckExplicitPolicy, "AckPolicy", s.AckPolicy, "explicit")
}
