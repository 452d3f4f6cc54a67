package torture

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lullgo/lull/internal/child"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/tail"
)

// Command returns a client that is a program: an adapter around the client that is graded.
//
// An argument may have the placeholders {url}, {method}, {body-file}, {timeout-ms} and {key}. Then the program makes one logical call, and
// exits with 0 if that succeeded. A program without {url} among its arguments stays up for a case, and reads calls from its
// standard input. docs/torture.md has the protocol, and what an adapter must not do.
//
// The environment variable LULL_TORTURE_CA names the file with the certificate of the cases, and
// so do the variables that the common libraries read.
func Command(name string, args []string) (Client, error) {
	switch {
	case len(args) == 0 || args[0] == "":
		return nil, errors.New("no command: give the program and its arguments, such as -- ./client {url} {method} {body-file}")
	case name == "":
		return nil, errors.New("the client has no name")
	}
	return &command{name: name, args: slices.Clone(args), exit: exitTimeout}, nil
}

type command struct {
	name string
	args []string
	exit time.Duration // exitWithin
}

func (c *command) Name() string { return c.name }

func (c *command) Start(ctx context.Context, e Env, _ bool) (Session, error) {
	environment := append(withoutProxies(os.Environ()),
		"LULL_TORTURE_CA="+e.CAFile, "SSL_CERT_FILE="+e.CAFile, "NODE_EXTRA_CA_CERTS="+e.CAFile, "CURL_CA_BUNDLE="+e.CAFile,
		"REQUESTS_CA_BUNDLE="+e.CAFile, "AWS_CA_BUNDLE="+e.CAFile, "PERL_LWP_SSL_CA_FILE="+e.CAFile, "DENO_CERT="+e.CAFile,
		"NO_PROXY=*", "no_proxy=*")
	if slices.ContainsFunc(c.args, func(arg string) bool { return strings.Contains(arg, "{url}") }) {
		return &processPerCall{args: c.args, env: environment}, nil
	}
	return startResident(ctx, c.args, environment, c.exit)
}

// withoutProxies returns variables without those that name a proxy. (An empty one is an error to
// some clients.)
func withoutProxies(environment []string) []string {
	return slices.DeleteFunc(environment, func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains([]string{"http_proxy", "https_proxy", "all_proxy"}, strings.ToLower(name))
	})
}

func lastLine(t *tail.Tail) string {
	text := strings.ToValidUTF8(t.String(), "?")
	return text[strings.LastIndexByte(text, '\n')+1:]
}

type processPerCall struct {
	args       []string
	env        []string
	firstDeath atomic.Pointer[string] // of the first that did not run to its end
}

func (p *processPerCall) single() bool  { return true }
func (p *processPerCall) Close() string { return "" }

// died returns why a process did not start, or which signal ended it. Empty: each ended by itself.
func (p *processPerCall) died() string {
	if why := p.firstDeath.Load(); why != nil {
		return *why
	}
	return ""
}

func (p *processPerCall) Call(ctx context.Context, c Call) Outcome {
	fill := strings.NewReplacer("{url}", c.URL, "{method}", c.Method, "{body-file}", c.File,
		"{timeout-ms}", strconv.FormatInt(c.Timeout.Milliseconds(), 10), "{key}", c.Key)
	args := make([]string, len(p.args))
	for i, arg := range p.args {
		args[i] = fill.Replace(arg)
	}
	var out tail.Tail
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = p.env, &out, &out
	cmd.SysProcAttr = child.OwnGroup()
	if err := cmd.Start(); err != nil {
		why := "the client does not start: " + err.Error()
		p.firstDeath.CompareAndSwap(nil, &why)
		return Outcome{Text: err.Error()}
	}
	stop := context.AfterFunc(ctx, func() { child.KillGroup(cmd.Process) })
	defer stop()
	cmd.WaitDelay = time.Second
	err := cmd.Wait()
	o := Outcome{OK: err == nil, Text: lastLine(&out)}
	if err != nil {
		o.Text = cmp.Or(o.Text, err.Error())
	}
	if err != nil && ctx.Err() == nil && cmd.ProcessState.ExitCode() < 0 {
		why := "the client died: " + err.Error()
		p.firstDeath.CompareAndSwap(nil, &why)
	}
	if ctx.Err() != nil {
		o.Ended = fmt.Sprintf("%v; process %d was ended", context.Cause(ctx), cmd.Process.Pid)
	}
	return o
}

type resident struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	errs   tail.Tail
	exit   time.Duration // how long it may take to end when its input has ended
	exited chan struct{} // closed when its output has ended, and its errors have been read

	mu      sync.Mutex
	waiting map[int]chan Outcome
}

// readyTimeout is how long a process may take to begin: a machine that starts thirty of them
// is busy.
const readyTimeout = time.Minute

func startResident(ctx context.Context, args, env []string, exit time.Duration) (_ *resident, err error) {
	defer must.Catch(&err)
	r := &resident{cmd: exec.Command(args[0], args[1:]...), exit: exit, exited: make(chan struct{}), waiting: map[int]chan Outcome{}}
	r.cmd.SysProcAttr, r.cmd.Env = child.OwnGroup(), env
	errs, out := must.Have(r.cmd.StderrPipe()), must.Have(r.cmd.StdoutPipe())
	r.stdin = must.Have(r.cmd.StdinPipe())
	must.Succeed(r.cmd.Start())
	ready, errsRead := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(errsRead)
		io.Copy(&r.errs, errs)
	}()
	go func() {
		defer close(r.exited)
		r.read(out, ready)
		// A process that has ended has closed both. One that closed only its output may go on for
		// as long as it likes.
		select {
		case <-errsRead:
		case <-time.After(time.Second):
		}
	}()
	timer := time.NewTimer(readyTimeout)
	defer timer.Stop()
	select {
	case <-ready:
		return r, nil
	case <-r.exited:
		err = fmt.Errorf("it ended before it was ready: %s", lastLine(&r.errs))
	case <-timer.C:
		err = fmt.Errorf("it was not ready after %v: it has to print the line \"ready\"", readyTimeout)
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	r.Close()
	return nil, err
}

func (r *resident) read(out io.Reader, ready chan struct{}) {
	scanner := bufio.NewScanner(out)
	for scanner.Scan() {
		line := scanner.Text()
		if line == "ready" && ready != nil {
			close(ready)
			ready = nil
			continue
		}
		id, o, ok := parseAnswer(line)
		if !ok {
			continue // what a library prints
		}
		r.mu.Lock()
		if c := r.waiting[id]; c != nil {
			delete(r.waiting, id)
			c <- o
		}
		r.mu.Unlock()
	}
	io.Copy(io.Discard, out) // after a line that is too long
}

func parseAnswer(line string) (id int, o Outcome, ok bool) {
	fields := strings.SplitN(line, "\t", 4)
	if len(fields) < 2 {
		return 0, o, false
	}
	id, err := strconv.Atoi(fields[0])
	if err != nil || id < 0 || fields[1] != "ok" && fields[1] != "failed" {
		return 0, o, false
	}
	o.OK = fields[1] == "ok"
	if len(fields) > 2 {
		o.Status, _ = strconv.Atoi(fields[2])
	}
	if len(fields) > 3 {
		o.Text = fields[3]
	}
	return id, o, true
}

func (r *resident) Call(ctx context.Context, c Call) Outcome {
	answer := make(chan Outcome, 1)
	line := fmt.Sprintf("%d\t%d\t%s\t%s\t%s\t%d\t%s\n", c.ID, c.Client, c.Method, c.URL, cmp.Or(c.File, "-"), c.Timeout.Milliseconds(), cmp.Or(c.Key, "-"))
	r.mu.Lock()
	r.waiting[c.ID] = answer
	_, err := io.WriteString(r.stdin, line)
	r.mu.Unlock()
	if err != nil {
		return Outcome{Text: "the client takes no more calls: " + err.Error() + "; " + lastLine(&r.errs)}
	}
	select {
	case o := <-answer:
		return o
	case <-r.exited:
		select {
		case o := <-answer:
			return o
		default:
			return Outcome{Text: "the client ended without an answer: " + lastLine(&r.errs)}
		}
	case <-ctx.Done():
		return Outcome{Text: "no answer", Ended: context.Cause(ctx).Error()}
	}
}

// died returns how the process ended although its input had not.
func (r *resident) died() string {
	select {
	case <-r.exited:
		return "the client ended in the midst of the case: " + cmp.Or(lastLine(&r.errs), "it wrote no error")
	default:
		return ""
	}
}

// exitTimeout is how long a process may take to end when its input has ended.
const exitTimeout = 10 * time.Second

// Close ends the process. The result names what was wrong with how it ended.
func (r *resident) Close() string {
	r.mu.Lock()
	open := len(r.waiting)
	r.mu.Unlock()
	r.stdin.Close()
	timer := time.NewTimer(r.exit)
	defer timer.Stop()
	note := ""
	select {
	case <-r.exited:
	case <-timer.C:
		if open == 0 {
			note = fmt.Sprintf("process %d did not exit at the end of its input, and was ended", r.cmd.Process.Pid)
		}
	}
	child.KillGroup(r.cmd.Process) // and what it has started
	r.cmd.Wait()
	return note
}
