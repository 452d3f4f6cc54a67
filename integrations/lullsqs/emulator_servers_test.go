//go:build servers

package lullsqs

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/queue"
)

// The emulator's answers where SQS answers differently, or not at all. If they change, check the
// fake and the assumptions of this package.
func TestWhatTheEmulatorDoes(t *testing.T) {
	t.Parallel()
	c := emulators.need(t, "kept").client()
	config, err := Declare(t.Context(), c, Topology{Queue: newName(t, false)})
	must(t, err)
	config.Wait = time.Second
	q, err := New(c, config)
	must(t, err)
	send(t, q, "hello")
	d := one(t, q, time.Second)
	r := d.Receipt.(*receipt)
	change := func(seconds int32) error {
		_, err := c.ChangeMessageVisibility(t.Context(), &sqs.ChangeMessageVisibilityInput{QueueUrl: &config.Queue, ReceiptHandle: &r.handle, VisibilityTimeout: seconds})
		return err
	}
	if err := change(43200); err != nil { // SQS: beyond the limit, as some of the 12 hours have passed
		t.Errorf("12 hours: %v", err)
	}
	if err := change(43201); code(err) != "InvalidParameterValue" {
		t.Errorf("more: %v", err)
	}
	must(t, change(0))
	if err := change(1); !isLost(err) { // SQS: nothing
		t.Errorf("a handle of what is visible: %v", err)
	}
	if d.Group != "" { // SQS: "g"
		t.Errorf("the group of a standard queue is %q", d.Group)
	}
	send(t, q, "")
	if _, err := c.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &config.Queue, MessageBody: aws.String("x"), DelaySeconds: 901}); err != nil { // SQS: an error
		t.Errorf("a delay of 901 s: %v", err)
	}
	gone := config
	gone.Queue = strings.Replace(config.Queue, "/What", "/No", 1) + "-gone"
	q, err = New(c, gone)
	must(t, err)
	_, err = q.Receive(t.Context(), queue.Want{Max: 1, Lease: time.Minute})
	if v := lull.Classify(err); v.Kind != lull.KindPermanent {
		t.Errorf("no such queue: %v", err)
	}
}
