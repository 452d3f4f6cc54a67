package adapter

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/lullgo/lull/internal/must"
)

func TestParse(t *testing.T) {
	if id, c, err := parse("7\t2\tGET\thttp://127.0.0.1/t/a/b/7\t-\t1500\t\"k\""); err != nil || id != "7" || c.Client != 2 || c.Timeout.Milliseconds() != 1500 || c.Key != `"k"` {
		t.Errorf("%q, %+v, %v", id, c, err)
	}
	for _, line := range []string{"", "7\t2\tGET", "7\tx\tGET\tu\t-\t0\t-", "7\t0\tGET\tu\t-\tsoon\t-"} {
		if _, _, err := parse(line); err == nil {
			t.Errorf("%q was read", line)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("7\t2\tGET\thttp://127.0.0.1/t/a/b/7\t-\t1500\t-")
	f.Fuzz(func(t *testing.T, line string) {
		if f := strings.Split(line, "\t"); len(f) == 7 && f[4] != "-" {
			return // a file
		}
		if id, _, err := parse(line); err == nil && !bytes.HasPrefix([]byte(line), []byte(id)) {
			t.Errorf("%q is call %q", line, id)
		}
	})
}

// What a client's function fails with is the error of its call.
func TestDoer(t *testing.T) {
	r := must.Have(http.NewRequest("PUT", "http://127.0.0.1/", strings.NewReader("x")))
	_, err := Doer(func(r *http.Request) (*http.Response, error) {
		must.Fail("%s after %d", Body(r), Status(503).StatusCode)
		return nil, nil
	}).Do(r)
	if err == nil || err.Error() != "x after 503" {
		t.Error(err)
	}
}
