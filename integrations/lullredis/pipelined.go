package lullredis

import (
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/lullgo/lull"
)

// pipelined is a pipeline whose attempts are judged command by command.
type pipelined struct {
	cmds              []redis.Cmder
	onceOnly          bool            // carrying all of it out twice is not the same as once
	cluster           bool            // of a cluster's client
	indivisible       bool            // it can't be divided, and an answer to a part of it proves nothing
	from              int             // the first command that the next attempt sends
	nothingCarriedOut bool            // no command has been carried out
	clusterAttempt    *clusterAttempt // of a cluster's client: the last attempt
}

// judge returns the verdict on an attempt that ended with err, and the error that the verdict is about. All commands have
// their results. NeverSent means here only that the commands from p.from on may be sent again: each was refused, only
// reads, or is a SET with only SETs between p.from and it.
func (p *pipelined) judge(err error) (lull.Verdict, error) {
	v, end := lull.Verdict{Kind: lull.KindSuccess}, len(p.cmds)
	p.from, p.nothingCarriedOut = end, true
	again, sets := true, true // sets: the commands from p.from on are repeatable writes
	for i, cmd := range p.cmds {
		name, cmdErr := cmd.Name(), cmd.Err()
		if p.indivisible && (name == "multi" || name == "exec") {
			continue // the commands in between have the results
		}
		own := verdict(cmd, cmdErr, p.onceOnly, p.cluster)
		answer := own.Kind == lull.KindSuccess || isReply(cmdErr) && (p.indivisible || own.Kind == lull.KindPermanent || own.Kind == lull.KindUnclassified)
		p.nothingCarriedOut = p.nothingCarriedOut && own.NeverSent
		switch {
		case p.from == end && answer:
			if v.Kind == lull.KindSuccess {
				v = own
			}
			continue
		case p.from == end:
			p.from, v, err = i, own, cmdErr
		case !answer && v.CallerSide() && !own.CallerSide():
			v, err = own, cmdErr // the server has failed, too
		}
		if !own.NeverSent {
			again = again && answer && kindOf(cmd) == repeatable && (sets || !writes[name])
		}
		sets = sets && writes[name]
	}
	switch {
	case p.from == end:
		if p.indivisible && v.Kind == lull.KindTransient {
			v = lull.Verdict{Kind: lull.KindPermanent, Code: v.Code}
		}
	case p.indivisible:
		p.from, v.NeverSent = 0, p.nothingCarriedOut
	default:
		v.NeverSent = again
	}
	if s := p.clusterAttempt; v.Kind == lull.KindTransient && s != nil && s.waited.Load() && !s.failed.Load() { // a cluster's client loses that error when its time is over
		v = v.OnCallerSide()
	}
	return v, err
}

// repeatableAsWhole reports whether carrying the commands out twice is the same as once, with the same results: each is
// repeatable, and none reads what a later one sets.
func repeatableAsWhole(cmds []redis.Cmder) bool {
	first, last := len(cmds), -1 // the first that reads, the last that sets
	for i, cmd := range cmds {
		switch {
		case kindOf(cmd) != repeatable:
			return false
		case writes[cmd.Name()]:
			last = i
		default:
			first = min(first, i)
		}
	}
	set := map[string]bool{}
	for ; last >= first; last-- {
		name, args := cmds[last].Name(), cmds[last].Args()[1:]
		if !writes[name] {
			if readsUnnamedKeys[name] || slices.ContainsFunc(args, func(arg any) bool { return set[text(arg)] }) {
				return false
			}
			continue
		}
		if name != "mset" {
			args = args[:min(len(args), 1)]
		}
		for _, arg := range args {
			set[text(arg)] = true
		}
	}
	return true
}

func text(arg any) string {
	switch arg := arg.(type) {
	case string:
		return arg
	case []byte:
		return string(arg)
	case *string:
		if arg != nil {
			return *arg
		}
	}
	return fmt.Sprint(arg)
}

func firstError(cmds []redis.Cmder) error {
	for _, cmd := range cmds {
		if err := cmd.Err(); err != nil {
			return err
		}
	}
	return nil
}

// setMissingErrors sets err as the error of each command, if none has an error. go-redis does not do that if an answer refused
// a new connection.
func setMissingErrors(cmds []redis.Cmder, err error) {
	if err == nil || firstError(cmds) != nil {
		return
	}
	for _, cmd := range cmds {
		cmd.SetErr(err)
	}
}
