package lullredis

import (
	"errors"
	"io"
	"net"
	"net/url"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/lullhttp"
)

func isReply(err error) bool { return is[redis.Error](err) }

// refusals are the codes with which a server refuses a command that it has not carried out, and may carry
// out soon. A code is the first word of an error, which Redis's protocol defines.
var refusals = wordSet("LOADING BUSY MASTERDOWN CLUSTERDOWN TRYAGAIN MOVED ASK READONLY NOREPLICAS")

// credentials are the codes with which a server refuses the client, whatever it sends.
var credentials = wordSet("NOAUTH WRONGPASS NOPERM")

// Classify returns the verdict on an error of go-redis, and falls back on lull.Classify. NeverSent
// means that the command provably was not carried out. An answer is known by its first word, the code:
//
//	code         the server                                 carried out  again, on the same connection
//	LOADING      reads its data from the disk               no           yes
//	BUSY         runs a script or a module for too long     no           yes
//	MASTERDOWN   is a replica that has lost its primary     no           yes
//	CLUSTERDOWN  has no owner for the slot                  no           yes
//	TRYAGAIN     has a part of the keys: the slot moves     no           yes
//	MOVED, ASK   does not own the slot                      no           on the node that it names, which a
//	                                                                     cluster's client does; else no
//	READONLY     is a replica (a failover)                  no           on a new one; go-redis closes this one
//	NOREPLICAS   has too few replicas to accept writes      no           yes
//	max number   has too many clients                       no           on a new one
//	of clients
//	OOM          has no memory left                         no           no: somebody must free it
//	MISCONF      can't save, and stops writes               no           no: somebody must mend it
//	NOSCRIPT     does not know the script                   no           no: send it whole (redis.Script does)
//	EXECABORT    has discarded the transaction              no           no: its WATCH is gone
//	UNKILLABLE   runs a script that has written             no           no: the answer to SCRIPT KILL
//	NOAUTH, WRONGPASS, NOPERM                               no           no, and unclassified: they are about
//	                                                                     the caller's credentials
//	any other (ERR, WRONGTYPE, BUSYGROUP, ...)              perhaps      no
//
// A wait for a connection of the pool (redis.ErrPoolTimeout) was never sent, and shows nothing of the server: it is
// a transient failure of the caller's side.
//
// "Again" is a transient verdict, "no" a permanent one. The table is Redis's own list: createSharedObjects and
// processCommand in src/server.c, clusterRedirectClient in src/cluster.c, and src/script.c. The table holds for one
// command. As a classifier of lull.Do it is right for operations that send one command, and no script: [AddTo] does
// not believe the code of an error that a script returned, nor that of a part of a transaction.
func Classify(err error) lull.Verdict { return lull.VerdictOf(err, classify) }

func classify(err error) lull.Verdict {
	var reply redis.Error
	switch {
	case errors.Is(err, redis.Nil):
		return lull.Verdict{Kind: lull.KindSuccess}
	case errors.As(err, &reply):
		text := strings.TrimPrefix(reply.Error(), "ERR ") // which some servers put before the code
		word, _, _ := strings.Cut(text, " ")
		code := "redis_" + strings.ToLower(word)
		switch {
		case refusals[word]:
			return lull.Verdict{Kind: lull.KindTransient, NeverSent: true, Code: code}
		case strings.HasPrefix(text, "max number of clients"):
			return lull.Verdict{Kind: lull.KindTransient, NeverSent: true, Code: "redis_max_clients"}
		case credentials[word]:
			return lull.Verdict{Kind: lull.KindUnclassified, Code: code}
		}
		return lull.Verdict{Kind: lull.KindPermanent, Code: "redis_error"}
	case errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted):
		return lull.Verdict{Kind: engine.KindCallerTransient, NeverSent: true, Code: "redis_pool_timeout"}
	case errors.Is(err, io.EOF):
		return lull.Verdict{Kind: lull.KindTransient, Code: "connection_lost"}
	}
	return lull.Classify(err)
}

// verdict returns the verdict on the end of cmd, which is part of a call. If onceOnly is set, the answer of a script is no
// proof that nothing was carried out. If followsMoved is set, the client obeys MOVED and ASK.
func verdict(cmd redis.Cmder, err error, onceOnly, followsMoved bool) lull.Verdict {
	if err == nil {
		return lull.Verdict{Kind: lull.KindSuccess}
	}
	v := ofCaller(Classify(err), cmd, err)
	name := cmd.Name()
	if v.NeverSent && isReply(err) {
		if redirections[v.Code] && !followsMoved || connectionBound[name] || onceOnly && scripts[name] {
			return lull.Verdict{Kind: lull.KindPermanent, Code: v.Code}
		}
		v.NeverSent = !scripts[name]
	}
	return v
}

// ofCaller returns v, the verdict on err, which ended cmd. An error of another connection counts as the caller's side: the
// credentials provider's (not repeated: its host has no budget here) or the answer writer's.
func ofCaller(v lull.Verdict, cmd redis.Cmder, err error) lull.Verdict {
	if isReply(err) || is[noConnection](err) {
		return v
	}
	op, _ := errors.AsType[*net.OpError](err)
	switch {
	case is[*url.Error](err), is[*net.DNSError](err), op != nil && op.Op == "dial":
		return lull.Verdict{Kind: engine.KindCallerSide, NeverSent: true, Code: "another_host"}
	case op != nil && op.Op == "write" && cmd.NoRetry():
		v = v.OnCallerSide()
	}
	return v
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// noConnection is the error of a dial, or of the greeting of a new connection.
type noConnection struct{ error }

func (e noConnection) Unwrap() error { return e.error }

// notConnected returns err as a noConnection. Another attempt may follow, unless err is about how the two sides are set up (a
// certificate that is not accepted, an address that is malformed).
func notConnected(err error) error {
	switch v := lullhttp.ClassifyError(err); {
	case v.Code == engine.CodeUnclassified, v.Kind == lull.KindTransient, v.Kind == lull.KindRateLimited, v.Kind == engine.KindCallerTransient:
		err = lull.NeverSent(err)
	}
	return noConnection{err}
}

// redirections are the codes of verdicts after which another server is to be asked.
var redirections = wordSet("redis_moved redis_ask")
