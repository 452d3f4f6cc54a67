package lullhttp

import (
	"errors"
	"io"
	"net/http"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
	"weak"
)

// A body whose length is not known is an upload, and so is one that does not fit into what
// the system takes at once. A length of 0 with a body is unknown, as for net/http.
func TestIsUpload(t *testing.T) {
	body := io.NopCloser(strings.NewReader("x"))
	for _, c := range []struct {
		body   io.ReadCloser
		length int64
		want   bool
	}{
		{nil, 0, false}, {nil, -1, false}, {http.NoBody, 0, false}, {http.NoBody, -1, false},
		{body, 0, true}, {body, -1, true}, {body, 1, false}, {body, uploadBytes, false}, {body, uploadBytes + 1, true},
	} {
		if got := isUpload(&http.Request{Body: c.body, ContentLength: c.length}); got != c.want {
			t.Errorf("body %v of length %d: %v, want %v", c.body, c.length, got, c.want)
		}
	}
}

// A made key is a UUID of version 4 (RFC 9562), of which every other bit is random.
func TestAMadeKeyIsARandomUUID(t *testing.T) {
	form := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	digits := map[int]map[byte]bool{}
	for range 1000 { // that a digit never comes has a chance of 10^-25
		u := uuid()
		if !form.MatchString(u) {
			t.Fatalf("%q is no UUID of version 4", u)
		}
		for i := range len(u) {
			if digits[i] == nil {
				digits[i] = map[byte]bool{}
			}
			digits[i][u[i]] = true
		}
	}
	for i, seen := range digits {
		want := 16
		switch i {
		case 8, 13, 14, 18, 23:
			want = 1
		case 19:
			want = 4
		}
		if len(seen) != want {
			t.Errorf("place %d has %d different digits, want %d", i, len(seen), want)
		}
	}
}

func TestBytesOfFields(t *testing.T) {
	for i := range 256 {
		c := byte(i)
		if got := isLowerHex(c); got != (strings.IndexByte("0123456789abcdef", c) >= 0) {
			t.Errorf("isLowerHex(%q) is %v", c, got)
		}
		if got := isDigit(c); got != (strings.IndexByte("0123456789", c) >= 0) {
			t.Errorf("isDigit(%q) is %v", c, got)
		}
		if got := isLower(c); got != (strings.IndexByte("abcdefghijklmnopqrstuvwxyz", c) >= 0) {
			t.Errorf("isLower(%q) is %v", c, got)
		}
		if got := isAlpha(c); got != (strings.IndexByte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", c) >= 0) {
			t.Errorf("isAlpha(%q) is %v", c, got)
		}
	}
}

// What cannot be read is nothing.
func TestUnreadableNumbers(t *testing.T) {
	for _, s := range []string{"x", "1x", "-1", "1 "} {
		if n := digits(s); n != -1 {
			t.Errorf("digits(%q) is %d", s, n)
		}
	}
	for _, s := range []string{"", "1", "S", "1s", "123456789S"} {
		if d, ok := parseGRPCTimeout(s); ok || d != 0 {
			t.Errorf("Grpc-Timeout %q: %v, %v", s, d, ok)
		}
	}
	if d, ok := parseGRPCTimeout("12345678S"); !ok || d != 12345678*time.Second {
		t.Errorf("Grpc-Timeout of eight digits: %v, %v", d, ok)
	}
}

// What is kept of responses does not outlive them.
func TestOutcomesAreForgotten(t *testing.T) {
	var keys []weak.Pointer[http.Response]
	for range 100 {
		resp := &http.Response{StatusCode: 503}
		Outcome{Attempts: 3}.record(resp)
		keys = append(keys, weak.Make(resp))
	}
	left := func() (n int) {
		for _, key := range keys {
			if _, ok := outcomes.Load(key); ok {
				n++
			}
		}
		return n
	}
	for range 5000 {
		if left() == 0 {
			return
		}
		runtime.GC()
		runtime.Gosched()
	}
	t.Errorf("%d of 100 are left", left())
}

// Nothing is peeked at where nothing is asked for.
func TestPeekAtNothing(t *testing.T) {
	resp := &http.Response{StatusCode: 200, Body: io.NopCloser(iotest.ErrReader(errors.New("read")))}
	was := resp.Body
	for _, n := range []int{0, -1} {
		if b := Peek(resp, n); b != nil || resp.Body != was {
			t.Errorf("Peek(%d) is %q", n, b)
		}
	}
}

// What has no body to read, or one that is not a response's, is left alone; one byte is peeked
// at where there is one.
func TestPeekAtWhatThereIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		upgraded := &http.Response{StatusCode: 101, Body: io.NopCloser(strings.NewReader("x"))}
		for _, resp := range []*http.Response{upgraded, {StatusCode: 200}} {
			was := resp.Body
			if b := Peek(resp, 1); b != nil || resp.Body != was {
				t.Errorf("Peek at status %d is %q", resp.StatusCode, b)
			}
		}
		resp := &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader("xy"))}
		if b := Peek(resp, 1); string(b) != "x" {
			t.Errorf("Peek(1) is %q", b)
		}
		if b, err := io.ReadAll(resp.Body); string(b) != "xy" || err != nil {
			t.Errorf("and then the body is %q, %v", b, err)
		}
	})
}

// A fraction is of digits, and of nothing that stands beside them among the characters.
func TestFractionsAreOfDigits(t *testing.T) {
	for i := range 256 {
		c := string([]byte{byte(i)})
		_, ok := parseFraction("1"+c, time.Second)
		if want := strings.Contains("0123456789", c); ok != want {
			t.Errorf("parseFraction(1%q): %v, want %v", c, ok, want)
		}
	}
}

// No two digits of a made key go together.
func TestTheDigitsOfAMadeKeyAreIndependent(t *testing.T) {
	const n = 500
	equal := map[[2]int]int{}
	for range n {
		u := uuid()
		for i := range len(u) {
			for j := range i {
				if u[i] == u[j] {
					equal[[2]int{j, i}]++
				}
			}
		}
	}
	for pair, times := range equal {
		if i := pair[0]; times == n && i != 8 && i != 13 && i != 18 {
			t.Errorf("places %d and %d have the same digit in all of %d keys", pair[0], pair[1], n)
		}
	}
}

// Less than a nanosecond is one.
func TestFractionsAreRoundedUp(t *testing.T) {
	for s, want := range map[string]time.Duration{"1": 1, "0": 0, "001": 1, "9": 1} {
		if d, ok := parseFraction(s, 1); !ok || d != want {
			t.Errorf("0.%s ns is %d, %v, want %d", s, d, ok, want)
		}
	}
}
