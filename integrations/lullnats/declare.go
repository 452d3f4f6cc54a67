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
	stream := func(name string, s jetstream.StreamConfig) error {
		s.Name, s.Replicas = name, max(c.Replicas, 1)
		if c.Memory {
			s.Storage = jetstream.MemoryStorage
		}
		if _, err := js.CreateStream(ctx, s); err != nil && !isAPIError(err, jetstream.JSErrCodeStreamNameInUse) {
			return failed("stream "+name, err)
		}
		return nil
	}
	consumer := func(of string, s jetstream.ConsumerConfig) error {
		if _, err := js.CreateConsumer(ctx, of, s); err != nil && !isAPIError(err, jetstream.JSErrCodeConsumerAlreadyExists, jetstream.JSErrCodeConsumerExists, jetstream.JSErrCodeConsumerNameExists) {
			return failed("consumer "+s.Durable+" of "+of, err)
		}
		return nil
	}
	if p.dead == nil {
		if err := stream(c.DeadLetters, jetstream.StreamConfig{Subjects: []string{c.DeadLetterSubject}, Duplicates: c.Duplicates}); err != nil {
			return err
		}
	}
	// The advisories come first: the server sends an advisory only to those who already listen.
	if c.reaps() {
		if p.advisories == nil {
			s := jetstream.StreamConfig{Subjects: []string{c.exceeded(), c.terminated()}, Retention: jetstream.WorkQueuePolicy}
			if err := stream(c.AdvisoryStream, s); err != nil {
				return err
			}
		}
		if p.reaper == nil {
			s := jetstream.ConsumerConfig{
				Durable: c.reaper(), FilterSubjects: []string{c.exceeded(), c.terminated()},
				AckPolicy: jetstream.AckExplicitPolicy, AckWait: 10 * time.Second, MaxDeliver: -1, MaxAckPending: -1,
			}
			if err := consumer(c.AdvisoryStream, s); err != nil {
				return err
			}
		}
	}
	if p.stream == nil {
		s := jetstream.StreamConfig{
			Subjects: []string{c.Subject}, Retention: jetstream.WorkQueuePolicy,
			Duplicates: c.Duplicates, MaxAge: c.MaxAge,
		}
		if c.Schedules {
			s.Subjects = append(s.Subjects, c.LaterSubject+".>")
			s.AllowMsgSchedules = true
		}
		if err := stream(c.Stream, s); err != nil {
			return err
		}
	}
	if p.consumer == nil {
		s := jetstream.ConsumerConfig{
			Durable: c.Consumer, FilterSubject: c.Subject, AckPolicy: jetstream.AckExplicitPolicy,
			AckWait: c.ackWait(), MaxDeliver: c.DeliveryLimit, MaxAckPending: c.Outstanding,
		}
		if err := consumer(c.Stream, s); err != nil {
			return err
		}
	}
	return Check(ctx, js, c)
}
