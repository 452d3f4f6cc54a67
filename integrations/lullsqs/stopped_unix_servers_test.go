//go:build servers && unix

package lullsqs

import (
	"fmt"
	"math"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/queue"
)

// Four equal letters are inspected and then redriven, and meanwhile SQS stands still for some seconds, for longer than a
// lease. Every letter is moved, or an error says that the reading was cut short. (A receive that nobody waited for any
// more takes letters out when SQS goes on.)
func TestRule24SQSStandsStill(t *testing.T) {
	t.Parallel()
	const all = 4
	for i, when := range []struct {
		inspected int // when so many letters are inspected
		after     time.Duration
		still     time.Duration
	}{
		{1, 0, 2500 * time.Millisecond},
		{all, time.Second, 3500 * time.Millisecond}, // in the polls after the last letter
		{all, 2 * time.Second, 3 * time.Second},     // when the letters are given back
		{0, 20 * time.Millisecond, 4 * time.Second}, // in the redrive
	} {
		t.Run(fmt.Sprint(when), func(t *testing.T) {
			t.Parallel()
			e := emulators.need(t, fmt.Sprint("stands still ", i))
			c := e.client()
			config := must.Have(Declare(t.Context(), c, Topology{Queue: newName(t, false)}))
			q := must.Have(New(c, config))
			for range all {
				must.Have(c.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &config.DeadLetters, MessageBody: aws.String("alike")}))
			}
			going := make(chan error)
			stop := func() {
				time.Sleep(when.after)
				err := e.cmd.Process.Signal(syscall.SIGSTOP)
				time.Sleep(when.still)
				e.cmd.Process.Signal(syscall.SIGCONT)
				going <- err
			}
			if when.inspected == 0 {
				go stop()
			}
			read := func() queue.DeadLetters {
				return must.Have(q.Letters(queue.ScanConfig{Lease: 2 * time.Second}))
			}
			n := 0
			p, err := queue.Inspect(t.Context(), read(), queue.Filter{}, func(*queue.Letter) (bool, error) {
				if n++; n == when.inspected {
					go stop()
				}
				return true, nil
			})
			if err == nil && p.Seen != all {
				t.Errorf("Inspect: %v, and no error", p)
			}
			inspected := err
			p, err = queue.Redrive(t.Context(), read(), q, queue.RedriveConfig{Rate: math.Inf(1)}, nil)
			if inspected == nil && err == nil && p.Moved != all {
				t.Errorf("Redrive: %v, and no error", p)
			}
			t.Log(p, inspected, err)
			must.Succeed(<-going)
		})
	}
}
