package lullredis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/internal/storecall"
	"github.com/lullgo/lull/server/idempotency"
)

// The defaults of zero fields.
const (
	DefaultStorePrefix    = "lull:idempotency"
	DefaultReplicaTimeout = 500 * time.Millisecond
	DefaultMaxRecord      = 32 << 20
)

// maxBulk is the longest string that Redis takes, unless configured otherwise.
const maxBulk = 512 << 20

// A StoreConfig configures how a Store keeps its entries. It is plain, comparable data, and the
// zero value is the recommended setting.
type StoreConfig struct {
	// Prefix begins every key. It must not contain braces. Empty: "lull:idempotency".
	Prefix string

	// MaxRecord is the length of the longest record, in bytes. A longer one is
	// idempotency.ErrTooLarge. Zero: 32 MiB. Up to 512 MiB.
	MaxRecord int

	// Replicas is how many replicas must have a claim, an extension, a record or a
	// release before it counts (WAIT). Zero: none.
	Replicas int

	// ReplicaTimeout is how long to wait for them. If fewer replicas have the change by then, the
	// call fails: the master has the change, and may lose it. Zero: 500 ms. At least a
	// millisecond.
	ReplicaTimeout time.Duration
}

// Validate reports every mistake at once, each naming its field. Nil: none.
func (c StoreConfig) Validate() error {
	var l problem.List
	l.Check(!strings.ContainsAny(c.Prefix, "{}"), "Prefix", c.Prefix, "text without braces, which Redis Cluster reads")
	l.Check(c.MaxRecord >= 0 && c.MaxRecord <= maxBulk, "MaxRecord", c.MaxRecord, "zero (32 MiB), or a number of bytes up to 512 MiB")
	l.Check(c.Replicas >= 0, "Replicas", c.Replicas, "zero (none) or a positive number")
	l.Check(c.ReplicaTimeout == 0 || c.ReplicaTimeout >= time.Millisecond, "ReplicaTimeout", c.ReplicaTimeout, "zero (500ms), or a duration of at least 1ms")
	return l.Err()
}

// A Store keeps idempotency keys in Redis, for [idempotency.New]. Each key is one hash in Redis,
// and each method one script on it: atomic, by the server's clock, also on a cluster. The methods
// may be called concurrently.
//
// A first request takes two scripts, any other takes one: 26,000 first requests a second with records of 2 KiB, and Redis on the
// same two cores (go test -bench Store). Its entries are as safe as the Redis behind it: docs/servers.md has what can be lost,
// under "Stores".
//
// A claim carries its caller's deadline with it, by Redis' clock. A Store learns that clock from
// Redis' answers, so its first claim takes one script more. The clocks of a cluster's nodes should
// agree; where they differ by more than a claim may take, some claims take one script more.
type Store struct {
	client redis.UniversalClient
	config StoreConfig
	clock  storecall.Clock
}

var _ idempotency.Store = (*Store)(nil)

// NewStore returns a Store that uses Redis through client, which the caller closes. Redis need not
// be there yet.
//
// The error names every invalid field of c. It also refuses a client that ignores the deadlines of
// contexts, as [Open] does. Give the client MaxRetries: -1, as the middleware tries again by
// itself. If go-redis repeats a release by itself, the answer is ErrFenced although the first one
// released the key.
func NewStore(client redis.UniversalClient, c StoreConfig) (*Store, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("lullredis: store: %w", err)
	}
	if err := respectsDeadlines(client); err != nil {
		return nil, err
	}
	c.Prefix = cmp.Or(c.Prefix, DefaultStorePrefix)
	c.MaxRecord = cmp.Or(c.MaxRecord, DefaultMaxRecord)
	c.ReplicaTimeout = cmp.Or(c.ReplicaTimeout, DefaultReplicaTimeout)
	return &Store{client: client, config: c}, nil
}

// RedisKey returns the Redis key of an entry, for an operator who reads it or deletes it. key is
// the result of idempotency.StoreKey.
func (s *Store) RedisKey(key string) string {
	return s.config.Prefix + ":{" + escape.Replace(key) + "}"
}

// Claim implements idempotency.Store.
func (s *Store) Claim(ctx context.Context, c idempotency.Claim) (idempotency.ClaimResult, error) {
	for {
		deadline := ""
		if micros, ok := s.clock.Deadline(ctx); ok {
			deadline = strconv.FormatInt(micros/1000, 10)
		}
		v, err := s.run(ctx, "claim", claimScript, c.Key, c.Fingerprint[:], c.Token[:], millis(c.Lease), millis(c.Retention), flag(c.Resume), deadline)
		if err != nil {
			return idempotency.ClaimResult{}, err
		}
		a, now, ok := parseClaim(v)
		if !ok {
			return idempotency.ClaimResult{}, fmt.Errorf("lullredis: claim: the script returned %v: what is in its key?", v)
		}
		s.clock.Read(now * 1000)
		if a.State != late {
			return a, nil
		}
	}
}

// late is the state of a claim that came after its deadline, or before Redis' clock was known.
const late idempotency.KeyState = 0

// parseClaim reads the result of the claim's script. now is Redis' clock, in ms.
func parseClaim(v any) (a idempotency.ClaimResult, now int64, ok bool) {
	n, rest, ok := integers(v, 4)
	if !ok || n[0] < int64(late) || n[0] > int64(idempotency.Unknown) {
		return a, 0, false
	}
	a = idempotency.ClaimResult{State: idempotency.KeyState(n[0]), Resumed: n[1] == 1, Remaining: duration(n[2])}
	if a.State != idempotency.Replay || len(rest) != 1 {
		return a, n[3], a.State != idempotency.Replay && len(rest) == 0
	}
	record, ok := rest[0].(string)
	a.Record = []byte(record)
	return a, n[3], ok
}

// Extend implements idempotency.Store.
func (s *Store) Extend(ctx context.Context, key string, token idempotency.FencingToken, lease, retention time.Duration) error {
	return s.asOwner(ctx, "extend", extendScript, key, token[:], millis(lease), millis(retention))
}

// Complete implements idempotency.Store.
func (s *Store) Complete(ctx context.Context, key string, token idempotency.FencingToken, record []byte, retention time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(record) > s.config.MaxRecord {
		return s.tooLarge(ctx, key, token, len(record))
	}
	return s.asOwner(ctx, "complete", completeScript, key, token[:], record, millis(retention))
}

// Release implements idempotency.Store.
func (s *Store) Release(ctx context.Context, key string, token idempotency.FencingToken) error {
	return s.asOwner(ctx, "release", releaseScript, key, token[:])
}

// asOwner runs a script that acts for the owner only.
func (s *Store) asOwner(ctx context.Context, what string, script *redis.Script, key string, args ...any) error {
	v, err := s.run(ctx, what, script, key, args...)
	if err != nil {
		return err
	}
	switch v {
	case int64(1):
		return nil
	case int64(0):
		return idempotency.ErrFenced
	}
	return fmt.Errorf("lullredis: %s: the script returned %v: want 0 or 1", what, v)
}

// tooLarge returns the answer to a record of that length. Only the owner gets ErrTooLarge.
func (s *Store) tooLarge(ctx context.Context, key string, token idempotency.FencingToken, n int) error {
	var e *redis.SliceCmd
	err := storecall.Wait(ctx, func() error {
		e = s.client.HMGet(ctx, s.RedisKey(key), "t", "d")
		return e.Err()
	})
	if err != nil {
		return failure(ctx, "complete", err)
	}
	switch v := e.Val(); {
	case v[0] != string(token[:]):
		return idempotency.ErrFenced
	case v[1] != nil:
		return nil
	}
	return fmt.Errorf("lullredis: %w: %d bytes, want at most %d", idempotency.ErrTooLarge, n, s.config.MaxRecord)
}

// run runs a script on one key. It returns when ctx ends, whatever the client does.
func (s *Store) run(ctx context.Context, what string, script *redis.Script, key string, args ...any) (any, error) {
	err := ctx.Err()
	if err != nil {
		return nil, err
	}
	keys := []string{s.RedisKey(key)}
	var v any // do not read it if Wait returns early
	err = storecall.Wait(ctx, func() (err error) {
		if s.config.Replicas > 0 {
			v, err = s.replicated(ctx, script, keys, args)
		} else {
			v, err = script.Run(ctx, s.client, keys, args...).Result()
		}
		return err
	})
	if err != nil {
		return nil, failure(ctx, what, err)
	}
	return v, nil
}

// failure returns err with the failed operation, and with the end of ctx if it has ended. A connection
// with ctx's deadline may notice that a moment before ctx does.
func failure(ctx context.Context, what string, err error) error {
	if end, ok := ctx.Deadline(); ok && errors.Is(err, os.ErrDeadlineExceeded) && time.Until(end) < 10*time.Millisecond {
		<-ctx.Done()
	}
	if why := ctx.Err(); why != nil && !errors.Is(err, why) {
		return fmt.Errorf("lullredis: %s: %w: %w", what, why, err)
	}
	return fmt.Errorf("lullredis: %s: %w", what, err)
}

// replicated runs a script and waits for replicas, on one connection.
func (s *Store) replicated(ctx context.Context, script *redis.Script, keys []string, args []any) (any, error) {
	node := s.client
	if c, ok := node.(*redis.ClusterClient); ok {
		// WAIT has no key, so the cluster's client cannot find its node.
		master, err := c.MasterForKey(ctx, keys[0])
		if err != nil {
			return nil, err
		}
		node = master
	}
	v, n, err := s.scriptAndWait(ctx, node, script.EvalSha, keys, args)
	if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		v, n, err = s.scriptAndWait(ctx, node, script.Eval, keys, args)
	}
	if err != nil {
		if c, ok := s.client.(*redis.ClusterClient); ok && redis.HasErrorPrefix(err, "MOVED") {
			c.ReloadState(ctx)
		}
		return nil, err
	}
	if list, ok := v.([]any); ok && (len(list) == 0 || list[0] != int64(idempotency.Claimed)) || v == int64(0) {
		return v, nil // nothing was changed
	}
	if n < int64(s.config.Replicas) {
		return nil, fmt.Errorf("done by the master, but %d replicas have it after %v, of %d that should", n, s.config.ReplicaTimeout, s.config.Replicas)
	}
	return v, nil
}

func (s *Store) scriptAndWait(ctx context.Context, node redis.UniversalClient, call func(context.Context, redis.Scripter, []string, ...any) *redis.Cmd, keys []string, args []any) (any, int64, error) {
	pipe := node.Pipeline()
	cmd := call(ctx, pipe, keys, args...)
	waited := pipe.Do(ctx, "WAIT", s.config.Replicas, millis(s.config.ReplicaTimeout))
	_, failed := pipe.Exec(ctx)
	v, err := cmd.Result()
	if err == nil {
		err = waited.Err()
	}
	if err == nil && v == nil {
		err = failed
	}
	if err != nil {
		return nil, 0, err
	}
	n, err := waited.Int64()
	return v, n, err
}

// millis returns d in milliseconds, rounded up.
func millis(d time.Duration) int64 {
	n := d.Milliseconds()
	if time.Duration(n)*time.Millisecond < d {
		n++
	}
	return max(n, 0)
}

// duration is the inverse, at most the longest duration.
func duration(ms int64) time.Duration {
	if ms > math.MaxInt64/int64(time.Millisecond) {
		return math.MaxInt64
	}
	return time.Duration(ms) * time.Millisecond
}
