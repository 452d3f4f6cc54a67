//go:build servers

package lullsqs

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/pace"
	"github.com/lullgo/lull/internal/ports"
	"github.com/lullgo/lull/queue"
	"github.com/lullgo/lull/queue/queuetest"
)

// useEmulator is the variable with the folder into which internal/emulator's package-lock.json is
// installed. Empty: lull/sqs-emulator in the user's cache folder.
const useEmulator = "LULLSQS_EMULATOR"

//go:embed internal/emulator/package-lock.json
var lock []byte

func init() {
	admins["emulator"] = func(t *testing.T) Admin { return emulators.need(t, "kept").client() }
}

func TestMain(m *testing.M) {
	pace.Overlap(64) // more than queuetest.Main would: most of the time they wait for leases, and seconds
	if _, _, err := installed(); err != nil && os.Getenv("CI") == "" {
		pace.Skip("^Example(Declare|Queue_Letters)?$")
	}
	code := queuetest.Main(m, connect)
	emulators.stop()
	os.Exit(code)
}

// An emulator is a child process on a free port of 127.0.0.1, with its data in a
// folder. There are several, so that tests which restart theirs may run beside others.
type emulator struct {
	node, folder, data string

	mu    sync.Mutex
	port  int
	cmd   *exec.Cmd
	stdin io.Closer
	ended chan struct{}
}

var emulators running

type running struct {
	mu  sync.Mutex
	all map[string]*emulator
}

// need returns the emulator of that name. If none can be started the test is skipped or, if CI is
// set, fails.
func (r *running) need(t testing.TB, name string) *emulator {
	t.Helper()
	if _, _, err := installed(); err != nil && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	return must.Have(r.get(name))
}

func (r *running) get(name string) (*emulator, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.all[name]; e != nil {
		return e, nil
	}
	node, folder, err := installed()
	if err != nil {
		return nil, err
	}
	data, err := os.MkdirTemp("", "lullsqs")
	if err != nil {
		return nil, err
	}
	e := &emulator{node: node, folder: folder, data: data}
	if err := ports.Free(&e.port); err != nil {
		return nil, err
	}
	if err := e.start(); err != nil {
		return nil, err
	}
	if r.all == nil {
		r.all = map[string]*emulator{}
	}
	r.all[name] = e
	return e, nil
}

func (r *running) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.all {
		e.end()
		os.RemoveAll(e.data)
	}
}

// installed finds the emulator and a Node.js that can run it.
func installed() (node, folder string, err error) {
	folder = os.Getenv(useEmulator)
	if folder == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", "", err
		}
		folder = filepath.Join(cache, "lull", "sqs-emulator")
	}
	there, err := os.ReadFile(filepath.Join(folder, "package-lock.json"))
	if err == nil {
		_, err = os.Stat(filepath.Join(folder, "node_modules", "fauxqs"))
	}
	const how = "copy package.json and package-lock.json of integrations/lullsqs/internal/emulator there, and run in it: npm ci --ignore-scripts (or name another folder in " + useEmulator + ")"
	if err != nil {
		return "", "", fmt.Errorf("no emulator of SQS in %s: %s: %w", folder, how, err)
	}
	if !bytes.Equal(bytes.ReplaceAll(there, []byte("\r"), nil), bytes.ReplaceAll(lock, []byte("\r"), nil)) {
		return "", "", fmt.Errorf("the emulator of SQS in %s is another version: %s", folder, how)
	}
	system, arch, program := runtime.GOOS, map[string]string{"amd64": "x64"}[runtime.GOARCH], "node"
	if arch == "" {
		arch = runtime.GOARCH
	}
	if system == "windows" {
		system, program = "win", "node.exe"
	}
	node = filepath.Join(folder, "node_modules", "node-"+system+"-"+arch, "bin", program)
	if _, err := os.Stat(node); err == nil {
		return node, folder, nil
	}
	node, err = exec.LookPath("node")
	if err == nil {
		out, _ := exec.Command(node, "--version").Output()
		major, minor := 0, 0
		fmt.Sscanf(string(out), "v%d.%d", &major, &minor)
		if major < 22 || major == 22 && minor < 5 {
			err = fmt.Errorf("%s is %s", node, bytes.TrimSpace(out))
		}
	}
	if err != nil {
		return "", "", fmt.Errorf("the emulator of SQS needs Node.js 22.5 or later: %w", err)
	}
	return node, folder, nil
}

func (e *emulator) start() error {
	script, err := filepath.Abs(filepath.Join("internal", "emulator", "emulator.mjs"))
	if err != nil {
		return err
	}
	cmd := exec.Command(e.node, "--no-warnings", script, e.folder, strconv.Itoa(e.port), e.data)
	stderr := &bytes.Buffer{}
	cmd.Stderr, cmd.Dir = stderr, e.data
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if e.stdin, err = cmd.StdinPipe(); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		io.Copy(io.Discard, stdout)
		cmd.Wait()
	}()
	e.cmd, e.ended = cmd, ended
	if err == nil {
		e.port, err = strconv.Atoi(strings.TrimSpace(line))
	}
	if err != nil {
		cmd.Process.Kill()
		<-ended
		return fmt.Errorf("the emulator of SQS does not start: %w\n%s", err, stderr)
	}
	return nil
}

// end kills the emulator: its data must survive that.
func (e *emulator) end() {
	e.stdin.Close()
	e.cmd.Process.Kill()
	<-e.ended
}

func (e *emulator) restart(t testing.TB) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.end()
	for range 50 { // the port may not be free at once
		err := e.start()
		if err == nil {
			return
		}
		t.Log(err)
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("the emulator does not start again")
}

func (e *emulator) client() *sqs.Client { return clientOf(fmt.Sprintf("http://127.0.0.1:%d", e.port)) }

// declare makes a queue and its queue of dead letters.
func (e *emulator) declare(t testing.TB, o queuetest.Options) string {
	t.Helper()
	config := must.Have(Declare(t.Context(), e.client(), Topology{Queue: newName(t, o.Order == queue.PerGroup), Policy: lull.Policy{Attempts: max(o.Attempts, 1)}}))
	config.Wait = time.Second
	text, _ := json.Marshal(address{Endpoint: fmt.Sprintf("http://127.0.0.1:%d", e.port), Config: config, Lease: o.Lease})
	return string(text)
}

func connect(_ context.Context, text string) (*queuetest.Connection, error) {
	var a address
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		return nil, err
	}
	client := clientOf(a.Endpoint)
	return connection(client, client, a)
}

// Slow tests wait for most of their time. They run beside the rest, on an emulator of their own,
// which they may restart.

// lease is long enough for the emulator to answer several times: it is slow on a busy machine.
func lease() time.Duration { return min(pace.Stretch(2*time.Second), 6*time.Second) }

func TestConformance(t *testing.T) { conforms(t, queue.Unordered) }

func TestConformanceInGroups(t *testing.T) { conforms(t, queue.PerGroup) }

func conforms(t *testing.T, order queue.Order) {
	t.Parallel()
	e := emulators.need(t, order.String()) // one for each: it uses no more than one core
	queuetest.Run(t, queuetest.Target{
		Declare: e.declare, Connect: connect, Restart: e.restart, Orders: []queue.Order{order},
	})
}

func TestNothingLost(t *testing.T) {
	t.Parallel()
	e := emulators.need(t, "nothing lost")
	queuetest.NothingLost(t, queuetest.Target{
		Declare: e.declare, Connect: connect, Restart: e.restart, Lease: lease(),
		Messages: 1000, // half as many as by default: it is the work of the emulator that takes time
	})
}

// A failing message delays its group, for a second at least: 10,000 would take minutes.
func TestNothingLostInGroups(t *testing.T) {
	t.Parallel()
	e := emulators.need(t, "nothing lost in groups")
	queuetest.NothingLost(t, queuetest.Target{
		Declare: e.declare, Connect: connect, Restart: e.restart, Lease: lease(),
		Orders: []queue.Order{queue.PerGroup}, Messages: 1000,
	})
}
