package lullnats

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// meta is the content of a delivery's reply subject: the address of its acknowledgement, with the
// server's facts about the delivery.
//
//	$JS.ACK.<stream>.<consumer>.<delivered>.<seq>.<delivery seq>.<time>.<pending>
//	$JS.ACK.<domain>.<account hash>.<stream>.<consumer>.<delivered>. ... .<pending>[.<more>]
type meta struct {
	stream, consumer string
	delivered        int    // how often, from 1
	seq              uint64 // in the stream
	stored           time.Time
}

var errReply = errors.New("lullnats: the reply subject of a message is not one of JetStream's")

func parseReply(reply string) (m meta, err error) {
	t := strings.Split(reply, ".")
	if len(t) != 9 && len(t) < 11 || t[0] != "$JS" || t[1] != "ACK" {
		return meta{}, errReply
	}
	t = t[2:]
	if len(t) > 7 {
		t = t[2:]
	}
	n, err1 := strconv.ParseUint(t[2], 10, 31)
	seq, err2 := strconv.ParseUint(t[3], 10, 64)
	at, err3 := strconv.ParseInt(t[5], 10, 64)
	if err1 != nil || err2 != nil || err3 != nil || n < 1 || seq < 1 || t[0] == "" || t[1] == "" {
		return meta{}, errReply
	}
	return meta{stream: t[0], consumer: t[1], delivered: int(n), seq: seq, stored: time.Unix(0, at).UTC()}, nil
}

// id is the name of a message of a stream. Sequences begin anew in a stream that was
// deleted and made again, so the time is part of it.
func id(stream string, seq uint64, stored time.Time) string {
	return stream + ":" + strconv.FormatUint(seq, 10) + ":" + strconv.FormatInt(stored.UnixNano(), 36)
}
