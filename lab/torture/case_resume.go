package torture

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/lullgo/lull/lab/torture/internal/words"
)

// A client that resumes asks for the rest of a body by Range. One that does not has no grade.
func resumeCases() []Case {
	const cut = "closes the connection after 400 of 1,000 bytes of a body with a strong ETag, and answers a request for the rest with "
	resume := func(name, does, source string, r rules, status int, header ...string) Case {
		rest := answer{status: status, header: header, body: resumeLength - resumeCut, rest: true}
		return Case{Name: "resume-" + name, Does: cut + does, Source: source, script: []answer{{fault: faultCutDownload}, rest},
			judge: resumed, rules: r.and(rules{Fail: {didNotEnd, laterRest}, Warn: {noCondition}, NotApplicable: {noRange}}), onlyReported: true, judgedWhenBusy: true}
	}
	const good, other = "Content-Range: bytes 400-999/1000", "Content-Range: bytes 500-999/1000"
	other206 := rules{Pass: {reportedFailure, startedOver}, Fail: {tookOther}}
	return []Case{
		resume("cut", "it", "RFC 9110, 13.1.5 (If-Range) and 14.2", rules{Pass: {tookRest, startedOver}, Warn: {callFailed}}, http.StatusPartialContent, `ETag: "v1"`, good),
		resume("changed", "a 206 of another ETag", "RFC 9110, 15.3.7.3: parts are combined if their strong validators match", other206, http.StatusPartialContent, `ETag: "v2"`, good),
		resume("range", "a 206 of another range", "RFC 9110, 15.3.7: a client must look at the Content-Range", other206, http.StatusPartialContent, `ETag: "v1"`, other),
	}
}

const resumeCut, resumeLength = 400, 1000

var faultCutDownload = &fault{name: "cut-download", part: "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nAccept-Ranges: bytes\r\n" +
	"ETag: \"v1\"\r\nContent-Length: " + strconv.Itoa(resumeLength) + "\r\n\r\n" + strings.Repeat("x", resumeCut)}

const (
	tookRest    outcome = "asks for the rest, and takes it"
	tookOther   outcome = "takes another answer for the rest"
	startedOver outcome = "asks for the whole once more, and takes it"
	noCondition outcome = "asks for the rest without If-Range"
	laterRest   outcome = "leaves out bytes that it has not got"
	noRange     outcome = "does not ask for the rest"
)

// resumed is the judge of downloads that break off.
func resumed(s *Seen) finding {
	list, call := s.first(), s.call()
	asked := 0
	for _, a := range list {
		value := a.Header.Get("Range")
		if value == "" {
			continue
		}
		asked++
		from, _, _ := strings.Cut(strings.TrimPrefix(value, "bytes="), "-")
		switch n, err := strconv.Atoi(from); {
		case err == nil && n > resumeCut:
			return did(laterRest, "attempt %d asks for %s, after %d bytes", a.Number, value, resumeCut)
		case a.Header.Get("If-Range") == "" && a.Header.Get("If-Match") == "":
			return did(noCondition, "attempt %d asks for %s, of whatever version", a.Number, value)
		}
	}
	switch {
	case asked == 0:
		return did(noRange, "%s, without a Range", words.Plural(len(list), "attempt"))
	case call.Ended != "":
		return did(didNotEnd, "it had not ended after %s", words.Rounded(s.Took))
	case call.OK && list[len(list)-1].Header.Get("Range") == "":
		return did(startedOver, "%s, the last for the whole", words.Plural(len(list), "attempt"))
	case call.OK:
		return did(either(s.Case.Name == "resume-cut", tookRest, tookOther), "%s, and the call succeeded", words.Plural(len(list), "attempt"))
	}
	return did(either(s.Case.Name == "resume-cut", callFailed, reportedFailure), "%s, and the call failed: %s", words.Plural(len(list), "attempt"), call.why())
}
