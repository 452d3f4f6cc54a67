package lullsqs

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/memnet"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/queue"
)

// The SDK has the methods.
var (
	_ API          = (*sqs.Client)(nil)
	_ Admin        = (*sqs.Client)(nil)
	_ queue.Broker = (*Broker)(nil)
	_ queue.Sender = (*Broker)(nil)
)

// server is an SQS with the given answers, to test how the SDK handles them.
func server(t *testing.T, answer func(w http.ResponseWriter, op, body string)) *Broker {
	t.Helper()
	s := memnet.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		answer(w, strings.TrimPrefix(r.Header.Get("X-Amz-Target"), "AmazonSQS."), string(body))
	}))
	client := clientOf(s.URL, func(o *sqs.Options) { o.RetryMaxAttempts, o.HTTPClient = 2, s.Client() })
	t.Cleanup(s.Client().CloseIdleConnections)
	return must.Have(New(client, Config{Queue: s.URL + "/0/orders.fifo", DeadLetters: s.URL + "/0/orders-dead.fifo", Wait: time.Second}))
}

// One layer retries: a call is one request, whatever its outcome, and however the client is set up.
func TestTheSDKDoesNotRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var requests atomic.Int64
		for code, kind := range map[int]engine.VerdictKind{500: lull.KindTransient, 503: lull.KindTransient, 429: lull.KindRateLimited} {
			q := server(t, func(w http.ResponseWriter, op, body string) {
				requests.Add(1)
				w.WriteHeader(code)
			})
			for what, call := range map[string]func() error{
				"Send": func() error { return q.Send(t.Context(), queue.Outgoing{Body: []byte("x")}) },
				"Ack": func() error {
					return q.Settle(t.Context(), out(), queue.Settlement{Outcome: queue.Ack})
				},
				"Retry": func() error {
					return q.Settle(t.Context(), out(), queue.Settlement{Outcome: queue.Retry})
				},
				"Receive": func() error {
					_, err := q.Receive(t.Context(), queue.Want{Max: 1, Lease: time.Minute})
					return err
				},
			} {
				requests.Store(0)
				err := call()
				check.Equal(t, requests.Load(), 1, "%s: requests", what)
				check.Equal(t, lull.Classify(err).Kind, kind, "%s, %d: %v", what, code, err)
			}
			requests.Store(0)
			q.client.(*sqs.Client).SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &q.config.Queue, MessageBody: aws.String("x")})
			if n := requests.Load(); n != 2 && code >= 500 {
				t.Errorf("the SDK by itself makes %d requests: is the test still one?", n)
			}
		}
	})
}

// A connection that breaks in the midst of an answer counts as no answer: the call is worth another
// try, and a FIFO queue is asked for the same messages again.
func TestAnswersThatBreakOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ids := []string{}
		q := server(t, func(w http.ResponseWriter, op, body string) {
			var in struct{ ReceiveRequestAttemptId string }
			json.Unmarshal([]byte(body), &in)
			ids = append(ids, in.ReceiveRequestAttemptId)
			request := len(ids) // the next comes as soon as this one is flushed
			w.Header().Set("Content-Length", "1000")
			io.WriteString(w, `{"Messages":[{"Body":"hel`)
			w.(http.Flusher).Flush()
			if request < 3 {
				panic(http.ErrAbortHandler)
			}
			io.WriteString(w, `lo"}]`+strings.Repeat(" ", 1000-31)+"}")
		})
		for n := range 2 {
			_, err := q.Receive(t.Context(), queue.Want{Max: 1, Lease: time.Minute})
			check.Equal(t, lull.Classify(err).Kind, lull.KindTransient, "receive %d: %v", n, err)
		}
		if got, err := q.Receive(t.Context(), queue.Want{Max: 1, Lease: time.Minute}); err != nil || len(got) != 1 || string(got[0].Body) != "hello" {
			t.Errorf("%v, %v", got, err)
		}
		if len(ids) != 3 || ids[0] == "" || ids[1] != ids[0] || ids[2] != ids[0] {
			t.Errorf("attempt ids %q", ids)
		}
	})
}

// out returns a delivery that is held.
func out() *queue.Delivery {
	return &queue.Delivery{ID: "x", Attempt: 1, Receipt: &receipt{handle: "h", since: time.Now(), lease: time.Now().Add(time.Hour), payload: payload{text: "x"}}}
}

// Errors as they come over the wire.
func TestErrorsOverTheWire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var typ, query, message string
		q := server(t, func(w http.ResponseWriter, op, body string) {
			if query != "" {
				w.Header().Set("X-Amzn-Query-Error", query+";Sender")
			}
			w.WriteHeader(400)
			io.WriteString(w, `{"__type":"`+typ+`","message":"`+message+`"}`)
		})
		for _, c := range []struct {
			typ, query, message string
			lost                bool
			kind                engine.VerdictKind
		}{
			{"com.amazonaws.sqs#MessageNotInflight", "AWS.SimpleQueueService.MessageNotInflight", "", true, 0},
			{"com.amazonaws.sqs#ReceiptHandleIsInvalid", "ReceiptHandleIsInvalid", "The input receipt handle is invalid.", true, 0},
			{"com.amazon.coral.service#InvalidParameterValueException", "InvalidParameterValue", "Value AQ for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired.", true, 0},
			{"com.amazonaws.sqs#InvalidParameterValue", "", "Value AQ for parameter ReceiptHandle is invalid. Reason: Message does not exist or is not available for visibility timeout change.", true, 0},
			{"com.amazonaws.sqs#QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue;Sender", "", false, lull.KindPermanent},
			{"com.amazonaws.sqs#QueueDoesNotExist", "", "", false, lull.KindPermanent},
			{"com.amazonaws.sqs#RequestThrottled", "RequestThrottled", "", false, lull.KindRateLimited},
			{"com.amazon.coral.service#AccessDeniedException", "AccessDenied", "", false, lull.KindPermanent},
		} {
			typ, query, message = c.typ, c.query, c.message
			err := q.Settle(t.Context(), out(), queue.Settlement{Outcome: queue.Retry})
			v := lull.Classify(err)
			if errors.Is(err, queue.ErrLost) != c.lost || v.Kind != c.kind {
				t.Errorf("%s: %v (%v)", c.typ, err, v.Kind)
			}
		}
	})
}

// A call that is cut off returns the context's error.
func TestCallsThatAreCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		q := server(t, func(w http.ResponseWriter, op, body string) { <-hang })
		defer close(hang)
		for what, call := range map[string]func(context.Context) error{
			"Send": func(ctx context.Context) error { return q.Send(ctx, queue.Outgoing{Body: []byte("x")}) },
			"Settle": func(ctx context.Context) error {
				return q.Settle(ctx, out(), queue.Settlement{Outcome: queue.Ack})
			},
			"Extend": func(ctx context.Context) error {
				_, err := q.Extend(ctx, out(), time.Minute)
				return err
			},
			"Receive": func(ctx context.Context) error {
				_, err := q.Receive(ctx, queue.Want{Max: 1, Lease: time.Minute})
				return err
			},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			began := time.Now()
			err := call(ctx)
			cancel()
			want := time.Second
			if what == "Receive" {
				want += 2 * time.Second // SQS would hand out messages to nobody
			}
			if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took != want {
				t.Errorf("%s: %v after %v, want %v", what, err, took, want)
			}
		}
	})
}
