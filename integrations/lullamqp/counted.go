package lullamqp

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/choice"
)

// ErrCounted is returned when dead letters would be read and left where they are: the server counts
// that, and may have a limit at which it drops them.
var ErrCounted = errors.New("lullamqp: reading a letter and leaving it there counts as a delivery of it, and the server drops it at the queue's limit")

// neverReached is a limit that no number of readings reaches.
const neverReached = 100_000

// limit is a queue's limit on deliveries, as far as it is known.
type limit struct {
	known bool
	none  bool
	n     int64
	why   string // why it is not known
}

// Uncounted is part of queue.Counted.
func (l *letters) Uncounted(ctx context.Context) error {
	conn, err := l.client.in.get(ctx)
	if err != nil {
		return err
	}
	server := serverOf(conn)
	if server.AtLeast(4, 3) {
		return nil // basic.nack does not count towards the limit
	}
	var is limit
	if m := l.reading.Management; m != nil {
		is, err = m.limit(ctx, l.name, server)
	} else {
		is, err = limitOf(ctx, conn, l.name, server)
	}
	if err != nil {
		return err
	}
	if is.known && (is.none || is.n >= neverReached) {
		return nil
	}
	found := choice.Either(is.known, fmt.Sprintf("that of %s is %d", l.name, is.n), "whether "+l.name+" has one is not known: "+is.why)
	help := "ask the management API (LettersConfig.Management; ?management=http://HOST:15672 in the address of lull queue), or move all letters, without a filter"
	if l.reading.Management != nil {
		help = fmt.Sprintf("move all letters, without a filter, or give the queue a limit of %d", neverReached)
	}
	return lull.Permanent(fmt.Errorf("%w (%v); %s; %s", ErrCounted, server, found, help))
}

// unacceptable is declared as a queue's limit to make the server fail and report the existing
// limit. Its type is invalid, so no queue is created.
const unacceptable = "asked by lull"

// limitOf finds the limit in the server's answer to a declaration that does not fit. The server
// compares one argument after the other, and its error contains the first one that differs. Each
// such error ends a channel.
func limitOf(ctx context.Context, conn *amqp.Connection, name string, server ServerInfo) (limit, error) {
	args := amqp.Table{"x-queue-type": "quorum", "x-delivery-limit": unacceptable}
	durable, autoDelete := true, false
	for range 20 {
		ch, err := callWithin(ctx, conn.Channel)
		if err != nil {
			return limit{}, explain("open a channel", err)
		}
		_, err = callWithin(ctx, func() (amqp.Queue, error) { return ch.QueueDeclare(name, durable, autoDelete, false, false, args) })
		go ch.Close()
		switch {
		case answered(err, amqp.AccessRefused):
			return limit{why: "this user may not configure it, and is not told its arguments"}, nil
		case !answered(err, amqp.PreconditionFailed):
			return limit{}, explain("look at the arguments of "+name, err)
		}
		refused, _ := errors.AsType[*amqp.Error](err)
		p, kind := inequivalent("queue", name, refused.Reason)
		value := strings.Trim(p.Found, "'")
		switch p.What {
		case "x-delivery-limit":
			return limited(value, server), nil
		case "x-queue-type":
			if value == "none" || value == "classic" {
				return limit{known: true, none: true}, nil
			}
			return limit{why: "it is of the type " + value}, nil
		case "durable":
			durable = value == "true"
			continue
		case "auto_delete":
			autoDelete = value == "true"
			continue
		}
		_, asked := args[p.What]
		switch {
		case kind == "" || asked:
			return limit{why: p.String()}, nil
		case kind == "longstr":
			args[p.What] = value
		case kind == "bool":
			args[p.What] = value == "true"
		default:
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return limit{why: p.String()}, nil
			}
			args[p.What] = n
		}
	}
	return limit{why: "it has too many arguments"}, nil
}

// limited returns the limit in a queue's argument.
func limited(value string, server ServerInfo) limit {
	if n, err := strconv.ParseInt(value, 10, 64); err == nil {
		return limit{known: true, none: n < 0, n: n}
	}
	if server.AtLeast(4, 0) {
		return limit{known: true, n: 20} // unless a policy sets a higher one
	}
	return limit{why: "it has none by its arguments, and AMQP does not show policies"}
}

// limit returns the lowest limit of arguments and policies.
func (m Management) limit(ctx context.Context, name string, server ServerInfo) (limit, error) {
	var is description
	ok, err := m.get(ctx, &is, "queues", m.vhost(), name)
	if err != nil {
		return limit{}, err
	}
	if !ok {
		return limit{}, lull.Permanent(fmt.Errorf("lullamqp: management: there is no queue %s", name))
	}
	if is.Type != "quorum" {
		return limit{known: true, none: true}, nil
	}
	out := choice.Either(server.AtLeast(4, 0), limit{known: true, n: 20}, limit{known: true, none: true})
	first := true
	for _, v := range []any{is.Arguments["x-delivery-limit"], is.policy()["delivery-limit"]} {
		f, there := v.(float64)
		if there && (first || f >= 0 && (out.none || int64(f) < out.n)) {
			out, first = limit{known: true, none: f < 0, n: int64(f)}, false
		}
	}
	return out, nil
}
