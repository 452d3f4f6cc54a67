package torture

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/lullgo/lull/lab/torture/internal/words"
)

func bodyCases() []Case {
	body := func(name, method, does string, size int, script ...answer) Case {
		return Case{Name: "body-" + name, Does: does, Source: "RFC 9110, 9.2.2: the request is repeated, not another one", method: method, key: method == "POST", body: size,
			script: append(script, good), judge: sameBodies, rules: rules{Pass: {sameBytes}, Fail: {otherBytes, fewerBytes, otherType}, NotApplicable: {oneAttempt, noWholeBody}}}
	}
	bad := answer{status: 503}
	return []Case{
		body("put", "PUT", "answers a PUT of 1,000 bytes twice with 503", 1000, bad, bad),
		body("put-large", "PUT", "answers a PUT of 1 MB twice with 503", 1<<20, bad, bad),
		body("post-key", "POST", "answers a POST with a key and 5,000 bytes twice with 503", 5000, bad, bad),
		body("early", "PUT", "answers a PUT of 1 MB with 503 before it has read it, and closes the connection", 1<<20, answer{status: 503, fault: faultEarly}),
		body("reset", "PUT", "resets the connection in the middle of a PUT of 1 MB", 1<<20, answer{fault: faultMidBody}),
		body("closed", "PUT", "reads a PUT of 1,000 bytes and closes the connection", 1000, answer{fault: faultClose}),
	}
}

var (
	faultEarly   = &fault{name: "early"}                 // the answer comes before the body was read, and the connection closes
	faultMidBody = &fault{name: "mid-body", reset: true} // in the middle of the request's body
)

// writeEarly writes an answer to a request of which the body was not read. What still comes of it is read for a
// while: closing with unread bytes would reset the connection, and the client could lose the answer (RFC 9112, 9.6).
func writeEarly(conn net.Conn, status int, header http.Header, body string) {
	fmt.Fprintf(conn, "HTTP/1.1 %d %s\r\nConnection: close\r\nContent-Length: %d\r\n", status, http.StatusText(status), len(body))
	header.Write(conn)
	io.WriteString(conn, "\r\n"+body)
	if c, ok := conn.(*countedConn); ok {
		c.CloseWrite()
	}
	conn.SetDeadline(time.Now().Add(time.Second))
	io.Copy(io.Discard, conn)
	conn.Close()
}

const (
	sameBytes   outcome = "sends the same bytes in each attempt"
	otherBytes  outcome = "sends other bytes in a later attempt"
	fewerBytes  outcome = "sends fewer bytes than its caller gave"
	otherType   outcome = "sends another Content-Type in a later attempt"
	noWholeBody outcome = "sends no body to its end"
)

// sameBodies is the judge of bodies: all that were read to their end are the same.
func sameBodies(s *Seen) finding {
	list := s.first()
	want := int64(s.Case.body)
	var whole []Attempt
	for _, a := range list {
		if a.Whole {
			whole = append(whole, a)
		}
	}
	for _, a := range whole {
		switch {
		case a.Length < want: // more are a form of the client's own around them
			return did(fewerBytes, "attempt %d had %d bytes of body; there are %d", a.Number, a.Length, want)
		case a.Sum != whole[0].Sum:
			return did(otherBytes, "the body of attempt %d differs from that of attempt %d", a.Number, whole[0].Number)
		}
	}
	if len(list) < 2 {
		return did(oneAttempt, "one attempt: there is nothing to compare")
	}
	if len(whole) == 0 {
		return did(noWholeBody, "no attempt was complete")
	}
	for _, a := range list {
		if a.Header.Get("Content-Type") != list[0].Header.Get("Content-Type") {
			return did(otherType, "attempt %d has another Content-Type", a.Number)
		}
	}
	return did(sameBytes, "%s, the same %d bytes", words.Plural(len(list), "attempt"), whole[0].Length)
}
