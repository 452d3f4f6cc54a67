package main

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/lullgo/lull/internal/child"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/ports"
)

// A door is an address of a proxy, and the origin of the server behind it.
type door struct {
	to      string
	ingress string // the settings of an ingress door of lull; empty: it is not one
	listen  string
}

func (d door) host() string { return must.Have(url.Parse(d.to)).Host }
func (d door) tls() bool    { return strings.HasPrefix(d.to, "https:") }

// A peer is a proxy that is compared. It makes four attempts in all, of ten seconds each, if it makes retries: after a
// connection that breaks, and after 500, 502, 503 and 504, as far as it can. What it repeats and how long it waits is its own.
type peer struct {
	name string
	// config returns the text of its file for doors, and its command. ca is a file with the certificate that signs those of the servers.
	config func(doors []door, ca, folder string) (text string, command []string)
	drain  syscall.Signal // ends it when all requests are answered
	reload syscall.Signal // zero: it is not reloaded by a signal
}

// Those of Linux: Windows has no names for them.
const sigUSR1, sigUSR2 = syscall.Signal(10), syscall.Signal(12)

var peers = []peer{
	{"bare", bareConfig, syscall.SIGTERM, 0},
	{"lull", lullConfig, syscall.SIGTERM, syscall.SIGHUP},
	{"caddy", caddyConfig, syscall.SIGTERM, sigUSR1},
	{"haproxy", haproxyConfig, sigUSR1, sigUSR2},
	{"nginx", nginxConfig, syscall.SIGQUIT, syscall.SIGHUP},
}

func peerNamed(name string) peer {
	i := slices.IndexFunc(peers, func(p peer) bool { return p.name == name })
	if i < 0 {
		must.Fail("--peers: no proxy is named %q: want bare, lull, caddy, haproxy or nginx", name)
	}
	return peers[i]
}

// each returns the text of head, of one for each door, and of tail.
func each(doors []door, head string, one func(i int, d door) string, tail string) string {
	var b strings.Builder
	b.WriteString(head)
	for i, d := range doors {
		b.WriteString(one(i, d))
	}
	return b.String() + tail
}

func bareConfig(doors []door, ca, _ string) (string, []string) {
	command := []string{must.Have(os.Executable()), "bare", ca}
	for _, d := range doors {
		command = append(command, d.listen+"="+d.to)
	}
	return "", command
}

// lullConfig is the zero policy.
func lullConfig(doors []door, ca, folder string) (string, []string) {
	text, upstreams := "version: 1\nlog: {to: none}\n", ""
	for i, d := range doors {
		switch {
		case d.ingress != "":
			text += fmt.Sprintf("ingress: {listen: %q, to: %q, %s}\n", d.listen, d.to, d.ingress)
		case d.tls():
			upstreams += fmt.Sprintf("  door-%d: {listen: %q, to: [%q], ca: %q}\n", i, d.listen, d.to, ca)
		default:
			upstreams += fmt.Sprintf("  door-%d: {listen: %q, to: [%q]}\n", i, d.listen, d.to)
		}
	}
	if upstreams != "" {
		text += "upstreams:\n" + upstreams
	}
	return text, []string{lullProgram(), "proxy", filepath.Join(folder, "config")}
}

func caddyConfig(doors []door, ca, folder string) (string, []string) {
	head := fmt.Sprintf("{\n admin off\n auto_https off\n persist_config off\n storage file_system %s\n log {\n  output discard\n }\n}\n", folder)
	return each(doors, head, func(_ int, d door) string {
		_, port, _ := net.SplitHostPort(d.listen)
		tls := ""
		if d.tls() {
			tls = "\n   tls_trust_pool file " + ca + "\n   tls_server_name localhost\n   versions 1.1 2"
		}
		return fmt.Sprintf(`http://:%s {
 bind 127.0.0.1
 reverse_proxy %s {
  lb_retries 3
  lb_try_duration 10s
  lb_retry_match {
   method GET HEAD PUT DELETE OPTIONS
  }
  lb_retry_match {
   expression `+"`{method} in ['GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS'] && {rp.status_code} in [500, 502, 503, 504]`"+`
  }
  transport http {
   response_header_timeout 10s%s
  }
 }
}
`, port, d.to, tls)
	}, ""), []string{program("caddy"), "run", "--adapter", "caddyfile", "--config", filepath.Join(folder, "config")}
}

func haproxyConfig(doors []door, ca, folder string) (string, []string) {
	return each(doors, `global
 maxconn 5000
defaults
 mode http
 timeout connect 10s
 timeout client 60s
 timeout server 10s
 retries 3
 retry-on conn-failure empty-response junk-response response-timeout 0rtt-rejected 500 502 503 504
`, func(i int, d door) string {
		tls := ""
		if d.tls() {
			tls = " ssl verify required verifyhost localhost alpn h2,http/1.1 ca-file " + ca
		}
		return fmt.Sprintf("listen door-%d\n bind %s\n http-request disable-l7-retry if METH_POST || { method PATCH }\n server one %s%s\n", i, d.listen, d.host(), tls)
	}, ""), []string{program("haproxy"), "-db", "-f", filepath.Join(folder, "config")}
}

// nginxConfig has each server four times, since nginx asks each of an upstream once.
func nginxConfig(doors []door, ca, folder string) (string, []string) {
	return each(doors, fmt.Sprintf(`daemon off;
user root;
worker_processes auto;
pid %[1]s/pid;
error_log /dev/null;
events { worker_connections 8192; }
http {
access_log off;
client_max_body_size 0;
keepalive_requests 1000000000;
client_body_temp_path %[1]s; proxy_temp_path %[1]s; fastcgi_temp_path %[1]s; uwsgi_temp_path %[1]s; scgi_temp_path %[1]s;
proxy_http_version 1.1;
proxy_set_header Connection "";
proxy_read_timeout 10s;
proxy_next_upstream error timeout invalid_header http_500 http_502 http_503 http_504;
`, folder), func(i int, d door) string {
		scheme, tls := "http", ""
		if d.tls() {
			scheme, tls = "https", "proxy_ssl_verify on; proxy_ssl_server_name on; proxy_ssl_name localhost; proxy_ssl_trusted_certificate "+ca+";"
		}
		return fmt.Sprintf("upstream u%d { %s keepalive 64; keepalive_requests 1000000000; }\nserver { listen %s; location / { proxy_pass %s://u%[1]d; %[5]s } }\n",
			i, strings.Repeat("server "+d.host()+" max_fails=0; ", 4), d.listen, scheme, tls)
	}, "}\n"), []string{program("nginx"), "-e", "/dev/null", "-c", filepath.Join(folder, "config")}
}

// program returns the path of a program: in the folder --programs, the PATH, or where Debian has it.
func program(name string) string {
	for _, folder := range append([]string{options.programs}, filepath.SplitList(os.Getenv("PATH")+":/usr/sbin")...) {
		if path, err := exec.LookPath(filepath.Join(folder, name)); err == nil {
			return path
		}
	}
	must.Fail("%s is not installed: lab/proxies/install.sh FOLDER installs the proxies, and --programs FOLDER names them", name)
	return ""
}

// A running is a proxy that has been started.
type running struct {
	*child.Child
	peer   peer
	folder string
	doors  []door
	ca     string
}

// start starts a proxy with a door to each origin. It takes requests when start returns. Another program may have taken a port
// meanwhile, so it tries three times.
func (p peer) start(ca string, doors ...door) (r *running, err error) {
	for range 3 {
		if r, err = p.startOnce(ca, doors); err == nil {
			return r, nil
		}
	}
	return nil, err
}

func (p peer) startOnce(ca string, doors []door) (_ *running, err error) {
	defer must.Catch(&err)
	r := &running{peer: p, folder: must.Have(os.MkdirTemp("", "lull-proxies-")), ca: ca}
	free, all := make([]int, len(doors)), make([]*int, len(doors))
	for i := range free {
		all[i] = &free[i]
	}
	must.Succeed(ports.Free(all...))
	for i, d := range doors {
		d.listen = fmt.Sprint("127.0.0.1:", free[i])
		r.doors = append(r.doors, d)
	}
	must.Succeed(r.run())
	return r, nil
}

// run starts the program, again if another one has ended.
func (r *running) run() error {
	text, command := r.peer.config(r.doors, r.ca, r.folder)
	if err := os.WriteFile(filepath.Join(r.folder, "config"), []byte(text), 0o600); err != nil {
		return err
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.SysProcAttr, cmd.Stderr = child.OwnGroup(), os.Stderr
	if !options.verbose {
		f, err := os.Create(filepath.Join(r.folder, "stderr"))
		if err != nil {
			return err
		}
		defer f.Close()
		cmd.Stderr = f
	}
	var err error
	if r.Child, err = child.Start(cmd); err != nil {
		return err
	}
	if err := r.Await(r.ready, 5*time.Millisecond, 30*time.Second); err != nil {
		r.close()
		return fmt.Errorf("%s: %w (--verbose shows what it writes)", r.peer.name, err)
	}
	return nil
}

// ready returns nil if all doors are open.
func (r *running) ready() error {
	for _, d := range r.doors {
		conn, err := net.Dial("tcp", d.listen)
		if err != nil {
			return err
		}
		conn.Close()
	}
	return nil
}

// url returns the address of a door.
func (r *running) url(i int) string { return "http://" + r.doors[i].listen }

func (r *running) close() {
	child.KillGroup(r.Process)
	<-r.Ended
	os.RemoveAll(r.folder)
}
