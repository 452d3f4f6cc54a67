package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"embed"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/lullgo/lull/internal/must"
)

//go:embed server.py server.js nginx.conf
var scripts embed.FS

// A definition is a server that can be measured. Its arguments are followed by the folder, which has cert.pem and key.pem, and by its
// ports. Where %s is one of them, it stands for its script, in which such words are replaced.
type definition struct {
	name, program, script string // no program: this one
	args                  []string
	noWork                bool
}

var servers = []definition{
	{name: "net/http", args: []string{"-serve"}},
	{name: "Python http.server", program: "python3", script: "server.py", args: []string{"threads"}},
	{name: "Python asyncio", program: "python3", script: "server.py", args: []string{"asyncio"}},
	{name: "Node http", program: "node", script: "server.js"},
	{name: "nginx", program: "nginx", script: "nginx.conf", noWork: true},
}

type running struct {
	def   definition
	cmd   *exec.Cmd
	dir   string
	ports [3]string // addresses
}

// start starts a server. It returns an error if its program is not installed.
func start(ctx context.Context, d definition) (r *running, err error) {
	program, err := os.Executable()
	if d.program != "" {
		program, err = exec.LookPath(d.program)
	}
	if err != nil {
		return nil, fmt.Errorf("%s was not found", d.program)
	}
	defer must.Catch(&err)
	r = &running{def: d, dir: must.Have(os.MkdirTemp("", "refusal"))}
	args := append(d.args[:len(d.args):len(d.args)], r.dir)
	words := []string{"{{page}}", page}
	var free []net.Listener
	for i, name := range []string{"{{plain}}", "{{secure}}", "{{closed}}"} {
		l := must.Have(net.Listen("tcp", "127.0.0.1:0"))
		free = append(free, l) // until all are found
		r.ports[i] = l.Addr().String()
		_, port, _ := net.SplitHostPort(r.ports[i])
		args, words = append(args, port), append(words, name, port)
	}
	for _, l := range free {
		l.Close()
	}
	if d.script != "" {
		script := filepath.Join(r.dir, d.script)
		text := strings.NewReplacer(words...).Replace(string(must.Have(scripts.ReadFile(d.script))))
		must.Succeed(os.WriteFile(script, []byte(text), 0o600))
		if args = append([]string{script}, args...); d.noWork {
			args = []string{"-p", r.dir, "-c", script}
		}
	}
	writeCertificate(r.dir)
	log := must.Have(os.Create(filepath.Join(r.dir, "log")))
	defer log.Close()
	r.cmd = exec.CommandContext(ctx, program, args...)
	r.cmd.Stderr = log
	must.Succeed(r.cmd.Start())
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
	return r, nil
}

func (r *running) stop() {
	r.cmd.Process.Kill()
	r.cmd.Wait()
	os.RemoveAll(r.dir)
}

func (d definition) version() string {
	if d.program == "" {
		return runtime.Version()
	}
	flag := "--version"
	if d.noWork {
		flag = "-v"
	}
	out, _ := exec.Command(d.program, flag).CombinedOutput()
	return d.program + " " + regexp.MustCompile("[0-9][0-9.]*").FindString(string(out))
}

func (r *running) cpu() time.Duration {
	return must.Have(cpuTime(string(must.Have(os.ReadFile(fmt.Sprintf("/proc/%d/stat", r.cmd.Process.Pid))))))
}

// tick is the resolution of CPU times in /proc.
const tick = 10 * time.Millisecond

// cpuTime is the time of a process in user mode and in the kernel, of its /proc/PID/stat: fields 14 and 15, in ticks. The second field
// is the name of the program in parentheses, in which anything may stand.
func cpuTime(stat string) (time.Duration, error) {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 || fields[0] == "Z" {
		return 0, errors.New("the process has ended, or this is no Linux")
	}
	user, err := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * tick, errors.Join(err, err2)
}

var page = strings.Repeat("x", 1024)

// serve is the server of net/http. The arguments are the folder and the ports.
func serve(args []string) error {
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
