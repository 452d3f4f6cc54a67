package lullaws_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/integrations/lullaws"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/memnet"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/seed"
)

// quick is a policy whose waits take no time worth mentioning.
var quick = lull.Policy{Backoff: backoff.Schedule{Base: time.Millisecond, Cap: time.Millisecond}, RateLimitedBase: time.Millisecond}

// service is a service in memory. Its answers are scripted.
type service struct {
	*httptest.Server
	requests atomic.Int64
}

// serve starts a service. answer is told the number of the request, from 1.
func serve(t testing.TB, answer func(n int, w http.ResponseWriter, r *http.Request)) *service {
	s := &service{}
	s.Server = memnet.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer(int(s.requests.Add(1)), w, r)
	}))
	return s
}

// fail answers in SQS's protocol.
func fail(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"__type":"com.amazonaws.sqs#%s","message":"scripted"}`, code)
}

func succeed(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	io.WriteString(w, `{"QueueUrl":"http://127.0.0.1/q"}`)
}

func config(s *service) aws.Config {
	return aws.Config{
		Region: "eu-central-1", BaseEndpoint: aws.String(s.URL), HTTPClient: s.Client(),
		Credentials: aws.CredentialsProviderFunc(credentials),
	}
}

func newDependency(t testing.TB, p lull.Policy) *lull.Dependency {
	t.Helper()
	return must.Have(lull.NewDependency("queues", p, lull.WithRand(seed.Source(t))))
}

// under returns a client of s under d.
func under(s *service, d *lull.Dependency, r aws.Retryer, opts ...func(*sqs.Options)) *sqs.Client {
	cfg := config(s)
	cfg.APIOptions = append(cfg.APIOptions, lullaws.Retry(d, r))
	return sqs.NewFromConfig(cfg, opts...)
}

func ask(ctx context.Context, c *sqs.Client) error {
	_, err := c.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String("q")})
	return err
}

// Beside the SDK's standard mode on the same faults: as many calls succeed when one in ten
// fails for a moment, and in an outage there are fewer attempts.
func TestBesideTheStandardMode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const calls = 300
		type figures struct{ blips, outage, succeeded int64 }
		fly := func(client func(*service) *sqs.Client) (f figures) {
			var mode atomic.Value
			mode.Store("blips")
			var mu sync.Mutex
			begun := 0
			s := serve(t, func(n int, w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				first := strings.HasPrefix(r.Header.Get("Amz-Sdk-Request"), "attempt=1;")
				if first {
					begun++
				}
				if mode.Load() == "outage" || mode.Load() == "blips" && first && begun%10 == 0 {
					fail(w, 503, "ServiceUnavailable")
					return
				}
				succeed(w)
			})
			c := client(s)
			run := func() (attempts, ok int64) {
				before := s.requests.Load()
				for range calls {
					if ask(t.Context(), c) == nil {
						ok++
					}
				}
				return s.requests.Load() - before, ok
			}
			f.blips, f.succeeded = run()
			mode.Store("outage")
			f.outage, _ = run()
			return f
		}
		standard := fly(func(s *service) *sqs.Client {
			return sqs.NewFromConfig(config(s), func(o *sqs.Options) {
				o.Retryer = retry.NewStandard(func(o *retry.StandardOptions) {
					o.Backoff = retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return time.Millisecond, nil })
				})
			})
		})
		lulls := fly(func(s *service) *sqs.Client { return under(s, newDependency(t, quick), nil) })
		t.Logf("%d calls each; with blips: standard %d attempts, %d succeeded; lull %d, %d; in an outage: standard %d attempts, lull %d",
			calls, standard.blips, standard.succeeded, lulls.blips, lulls.succeeded, standard.outage, lulls.outage)
		if standard.succeeded != calls || lulls.succeeded != calls || lulls.blips != standard.blips {
			t.Error("with blips they do not succeed alike")
		}
		if lulls.outage > calls*11/10+budget.DefaultStock || lulls.outage >= standard.outage {
			t.Errorf("%d attempts of %d calls in an outage, where the standard mode makes %d", lulls.outage, calls, standard.outage)
		}
	})
}

// What is made of which answer.
func TestVerdicts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, x := range []struct {
			status   int
			code     string
			header   string // its value is 1
			after    time.Duration
			attempts int
			kind     engine.VerdictKind
			reason   error
		}{
			{503, "ServiceUnavailable", "", 0, 3, lull.KindTransient, lull.ErrAttemptsExhausted},
			{500, "InternalFailure", "", 0, 3, lull.KindTransient, lull.ErrAttemptsExhausted},
			{400, "ThrottlingException", "", 0, 3, lull.KindRateLimited, lull.ErrAttemptsExhausted},
			{429, "Odd", "", 0, 3, lull.KindRateLimited, lull.ErrAttemptsExhausted},
			{503, "ServiceUnavailable", "Retry-After", time.Second, 3, lull.KindTransient, lull.ErrAttemptsExhausted},
			{400, "RequestTimeout", "X-Amz-Retry-After", time.Millisecond, 3, lull.KindTransient, lull.ErrAttemptsExhausted},
			{400, "QueueDoesNotExist", "", 0, 1, lull.KindPermanent, lull.ErrPermanent},
			{403, "AccessDenied", "", 0, 1, lull.KindUnclassified, lull.ErrPermanent},
			{400, "ExpiredToken", "", 0, 1, lull.KindUnclassified, lull.ErrPermanent},
			{401, "Odd", "", 0, 1, lull.KindUnclassified, lull.ErrPermanent},
		} {
			s := serve(t, func(n int, w http.ResponseWriter, r *http.Request) {
				if x.header != "" {
					w.Header().Set(x.header, "1")
				}
				fail(w, x.status, x.code)
			})
			p := quick
			p.Attempts = 3
			p.Budget.Stock = 10
			err := ask(t.Context(), under(s, newDependency(t, p), nil))
			e, ok := errors.AsType[*lull.Error](err)
			if !ok || e.Attempts != x.attempts || int(s.requests.Load()) != x.attempts || e.Verdict.Kind != x.kind || !errors.Is(err, x.reason) ||
				e.Operation != "GetQueueUrl" || e.Verdict.Code != x.code {
				t.Errorf("%d %s: %v after %d requests", x.status, x.code, err, s.requests.Load())
				continue
			}
			check.Equal(t, e.Verdict.After, x.after, "%s: the hint", x.header)
			var api smithy.APIError
			if !errors.As(err, &api) || api.ErrorCode() != x.code {
				t.Errorf("%d %s: the last error is lost: %v", x.status, x.code, err)
			}
		}
	})
}

// Each attempt is signed anew, by the clock of the service as far as its answers show it.
func TestClockSkewIsCorrected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ahead = time.Hour
		var mu sync.Mutex
		var signed, numbers []string
		s := serve(t, func(n int, w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			signed = append(signed, r.Header.Get("X-Amz-Date")+r.Header.Get("Authorization"))
			numbers = append(numbers, r.Header.Get("Amz-Sdk-Request"))
			at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
			now := time.Now().Add(ahead)
			w.Header().Set("Date", now.UTC().Format(http.TimeFormat))
			if err != nil || now.Sub(at).Abs() > 5*time.Minute {
				fail(w, 403, "RequestTimeTooSkewed")
				return
			}
			succeed(w)
		})
		c := under(s, newDependency(t, quick), nil)
		for range 2 {
			must.Succeed(ask(t.Context(), c))
		}
		if len(signed) != 3 || signed[0] == signed[1] {
			t.Errorf("%d requests, signed %q: want one that is too early, and two", len(signed), signed)
		}
		if want := "attempt=2; max=5"; numbers[1] != want && !strings.HasPrefix(numbers[1], want+"; ttl=") {
			t.Errorf("the second attempt says %q, want %q", numbers[1], want)
		}
	})
}

// Codes that the client's Retryer knows are retryable, and its tokens for attempts are asked for:
// the adaptive mode works by them.
func TestTheRetryerIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, func(n int, w http.ResponseWriter, r *http.Request) {
			if n == 1 {
				fail(w, 400, "OfMine")
				return
			}
			succeed(w)
		})
		tokens := &tokens{RetryerV2: retry.AddWithErrorCodes(retry.NewStandard(func(o *retry.StandardOptions) { o.RateLimiter = ratelimit.None }), "OfMine").(aws.RetryerV2)}
		if err := ask(t.Context(), under(s, newDependency(t, quick), tokens)); err != nil || tokens.n.Load() != 2 {
			t.Errorf("%v with %d tokens, want 2", err, tokens.n.Load())
		}
	})
}

type tokens struct {
	aws.RetryerV2
	n atomic.Int32
}

func (r *tokens) GetAttemptToken(ctx context.Context) (func(error) error, error) {
	r.n.Add(1)
	return r.RetryerV2.GetAttemptToken(ctx)
}

// In the adaptive mode one service that throttles is delayed by the SDK, and another is not: each
// has a Retryer of its own.
func TestOneServicesThrottlingDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, func(n int, w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Amz-Target") != "" { // SQS
				fail(w, 400, "ThrottlingException")
				return
			}
			w.Header().Set("ETag", `"x"`)
		})
		var made atomic.Int32
		cfg := config(s)
		cfg.Retryer = func() aws.Retryer { made.Add(1); return retry.NewAdaptiveMode() }
		services := must.Have(lull.NewRegistry(quick, 10))
		must.Succeed(lullaws.AddTo(&cfg, services))
		queues, buckets := sqs.NewFromConfig(cfg), s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true })
		made.Store(0) // NewFromConfig makes some that nobody asks
		for range 6 {
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond) // the adaptive mode makes it wait
			if ask(ctx, queues) == nil {
				t.Error("it succeeded")
			}
			cancel()
		}
		for range 5 {
			must.Have(buckets.HeadBucket(t.Context(), &s3.HeadBucketInput{Bucket: aws.String("b")}))
		}
		if made.Load() != 2 || services.Len() != 2 {
			t.Errorf("%d retryers and %d dependencies, want 2 each", made.Load(), services.Len())
		}
	})
}

// A body is sent again from its start. One that cannot be read again makes one attempt.
func TestBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var bodies []string
		s := serve(t, func(n int, w http.ResponseWriter, r *http.Request) {
			text, _ := io.ReadAll(r.Body)
			mu.Lock()
			defer mu.Unlock()
			if bodies = append(bodies, string(text)); len(bodies)%2 == 1 {
				w.WriteHeader(503)
			}
		})
		cfg := config(s)
		cfg.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		cfg.APIOptions = append(cfg.APIOptions, lullaws.Retry(newDependency(t, quick), nil))
		c := s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true })
		put := func(body io.Reader, opts ...func(*s3.Options)) error {
			_, err := c.PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String("b"), Key: aws.String("k"), Body: body, ContentLength: aws.Int64(5)}, opts...)
			return err
		}
		if err := put(bytes.NewReader([]byte("hello"))); err != nil || fmt.Sprint(bodies) != "[hello hello]" {
			t.Errorf("%v: %q", err, bodies)
		}
		unsigned := s3.WithAPIOptions(v4.SwapComputePayloadSHA256ForUnsignedPayloadMiddleware) // or the SDK reads it to sign
		err := put(io.MultiReader(strings.NewReader("hello")), unsigned)
		if e, ok := errors.AsType[*lull.Error](err); !ok || e.Attempts != 1 || len(bodies) != 3 {
			t.Errorf("%v: %q", err, bodies)
		}
	})
}

// The body of an answer is not bound by the timeout of the attempt, and the attempt's context ends
// when it is closed.
func TestTheBodyOfAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		more := make(chan struct{})
		s := serve(t, func(n int, w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "he")
			w.(http.Flusher).Flush()
			select {
			case <-more:
				io.WriteString(w, "llo")
			case <-r.Context().Done():
			}
		})
		p := quick
		p.AttemptTimeout = time.Second
		cfg := config(s)
		cfg.APIOptions = append(cfg.APIOptions, lullaws.Retry(newDependency(t, p), nil))
		c := s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true })
		got := must.Have(c.GetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String("b"), Key: aws.String("k")}))
		time.Sleep(time.Minute)
		close(more)
		text, err := io.ReadAll(got.Body)
		if err != nil || string(text) != "hello" {
			t.Errorf("%q, %v", text, err)
		}
		must.Succeed(got.Body.Close())
	})
}

// A service that does not answer ends the attempt by its timeout, and the call by its context.
func TestTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, func(n int, w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		})
		p := quick
		p.AttemptTimeout, p.Attempts = 20*time.Millisecond, 1
		err := ask(t.Context(), under(s, newDependency(t, p), nil))
		if e, ok := errors.AsType[*lull.Error](err); !ok || e.Verdict.Code != engine.CodeTimeout || e.Verdict.NeverSent {
			t.Errorf("%v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(20*time.Millisecond, cancel)
		check.Is(t, ask(ctx, under(s, newDependency(t, lull.Policy{}), nil)), context.Canceled, "error")
	})
}

// Calls that may not be made twice are not, unless nothing was sent.
func TestOptionsOfACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, func(n int, w http.ResponseWriter, r *http.Request) { fail(w, 500, "InternalFailure") })
		c := under(s, newDependency(t, quick), nil)
		ctx := lullaws.With(lullaws.With(t.Context(), lull.NotIdempotent()), lull.Operation("send"))
		err := ask(ctx, c)
		if e, ok := errors.AsType[*lull.Error](err); !ok || e.Attempts != 1 || e.Operation != "send" || !errors.Is(err, lull.ErrNotIdempotent) {
			t.Errorf("%v", err)
		}
		s.Close()
		p := quick
		p.Attempts = 2
		err = ask(ctx, under(s, newDependency(t, p), nil))
		if e, ok := errors.AsType[*lull.Error](err); !ok || e.Attempts != 2 || !e.Verdict.NeverSent {
			t.Errorf("%v", err)
		}
	})
}

func TestWhatIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		services := must.Have(lull.NewRegistry(lull.Policy{}, 10))
		for want, got := range map[string]error{
			"the config is nil":   lullaws.AddTo(nil, services),
			"the registry is nil": lullaws.AddTo(&aws.Config{}, nil),
		} {
			if got == nil || !strings.Contains(got.Error(), want) {
				t.Errorf("%v, want %q", got, want)
			}
		}
		s := serve(t, func(n int, w http.ResponseWriter, r *http.Request) { succeed(w) })
		d := newDependency(t, quick)
		cfg := config(s)
		cfg.APIOptions = append(cfg.APIOptions, lullaws.Retry(d, nil), lullaws.Retry(d, nil))
		if err := ask(t.Context(), sqs.NewFromConfig(cfg)); err == nil || !strings.Contains(err.Error(), "only one package can replace it") {
			t.Errorf("twice: %v", err)
		}
		defer func() {
			if recover() == nil {
				t.Error("Retry of nil does not panic")
			}
		}()
		lullaws.Retry(nil, nil)
	})
}

// A request that is presigned is not made here, and needs no step that repeats.
func TestPresigned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, func(n int, w http.ResponseWriter, r *http.Request) {})
		cfg := config(s)
		cfg.APIOptions = append(cfg.APIOptions, lullaws.Retry(newDependency(t, quick), nil))
		r, err := s3.NewPresignClient(s3.NewFromConfig(cfg)).PresignGetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String("b"), Key: aws.String("k")})
		if err != nil || !strings.Contains(r.URL, "X-Amz-Signature") || s.requests.Load() != 0 {
			t.Errorf("%v, %v, %d requests", r, err, s.requests.Load())
		}
	})
}
