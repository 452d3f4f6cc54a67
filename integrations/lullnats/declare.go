package lullnats

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const minLease = 100 * time.Millisecond

// Declare makes everything that is missing of the queue that c names: the stream (a work queue),
// its consumer, the stream for dead letters, and that for advisories with the Reaper's consumer. It
// does not change what exists. If that is not as it must be, Declare returns the error of Check. It
// can be called again, and by several processes at once.
func Declare(ctx context.Context, js jetstream.JetStream, c Config) error {
	k, p, c, err := survey(ctx, js, c)
	if err != nil {
		return err
	}
	// A problem with an existing object may be the reason why another cannot be made.
	failed := func(what string, err error) error {
		err = fmt.Errorf("lullnats: declaring the %s: %w", what, err)
		if p, e := k.look(ctx, c); e == nil {
			if e := p.problems(c).Err(); e != nil {
				return fmt.Errorf("%w\n%w", err, e)
			}
		}
		return err
	}
	// Both make what is not there, unless something has failed.
	stream := func(there *jetstream.StreamInfo, name string, s jetstream.StreamConfig) {
		if err != nil || there != nil {
			return
		}
		s.Name, s.Replicas = name, max(c.Replicas, 1)
		if c.Memory {
			s.Storage = jetstream.MemoryStorage
		}
		if _, e := js.CreateStream(ctx, s); e != nil && !isAPIError(e, jetstream.JSErrCodeStreamNameInUse) {
			err = failed("stream "+name, e)
		}
	}
	consumer := func(there *jetstream.ConsumerInfo, of string, s jetstream.ConsumerConfig) {
		if err != nil || there != nil {
			return
		}
		if _, e := js.CreateConsumer(ctx, of, s); e != nil && !isAPIError(e, jetstream.JSErrCodeConsumerAlreadyExists, jetstream.JSErrCodeConsumerExists, jetstream.JSErrCodeConsumerNameExists) {
			err = failed("consumer "+s.Durable+" of "+of, e)
		}
	}
	stream(p.dead, c.DeadLetters, jetstream.StreamConfig{Subjects: []string{c.DeadLetterSubject}, Duplicates: c.Duplicates})
	if c.reaps() { // first: the server sends an advisory only to those who already listen
		subjects := c.advisories()
		stream(p.advisories, c.AdvisoryStream, jetstream.StreamConfig{Subjects: subjects, Retention: jetstream.WorkQueuePolicy})
		consumer(p.reaper, c.AdvisoryStream, jetstream.ConsumerConfig{
			Durable: c.reaper(), FilterSubjects: subjects,
			AckPolicy: jetstream.AckExplicitPolicy, AckWait: 10 * time.Second, MaxDeliver: -1, MaxAckPending: -1,
		})
	}
	s := jetstream.StreamConfig{Subjects: []string{c.Subject}, Retention: jetstream.WorkQueuePolicy, Duplicates: c.Duplicates, MaxAge: c.MaxAge}
	if c.Schedules {
		s.Subjects = append(s.Subjects, c.LaterSubject+".>")
		s.AllowMsgSchedules = true
	}
	stream(p.stream, c.Stream, s)
	consumer(p.consumer, c.Stream, jetstream.ConsumerConfig{
		Durable: c.Consumer, FilterSubject: c.Subject, AckPolicy: jetstream.AckExplicitPolicy,
		AckWait: c.ackWait(), MaxDeliver: c.DeliveryLimit, MaxAckPending: c.Outstanding,
	})
	if err != nil {
		return err
	}
	return Check(ctx, js, c)
}
