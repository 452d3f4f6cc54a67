package lullsqs

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// fake is SQS as documented, in this process, on the clock of package time. It is for rules that
// the emulator does not enforce:
//
//   - A change of visibility with a handle that is no longer valid changes nothing, and returns no
//     error (localstack/localstack#9632, tested against AWS). For a message that is gone it is an
//     error, and so is one by which a message would be out for more than 12 hours after its
//     receive.
//   - The deletion with an old handle returns no error on a standard queue, and is an error on a
//     FIFO queue.
//   - A receive from a FIFO queue returns all messages of one group that fit, and is recognised by
//     its attempt id.
//   - Standard queues keep groups. Empty attributes and bodies are refused, and more than ten
//     attributes.
//   - There may be too many messages in flight.
type fake struct {
	mu      sync.Mutex
	queues  map[string]*fakeQueue // by URL
	limit   int                   // of messages in flight. 0: none
	changed chan struct{}
	last    int
	calls   []string
	failing func(op string, n int) error // called before the n-th call of that name, from 1, is carried out
	cut     func(op string, n int) error // and after it
	counts  map[string]int
}

type fakeQueue struct {
	f        *fake
	name     string
	fifo     bool
	attrs    map[string]string
	messages []*fakeMessage
	sent     map[string]time.Time // deduplication ids
	attempts map[string]*fakeAttempt
}

type fakeMessage struct {
	id, body, group string
	attrs           map[string]types.MessageAttributeValue
	system          map[string]types.MessageSystemAttributeValue
	sent            time.Time
	first           time.Time
	visible         time.Time // when
	received        time.Time
	count           int
	handle          string
	source          string
}

type fakeAttempt struct {
	at       time.Time
	messages []*fakeMessage
	handles  []string
}

func newFake() *fake {
	return &fake{queues: map[string]*fakeQueue{}, changed: make(chan struct{}), counts: map[string]int{}}
}

const fakeURL = "https://sqs.eu-central-1.amazonaws.com/123456789012/"

// apiError returns an error in the SDK's form.
func apiError(status int, code, message string, headers ...string) error {
	h := http.Header{}
	for i := 0; i+1 < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	fault := smithy.FaultClient
	if status >= 500 {
		fault = smithy.FaultServer
	}
	return &smithy.OperationError{ServiceID: "SQS", OperationName: "Any", Err: &smithyhttp.ResponseError{
		Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status, Header: h}},
		Err:      &smithy.GenericAPIError{Code: code, Message: message, Fault: fault},
	}}
}

func invalid(format string, a ...any) error {
	return apiError(400, "InvalidParameterValue", fmt.Sprintf(format, a...))
}

// call records the call, and fails if the test demands it. It is called with f.mu held, like the
// other methods.
func (f *fake) call(ctx context.Context, op string) (n int, err error) {
	f.counts[op]++
	n = f.counts[op]
	f.calls = append(f.calls, op)
	if err := ctx.Err(); err != nil {
		return n, &aws.RequestCanceledError{Err: err}
	}
	if f.failing != nil {
		err = f.failing(op, n)
	}
	return n, err
}

func (f *fake) after(op string, n int) error {
	if f.cut == nil {
		return nil
	}
	return f.cut(op, n)
}

func (f *fake) wake() {
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *fake) queue(url *string) (*fakeQueue, error) {
	if q := f.queues[aws.ToString(url)]; q != nil {
		return q, nil
	}
	return nil, &types.QueueDoesNotExist{Message: aws.String("The specified queue does not exist.")}
}

// at carries out a call that concerns a queue.
func at[T any](ctx context.Context, f *fake, op string, url *string, do func(q *fakeQueue) (T, error)) (*T, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.call(ctx, op)
	if err != nil {
		return nil, err
	}
	q, err := f.queue(url)
	if err != nil {
		return nil, err
	}
	out, err := do(q)
	if err != nil {
		return nil, err
	}
	return &out, f.after(op, n)
}

func (f *fake) SendMessage(ctx context.Context, in *sqs.SendMessageInput, _ ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	return at(ctx, f, "Send", in.QueueUrl, func(q *fakeQueue) (out sqs.SendMessageOutput, err error) {
		body := aws.ToString(in.MessageBody)
		switch most, _ := strconv.Atoi(q.attrs["MaximumMessageSize"]); {
		case body == "":
			return out, apiError(400, "MissingParameter", "The request must contain the parameter MessageBody.")
		case !isText(body):
			return out, &types.InvalidMessageContents{}
		case len(in.MessageAttributes) > 10:
			return out, invalid("Number of message attributes [%d] exceeds the allowed maximum [10].", len(in.MessageAttributes))
		case size(body, in.MessageAttributes) > most:
			return out, invalid("One or more parameters are invalid. Reason: Message must be shorter than %d bytes.", most)
		case q.fifo && (in.MessageGroupId == nil || in.MessageDeduplicationId == nil):
			return out, apiError(400, "MissingParameter", "The request must contain the parameter MessageGroupId.")
		case in.MessageGroupId != nil && !token.MatchString(*in.MessageGroupId):
			return out, invalid("MessageGroupId")
		case !q.fifo && in.MessageDeduplicationId != nil:
			return out, invalid("The request include parameter MessageDeduplicationId which is not valid for this queue type.")
		case in.DelaySeconds != 0 && (q.fifo || in.DelaySeconds > 900):
			return out, invalid("DelaySeconds")
		}
		for name, a := range in.MessageAttributes {
			if !isName(name) || a.DataType == nil || aws.ToString(a.StringValue) == "" && len(a.BinaryValue) == 0 || !isText(aws.ToString(a.StringValue)) {
				return out, invalid("Message (user) attribute '%s' must contain a non-empty value of type 'String'.", name)
			}
		}
		now := time.Now()
		f.last++
		m := &fakeMessage{
			id: fmt.Sprintf("message-%d", f.last), body: body, group: aws.ToString(in.MessageGroupId), attrs: in.MessageAttributes, system: in.MessageSystemAttributes,
			sent: now.Truncate(time.Millisecond), visible: now,
		}
		if q.fifo {
			if end, there := q.sent[*in.MessageDeduplicationId]; there && now.Before(end) {
				return sqs.SendMessageOutput{}, nil
			}
			q.sent[*in.MessageDeduplicationId] = now.Add(5 * time.Minute)
		}
		q.messages = append(q.messages, m)
		f.wake()
		return sqs.SendMessageOutput{MessageId: &m.id}, nil
	})
}

func (f *fake) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, _ ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	f.mu.Lock()
	n, err := f.call(ctx, "Receive")
	q, missing := f.queue(in.QueueUrl)
	f.mu.Unlock()
	switch {
	case err != nil:
		return nil, err
	case missing != nil:
		return nil, missing
	case in.MaxNumberOfMessages < 1 || in.MaxNumberOfMessages > 10, in.WaitTimeSeconds < 0 || in.WaitTimeSeconds > 20, in.VisibilityTimeout < 0 || in.VisibilityTimeout > 43200:
		return nil, invalid("%+v", in)
	case in.ReceiveRequestAttemptId != nil && !q.fifo:
		return nil, invalid("ReceiveRequestAttemptId")
	}
	end := time.Now().Add(time.Duration(in.WaitTimeSeconds) * time.Second)
	for {
		f.mu.Lock()
		got, next, err := q.take(in)
		changed := f.changed
		f.mu.Unlock()
		if err != nil {
			return nil, err
		}
		wait := time.Until(end)
		if len(got) > 0 || wait <= 0 {
			f.mu.Lock()
			defer f.mu.Unlock()
			return &sqs.ReceiveMessageOutput{Messages: got}, f.after("Receive", n)
		}
		if !next.IsZero() {
			wait = min(wait, time.Until(next))
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-changed:
		case <-ctx.Done():
			t.Stop()
			return nil, &aws.RequestCanceledError{Err: ctx.Err()}
		}
		t.Stop()
	}
}

func (q *fakeQueue) take(in *sqs.ReceiveMessageInput) (got []types.Message, next time.Time, err error) {
	now := time.Now()
	out := time.Duration(in.VisibilityTimeout) * time.Second
	if a := q.attempts[aws.ToString(in.ReceiveRequestAttemptId)]; a != nil && now.Before(a.at.Add(5*time.Minute)) {
		for i, m := range a.messages {
			if !slices.Contains(q.messages, m) || m.handle != a.handles[i] || !now.Before(m.visible) {
				return nil, next, invalid("ReceiveRequestAttemptId: messages have been modified")
			}
			m.visible = now.Add(out)
			got = append(got, m.message(in))
		}
		return got, next, nil
	}
	flying, blocked := 0, map[string]bool{}
	for _, m := range q.messages {
		if now.Before(m.visible) {
			flying++
			blocked[m.group] = true
		}
	}
	a := &fakeAttempt{at: now}
	for _, m := range slices.Clone(q.messages) {
		switch {
		case now.Before(m.visible):
			if next.IsZero() || m.visible.Before(next) {
				next = m.visible
			}
			continue
		case q.fifo && blocked[m.group], len(got) == int(in.MaxNumberOfMessages):
			continue
		case q.f.limit > 0 && flying >= q.f.limit:
			if len(got) == 0 {
				return nil, next, &types.OverLimit{}
			}
			return got, next, nil
		}
		m.count++
		if q.redrive(m) {
			continue
		}
		if m.first.IsZero() {
			m.first = now
		}
		q.f.last++
		m.handle, m.received, m.visible = fmt.Sprintf("%s/%d", m.id, q.f.last), now, now.Add(out)
		flying++
		got = append(got, m.message(in))
		a.messages, a.handles = append(a.messages, m), append(a.handles, m.handle)
	}
	if in.ReceiveRequestAttemptId != nil && len(got) > 0 {
		q.attempts[*in.ReceiveRequestAttemptId] = a
	}
	return got, next, nil
}

// redrive moves m to the dead letters if it was received too often.
func (q *fakeQueue) redrive(m *fakeMessage) bool {
	var p redrivePolicy
	if q.attrs["RedrivePolicy"] == "" || json.Unmarshal([]byte(q.attrs["RedrivePolicy"]), &p) != nil || m.count <= p.receives() {
		return false
	}
	for _, dead := range q.f.queues {
		if dead.attrs["QueueArn"] == p.Target {
			q.remove(m)
			m.source = q.attrs["QueueArn"]
			dead.messages = append(dead.messages, m)
			q.f.wake()
			return true
		}
	}
	return false
}

func (q *fakeQueue) remove(m *fakeMessage) {
	q.messages = slices.DeleteFunc(q.messages, func(x *fakeMessage) bool { return x == m })
}

func (m *fakeMessage) message(in *sqs.ReceiveMessageInput) types.Message {
	attrs := map[string]string{
		"ApproximateReceiveCount": strconv.Itoa(m.count), "ApproximateFirstReceiveTimestamp": strconv.FormatInt(m.first.UnixMilli(), 10),
		"SentTimestamp": strconv.FormatInt(m.sent.UnixMilli(), 10),
	}
	if m.group != "" {
		attrs["MessageGroupId"] = m.group
	}
	if m.source != "" && slices.Contains(in.MessageSystemAttributeNames, types.MessageSystemAttributeNameDeadLetterQueueSourceArn) {
		attrs["DeadLetterQueueSourceArn"] = m.source
	}
	if t, there := m.system["AWSTraceHeader"]; there {
		attrs["AWSTraceHeader"] = *t.StringValue
	}
	return types.Message{MessageId: aws.String(m.id), ReceiptHandle: aws.String(m.handle), Body: aws.String(m.body), Attributes: attrs, MessageAttributes: m.attrs}
}

// find returns the message of a handle, if it exists, and whether the handle is valid.
func (q *fakeQueue) find(handle *string) (m *fakeMessage, good bool) {
	id, _, _ := strings.Cut(aws.ToString(handle), "/")
	for _, m := range q.messages {
		if m.id == id {
			return m, m.handle == *handle && time.Now().Before(m.visible)
		}
	}
	return nil, false
}

func (f *fake) DeleteMessage(ctx context.Context, in *sqs.DeleteMessageInput, _ ...func(*sqs.Options)) (*sqs.DeleteMessageOutput, error) {
	return at(ctx, f, "Delete", in.QueueUrl, func(q *fakeQueue) (out sqs.DeleteMessageOutput, err error) {
		m, good := q.find(in.ReceiptHandle)
		switch {
		case m == nil:
		case !good && q.fifo:
			return out, invalid("Value %s for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired.", *in.ReceiptHandle)
		case m.handle == *in.ReceiptHandle:
			q.remove(m)
			f.wake()
		}
		return sqs.DeleteMessageOutput{}, nil
	})
}

func (f *fake) ChangeMessageVisibility(ctx context.Context, in *sqs.ChangeMessageVisibilityInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityOutput, error) {
	return at(ctx, f, "Change", in.QueueUrl, func(q *fakeQueue) (out sqs.ChangeMessageVisibilityOutput, err error) {
		m, good := q.find(in.ReceiptHandle)
		now := time.Now()
		until := now.Add(time.Duration(in.VisibilityTimeout) * time.Second)
		switch {
		case in.VisibilityTimeout < 0 || in.VisibilityTimeout > 43200:
			return out, invalid("Value %d for parameter VisibilityTimeout is invalid. Reason: Must be between 0 and 43200.", in.VisibilityTimeout)
		case m == nil:
			return out, invalid("Value %s for parameter ReceiptHandle is invalid. Reason: Message does not exist or is not available for visibility timeout change.", *in.ReceiptHandle)
		case !good:
		case until.After(m.received.Add(12 * time.Hour)):
			return out, invalid("Value %d for parameter VisibilityTimeout is invalid. Reason: Total VisibilityTimeout for the message is beyond the limit [43200 seconds]", in.VisibilityTimeout)
		default:
			m.visible = until
			f.wake()
		}
		return sqs.ChangeMessageVisibilityOutput{}, nil
	})
}

func (f *fake) GetQueueUrl(ctx context.Context, in *sqs.GetQueueUrlInput, _ ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, err := f.call(ctx, "Url"); err != nil {
		return nil, err
	}
	url := fakeURL + *in.QueueName
	if _, err := f.queue(&url); err != nil {
		return nil, err
	}
	return &sqs.GetQueueUrlOutput{QueueUrl: &url}, nil
}

func (f *fake) GetQueueAttributes(ctx context.Context, in *sqs.GetQueueAttributesInput, _ ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	return at(ctx, f, "Attributes", in.QueueUrl, func(q *fakeQueue) (out sqs.GetQueueAttributesOutput, err error) {
		attrs := map[string]string{"ApproximateNumberOfMessagesDelayed": "0"}
		maps.Copy(attrs, q.attrs)
		flying := 0
		for _, m := range q.messages {
			if time.Now().Before(m.visible) { //clock: it is called in bubbles
				flying++
			}
		}
		attrs["ApproximateNumberOfMessagesNotVisible"] = strconv.Itoa(flying)
		attrs["ApproximateNumberOfMessages"] = strconv.Itoa(len(q.messages) - flying)
		return sqs.GetQueueAttributesOutput{Attributes: attrs}, nil
	})
}

func (f *fake) CreateQueue(ctx context.Context, in *sqs.CreateQueueInput, _ ...func(*sqs.Options)) (*sqs.CreateQueueOutput, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, err := f.call(ctx, "Create"); err != nil {
		return nil, err
	}
	url := fakeURL + *in.QueueName
	q := f.queues[url]
	if q != nil {
		for name, value := range in.Attributes {
			if q.attrs[name] != value {
				return nil, &types.QueueNameExists{}
			}
		}
		return &sqs.CreateQueueOutput{QueueUrl: &url}, nil
	}
	q = &fakeQueue{f: f, name: *in.QueueName, fifo: in.Attributes["FifoQueue"] == "true", sent: map[string]time.Time{}, attempts: map[string]*fakeAttempt{}}
	if q.fifo != isFIFO(q.name) {
		return nil, invalid("The name of a FIFO queue must end with .fifo")
	}
	q.attrs = map[string]string{
		"QueueArn": "arn:aws:sqs:eu-central-1:123456789012:" + q.name, "VisibilityTimeout": "30", "DelaySeconds": "0", "MaximumMessageSize": "1048576",
		"MessageRetentionPeriod": "345600", "ReceiveMessageWaitTimeSeconds": "0",
	}
	maps.Copy(q.attrs, in.Attributes)
	f.queues[url] = q
	return &sqs.CreateQueueOutput{QueueUrl: &url}, nil
}

func (f *fake) SetQueueAttributes(ctx context.Context, in *sqs.SetQueueAttributesInput, _ ...func(*sqs.Options)) (*sqs.SetQueueAttributesOutput, error) {
	return at(ctx, f, "Set", in.QueueUrl, func(q *fakeQueue) (out sqs.SetQueueAttributesOutput, err error) {
		maps.Copy(q.attrs, in.Attributes)
		return sqs.SetQueueAttributesOutput{}, nil
	})
}
