package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/child"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/ports"
	"github.com/lullgo/lull/lab/sim"
)

// A record is what an incident was in truth.
type record struct {
	from, to  time.Time
	succeeded float64 // share of calls
	attempts  float64 // for each call
	recovery  sim.Recovery
}

// live has a scenario happen on sockets of 127.0.0.1: the fleet, nginx and the hosts of the service. With a folder,
// nginx, the service and Prometheus record it there.
func live(ctx context.Context, s sim.Scenario, p lull.Policy, seed uint64, folder string) (r record) {
	c := clock{time.Now().Add(3 * time.Second)}
	if folder != "" {
		c.began = c.began.Add(7 * time.Second) // Prometheus takes a while to start
	}
	serviceLog := io.Discard
	if folder != "" {
		file := must.Have(os.Create(filepath.Join(folder, "service.jsonl")))
		defer file.Close()
		serviceLog = file
	}
	var hosts []string
	for n := range max(s.Services[0].Hosts, 1) {
		h := openHost(c, &s.Services[0], n, seed, log.New(serviceLog, "", 0))
		defer h.server.Close()
		hosts = append(hosts, h.url)
	}
	temporary := must.Have(os.MkdirTemp("", "lull-learning-"))
	defer os.RemoveAll(temporary)
	accessLog := "/dev/null"
	if folder != "" {
		accessLog = filepath.Join(folder, "access.log")
	}
	nginx, url := startNginx(temporary, accessLog, hosts)
	defer nginx.Kill()
	f := openFleet(c, &s.Fleets[0], p, strings.TrimPrefix(url, "http://"))
	defer f.close()
	if folder != "" {
		prometheus, _ := startPrometheus(folder, f)
		defer prometheus.Kill()
	}
	if !time.Now().Before(c.began) {
		must.Fail("the servers took too long to start")
	}
	r.from = c.began
	f.run(ctx, s.Horizon, seed)
	r.to = time.Now()
	for _, call := range f.calls {
		if call.Succeeded {
			r.succeeded++
		}
	}
	r.succeeded /= float64(len(f.calls))
	r.attempts = float64(f.attempts.Load()) / float64(len(f.calls))
	r.recovery = must.Have(s.Judge(f.calls))
	if folder != "" {
		time.Sleep(2 * time.Second) // the last scrape
	}
	return r
}

func startNginx(folder, accessLog string, hosts []string) (*child.Child, string) {
	var port int
	must.Succeed(ports.Free(&port))
	config := fmt.Sprintf(`daemon off;
master_process off;
user root;
pid %[1]s/nginx.pid;
error_log /dev/null;
events { worker_connections 8192; }
http {
log_format timed '%[2]s';
access_log %[3]s timed;
client_body_temp_path %[1]s; proxy_temp_path %[1]s; fastcgi_temp_path %[1]s; uwsgi_temp_path %[1]s; scgi_temp_path %[1]s;
keepalive_requests 1000000000;
proxy_http_version 1.1;
proxy_set_header Connection "";
proxy_read_timeout 1h;
proxy_next_upstream off;
upstream api { random; server %[4]s max_fails=0; keepalive 512; keepalive_requests 1000000000; }
server { listen 127.0.0.1:%[5]d backlog=4096; location / { proxy_pass http://api; } }
}
`, folder, incidentFormat, accessLog, strings.Join(hosts, " max_fails=0; server "), port)
	file := filepath.Join(folder, "nginx.conf")
	must.Succeed(os.WriteFile(file, []byte(config), 0o600))
	return startServer(port, "", nginxProgram, "-e", "/dev/null", "-c", file)
}

const nginxProgram = "/usr/sbin/nginx" // as Debian has it

// prometheusProgram is where .ci/install-prometheus puts it.
func prometheusProgram() string {
	return filepath.Join(must.Have(os.UserCacheDir()), "lull", "prometheus", "prometheus")
}

// startPrometheus starts one on the data in a folder, which scrapes f unless it is nil.
func startPrometheus(folder string, f *fleet) (*child.Child, string) {
	var targets []string
	if f != nil {
		for _, x := range f.processes {
			targets = append(targets, fmt.Sprintf("%q", x.metrics.Addr()))
		}
	}
	file := filepath.Join(folder, "prometheus.yml")
	must.Succeed(os.WriteFile(file, fmt.Appendf(nil, "global: {scrape_interval: 1s, scrape_timeout: 1s}\nscrape_configs: [{job_name: shop, static_configs: [{targets: [%s]}]}]\n", strings.Join(targets, ", ")), 0o600))
	var port int
	must.Succeed(ports.Free(&port))
	return startServer(port, "/-/ready", prometheusProgram(), "--config.file="+file, "--storage.tsdb.path="+filepath.Join(folder, "data"), fmt.Sprint("--web.listen-address=127.0.0.1:", port))
}

// startServer starts a program that answers at a port, and returns its address.
func startServer(port int, ready, name string, args ...string) (*child.Child, string) {
	url := fmt.Sprint("http://127.0.0.1:", port)
	c := must.Have(child.Start(exec.Command(name, args...)))
	err := c.Await(func() error {
		if ready == "" { // without a request, which would be in the log
			conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
			if err == nil {
				conn.Close()
			}
			return err
		}
		resp, err := http.Get(url + ready)
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				err = fmt.Errorf("%s", resp.Status)
			}
		}
		return err
	}, 50*time.Millisecond, time.Minute)
	if err != nil {
		c.Kill()
		must.Fail("%s: %w", filepath.Base(name), err)
	}
	return c, url
}
