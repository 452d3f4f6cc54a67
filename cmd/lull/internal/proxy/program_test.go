package proxy

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/proxy/file"
	"github.com/lullgo/lull/internal/golden"
	"github.com/lullgo/lull/internal/must"
)

func check(p Program) (code int, out, errs string) {
	var stdout, stderr bytes.Buffer
	p.Check, p.Stdout, p.Stderr, p.Getenv = true, &stdout, &stderr, func(string) string { return "" }
	code = p.Run(context.Background())
	return code, stdout.String(), stderr.String()
}

func TestCheckPrintsWhatAFileMeans(t *testing.T) {
	code, out, errs := check(Program{File: "file/testdata/whole.yaml"})
	if code != exitDrained || errs != "" {
		t.Errorf("exit code %d, %s", code, errs)
	}
	golden.File(t, "testdata/check.txt", out)
}

func TestCheckPrintsAllMistakes(t *testing.T) {
	code, out, errs := check(Program{File: "file/testdata/rules.yaml"})
	want := must.Have(os.ReadFile("file/testdata/rules.txt"))
	if code != exitWrong || out != "" || strings.Count(errs, "\n") != bytes.Count(bytes.TrimSpace(want), []byte("\n"))+1+1 /* of package wiring */ || !strings.HasPrefix(errs, "lull: file/testdata/rules.yaml:3:13: ") {
		t.Errorf("exit code %d, %s%s", code, out, errs)
	}
}

func TestWrongFlags(t *testing.T) {
	for _, c := range []struct {
		Program
		want string
	}{
		{Program{}, `lull: FILE is "": want the file of a proxy, or --to URL instead` + "\n"},
		{Program{File: "a", To: "http://b"}, `lull: FILE is "a": want the file of a proxy, or --to URL instead` + "\n"},
		{Program{File: "a", Listen: "b"}, `lull: --listen is "b": want --to URL beside it` + "\n"},
		{Program{To: "b"}, `lull: --to is "b": want `},
		{Program{To: "http://b", Listen: ":1"}, `lull: --listen is ":1": want `},
		{Program{File: "none.yaml"}, "none.yaml"},
		{Program{To: "https://b", Listen: "[::1]:900"}, ""},
	} {
		code, _, errs := check(c.Program)
		if !strings.Contains(errs, c.want) || (c.want == "") != (code == exitDrained) || c.want != "" && code != exitWrong {
			t.Errorf("%+v: exit code %d, %s", c, code, errs)
		}
	}
}

func TestWhatNeedsARestart(t *testing.T) {
	before, after := &file.File{}, &file.File{}
	if got := needRestart(before, after); got != nil {
		t.Errorf("got %q", got)
	}
	after.Admin.Listen, after.Log.To, after.Traces.Share, after.Fleet.Redis, after.Drain, after.Ingress.Keys.Store = "a", "a", 1, "a", 1, "a"
	got := needRestart(before, after)
	if want := []string{"admin", "drain", "fleet", "ingress.keys.store", "log", "traces"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestTheAdminAnswersThisMachineAlone(t *testing.T) {
	drained := 0
	r := &running{drain: func() { drained++ }}
	h := r.adminHandler(http.NotFoundHandler(), http.NotFoundHandler())
	ask := func(method, path, host string, headers ...string) int {
		req := httptest.NewRequest(method, path, nil)
		req.Host = host
		for i := 0; i < len(headers); i += 2 {
			req.Header.Set(headers[i], headers[i+1])
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		return w.Code
	}
	for host, ok := range map[string]bool{
		"localhost": true, "localhost:9900": true, "127.0.0.1:9900": true, "127.0.0.1": true, "[::1]:9900": true, "[::1]": true,
		"": false, "evil.example:9900": false, "localhost.evil.example": false, "10.0.0.1:9900": false, "127.0.0.1.evil.example": false, "0.0.0.0:9900": false,
	} {
		if code := ask("GET", "/health", host); (code == 200) != ok || !ok && code != 403 {
			t.Errorf("host %q: %d", host, code)
		}
	}
	if code := ask("POST", "/drain", "localhost:9900", "Origin", "http://evil.example"); code != 403 || drained != 0 {
		t.Errorf("a POST of another site: %d", code)
	}
	if code := ask("POST", "/drain", "localhost:9900", "Sec-Fetch-Site", "cross-site"); code != 403 || drained != 0 {
		t.Errorf("a POST of another site: %d", code)
	}
	if code := ask("GET", "/drain", "localhost"); code != 405 || drained != 0 {
		t.Errorf("GET: %d", code)
	}
	if code := ask("POST", "/drain", "localhost:9900", "Origin", "http://localhost:9900"); code != 202 || drained != 1 {
		t.Errorf("a POST of its own page: %d", code)
	}
	if code := ask("POST", "/reload", "localhost"); code != 409 {
		t.Errorf("a reload without a file: %d", code)
	}
	if code := ask("GET", "/ready", "localhost"); code != 503 {
		t.Errorf("before the doors are open: %d", code)
	}
}

// Garbage is collected early while there is little of it, and as usual while there is much.
func TestMemoryIsSavedWhenThereIsLittleToDo(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	percent := func() int {
		now := debug.SetGCPercent(-1)
		debug.SetGCPercent(now)
		return now
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go saveMemory(ctx)
		time.Sleep(2500 * time.Millisecond)
		little := percent()
		garbage = make([]byte, 64<<20)
		time.Sleep(time.Second)
		much := percent()
		time.Sleep(2 * time.Second)
		if again := percent(); little >= 100 || much != 100 || again != little {
			t.Errorf("GOGC is %d, %d with much garbage, then %d", little, much, again)
		}
	})
}

var garbage []byte
