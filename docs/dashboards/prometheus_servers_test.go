//go:build servers

package dashboards

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/child"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/ports"
)

// program is the path of prometheus or promtool, which a test cannot do without: in the folder
// that LULL_PROMETHEUS names, or where .ci/install-prometheus puts them.
func program(t *testing.T, name string) string {
	t.Helper()
	folder := os.Getenv("LULL_PROMETHEUS")
	if folder == "" {
		cache := must.Have(os.UserCacheDir())
		folder = filepath.Join(cache, "lull", "prometheus")
	}
	path, err := exec.LookPath(filepath.Join(folder, name))
	if err == nil {
		return path
	}
	const how = "run .ci/install-prometheus, or have LULL_PROMETHEUS name a folder with prometheus and promtool: %v"
	if os.Getenv("CI") != "" {
		t.Fatalf(how, err)
	}
	t.Skipf(how, err)
	return ""
}

func TestAlerts(t *testing.T) {
	promtool := program(t, "promtool")
	for _, args := range [][]string{{"check", "rules", "rules.yml"}, {"test", "rules", "alerts.test.yml"}} {
		out, err := exec.Command(promtool, args...).CombinedOutput()
		if err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
}

// server is a Prometheus of the test's own: a child process on a free port of the loopback.
type server struct{ url string }

// startPrometheus starts one that takes OTLP, and reckons rules.yml.
func startPrometheus(t *testing.T) *server {
	t.Helper()
	path := program(t, "prometheus")
	var port int
	must.Succeed(ports.Free(&port))
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	dir := t.TempDir()
	rules, _ := filepath.Abs("rules.yml")
	config := fmt.Sprintf("global: {evaluation_interval: 1s}\nrule_files: [%q]\n", rules)
	must.Succeed(os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o600))
	log := must.Have(os.Create(filepath.Join(dir, "log")))
	defer log.Close()
	cmd := exec.Command(path, "--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+addr, "--web.enable-otlp-receiver")
	cmd.Stdout, cmd.Stderr = log, log
	c := must.Have(child.Start(cmd))
	t.Cleanup(func() {
		c.Kill()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("%s", text)
		}
	})
	p := &server{url: "http://" + addr}
	err := c.Await(func() error {
		resp, err := http.Get(p.url + "/-/ready")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				err = errors.New(resp.Status)
			}
		}
		return err
	}, 50*time.Millisecond, time.Minute) // beside other work, ten seconds were too few
	if err != nil {
		t.Fatalf("prometheus: %v", err)
	}
	return p
}

// point is a value at a time.
type point struct{ T, V float64 }

func (p *point) UnmarshalJSON(b []byte) error {
	var text string
	if err := json.Unmarshal(b, &[]any{&p.T, &text}); err != nil {
		return err
	}
	var err error
	p.V, err = strconv.ParseFloat(text, 64)
	return err
}

type answer struct {
	Metric map[string]string
	Value  point
}

// ask returns the answer to a query for one moment.
func (p *server) ask(t *testing.T, expr string, at float64) []answer {
	t.Helper()
	v := url.Values{"query": {expr}, "time": {strconv.FormatFloat(at, 'f', 3, 64)}}
	resp := must.Have(http.PostForm(p.url+"/api/v1/query", v))
	defer resp.Body.Close()
	var body struct {
		Status, Error string
		Data          struct{ Result []answer }
	}
	if err := json.NewDecoder(resp.Body).Decode(&body); err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	if body.Status != "success" {
		t.Fatalf("%s: %s", expr, body.Error)
	}
	return body.Data.Result
}
