//go:build servers && linux

// Package refusal measures what it costs a server to refuse a request: the CPU time of its process for a 503, beside that of
// requests with 1 ms and 10 ms of work.
//
//	go test -tags servers -run '^$' -bench . ./lab/refusal        every server that is installed
//	go test -tags servers -run '^$' -bench /Node ./lab/refusal    one of them
//
// The servers are those of Go's, Python's and Node's standard libraries, and nginx (which has no work of its own), each in a process
// on 127.0.0.1. A 503 has an empty body, or one of 1 KB and a line in a log. The work is a loop. Eight callers ask at a time, on
// connections that they keep, or each time on a new one, also with TLS 1.3 and a full handshake (ECDSA P-256). "Closed" is a
// connection that the process accepts and closes at once.
//
// Only the CPU time of the server counts, as Linux has it in /proc. What else runs on the machine, the callers included, makes the
// measurement longer and changes little.
package refusal

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"embed"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/must"
)

// TestMain is the server of net/http in a process that was started with its folder and ports.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "-serve" {
		serve(os.Args[2:])
	}
	os.Exit(m.Run())
}

// BenchmarkRefusal reports the CPU time of a request.
func BenchmarkRefusal(b *testing.B) {
	for _, d := range installed(b) {
		b.Run(d.name, func(b *testing.B) {
			r := start(b, d)
			r.each(func(w way, q request) {
				b.Run(w.name+"/"+q.name, func(b *testing.B) {
					r.calls(16, w, q) // for cold caches
					begin := r.cpu()
					r.calls(b.N, w, q)
					b.ReportMetric(float64((r.cpu()-begin).Microseconds())/float64(b.N), "cpu-µs/op")
				})
			})
		})
	}
}

// Every server that is installed answers every request on every kind of connections.
func TestEveryServer(t *testing.T) {
	for _, d := range installed(t) {
		t.Run(d.name, func(t *testing.T) {
			r := start(t, d)
			r.each(func(w way, q request) { r.calls(16, w, q) })
		})
	}
}

// A request is what a caller sends, and the status of the answer.
type request struct {
	name, path string
	status     int
}

var requests = []request{
	{"503", "/refuse", 503},
	{"503 of 1 KB with a log", "/refuse/log", 503},
	{"200 of 1 ms", "/work/1", 200},
	{"200 of 10 ms", "/work/10", 200},
}

// A way is how the callers connect: to which of the server's ports, and whether they keep the connections.
type way struct {
	name string
	port int
	keep bool
}

// The ports of a server.
const (
	plain = iota
	secure
	closed // only net/http has it
)

var ways = []way{{"kept", plain, true}, {"new", plain, false}, {"new with TLS", secure, false}, {"closed", closed, false}}

//go:embed server.py server.js nginx.conf
var scripts embed.FS

// A definition is a server that can be measured. Its arguments are followed by the folder, which has cert.pem and key.pem, and by its
// ports. If it has a script, that is the first argument, and words in it are replaced.
type definition struct {
	name, program, script string // no program: this one
	args                  []string
	noWork                bool
}

var servers = []definition{
	{name: "net-http", args: []string{"-serve"}},
	{name: "Python http.server", program: "python3", script: "server.py", args: []string{"threads"}},
	{name: "Python asyncio", program: "python3", script: "server.py", args: []string{"asyncio"}},
	{name: "Node http", program: "node", script: "server.js"},
	{name: "nginx", program: "nginx", script: "nginx.conf", noWork: true},
}

// installed returns the servers whose program is there, and logs the others.
func installed(t testing.TB) (there []definition) {
	for _, d := range servers {
		if d.program == "" {
			d.program = must.Have(os.Executable())
		} else if _, err := exec.LookPath(d.program); err != nil {
			t.Logf("%s is left out: %v", d.name, err)
			continue
		}
		there = append(there, d)
	}
	return there
}

type running struct {
	def   definition
	pid   int
	ports [3]string // addresses
}

// start starts a server, for the duration of the test.
func start(t testing.TB, d definition) *running {
	r, dir := &running{def: d}, t.TempDir()
	args := append(d.args[:len(d.args):len(d.args)], dir)
	words := []string{"{{page}}", page}
	var free [3]net.Listener
	for i, name := range []string{"{{plain}}", "{{secure}}", "{{closed}}"} {
		free[i] = must.Have(net.Listen("tcp", "127.0.0.1:0"))
		r.ports[i] = free[i].Addr().String()
		_, port, _ := net.SplitHostPort(r.ports[i])
		args, words = append(args, port), append(words, name, port)
	}
	for _, l := range free { // now that all are found
		l.Close()
	}
	if d.script != "" {
		script := filepath.Join(dir, d.script)
		text := strings.NewReplacer(words...).Replace(string(must.Have(scripts.ReadFile(d.script))))
		must.Succeed(os.WriteFile(script, []byte(text), 0o600))
		if args = append([]string{script}, args...); d.noWork {
			args = []string{"-p", dir, "-c", script}
		}
	}
	writeCertificate(dir)
	cmd := exec.CommandContext(t.Context(), d.program, args...)
	cmd.Stderr = must.Have(os.Create(filepath.Join(dir, "log")))
	must.Succeed(cmd.Start())
	t.Cleanup(func() { cmd.Wait() }) // it is killed when the context of the test ends
	r.pid = cmd.Process.Pid
	for _, address := range r.ports[:secure+1] {
		for conn, err := net.Dial("tcp", address); ; conn, err = net.Dial("tcp", address) {
			if err == nil {
				conn.Close()
				break
			}
			r.cpu() // fails when it has ended
			time.Sleep(time.Millisecond)
		}
	}
	return r
}

// each calls do for what the server can be asked.
func (r *running) each(do func(way, request)) {
	for _, w := range ways {
		for i, q := range requests {
			switch {
			case w.port == closed && (r.def.script != "" || i > 0):
			case q.status == http.StatusOK && r.def.noWork:
			default:
				do(w, q)
			}
		}
	}
}

// calls makes n requests.
func (r *running) calls(n int, w way, q request) {
	var left atomic.Int64
	left.Store(int64(n))
	var group sync.WaitGroup
	var errs [8]error
	for i := range errs {
		c := caller{request: q, way: w, address: r.ports[w.port]}
		group.Go(func() {
			defer c.close()
			for left.Add(-1) >= 0 && errs[i] == nil {
				errs[i] = c.call()
			}
		})
	}
	group.Wait()
	for _, err := range errs {
		must.Succeed(err)
	}
}

// cpu returns the time of the server in user mode and in the kernel: fields 14 and 15 of its /proc/PID/stat, in ticks of 10 ms. The
// second field is the name of the program in parentheses, in which anything may stand.
func (r *running) cpu() time.Duration {
	stat := string(must.Have(os.ReadFile(fmt.Sprintf("/proc/%d/stat", r.pid))))
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if fields[0] == "Z" {
		must.Fail("%s has ended", r.def.name)
	}
	return time.Duration(must.Have(strconv.Atoi(fields[11]))+must.Have(strconv.Atoi(fields[12]))) * 10 * time.Millisecond
}

type caller struct {
	request
	way
	address string
	conn    net.Conn // nil: there is none
	reader  *bufio.Reader
}

func (c *caller) close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

func (c *caller) call() (err error) {
	defer must.Catch(&err)
	if c.conn == nil {
		c.conn = must.Have(net.Dial("tcp", c.address))
		if c.port == secure {
			c.conn = tls.Client(c.conn, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}) // it keeps no sessions
		}
		c.reader = bufio.NewReader(c.conn)
	}
	connection := "keep-alive"
	if !c.keep {
		defer c.close()
		connection = "close"
	}
	if c.port == closed {
		io.Copy(io.Discard, c.reader)
		return nil
	}
	must.Have(fmt.Fprintf(c.conn, "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: %s\r\n\r\n", c.path, connection))
	resp := must.Have(http.ReadResponse(c.reader, nil))
	defer resp.Body.Close()
	must.Have(io.Copy(io.Discard, resp.Body))
	if resp.StatusCode != c.status || resp.Close && c.keep {
		must.Fail("%s on a connection that is %s is answered with %s, close: %t", c.path, c.way.name, resp.Status, resp.Close)
	}
	return nil
}

var page = strings.Repeat("x", 1024)

// serve is the server of net/http. The arguments are the folder and the ports.
func serve(args []string) {
	var l [3]net.Listener
	for i, port := range args[1:] {
		l[i] = must.Have(net.Listen("tcp", "127.0.0.1:"+port))
	}
	millisecond := turnsOfAMillisecond()
	http.HandleFunc("/refuse", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	http.HandleFunc("/refuse/log", func(w http.ResponseWriter, r *http.Request) {
		log.Print("refused ", r.URL.Path)
		w.WriteHeader(http.StatusServiceUnavailable)
		io.WriteString(w, page)
	})
	http.HandleFunc("/work/{n}", func(w http.ResponseWriter, r *http.Request) {
		n := must.Have(strconv.Atoi(r.PathValue("n")))
		w.Header().Set("X-Work", strconv.FormatUint(uint64(spin(n*millisecond)), 10))
	})
	go http.Serve(l[plain], nil)
	go http.ServeTLS(l[secure], nil, filepath.Join(args[0], "cert.pem"), filepath.Join(args[0], "key.pem"))
	for {
		must.Have(l[closed].Accept()).Close()
	}
}

// spin is the work. It is not inlined, so that no compiler leaves it out.
//
//go:noinline
func spin(turns int) uint32 {
	x := uint32(1)
	for range turns {
		x = x*69069 + 1
	}
	return x
}

// turnsOfAMillisecond is for spin. It takes the quickest of many short runs, in which nothing else has run.
func turnsOfAMillisecond() int {
	const turns = 100_000
	best := time.Hour
	for range 300 {
		begin := time.Now()
		_ = spin(turns)
		best = min(best, time.Since(begin))
	}
	return int(turns * time.Millisecond / best)
}

// writeCertificate writes cert.pem, a certificate that nobody has signed, and key.pem.
func writeCertificate(dir string) {
	key := must.Have(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().AddDate(1, 0, 0)}
	for name, block := range map[string]*pem.Block{
		"cert.pem": {Type: "CERTIFICATE", Bytes: must.Have(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key))},
		"key.pem":  {Type: "PRIVATE KEY", Bytes: must.Have(x509.MarshalPKCS8PrivateKey(key))},
	} {
		must.Succeed(os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600))
	}
}
