package lullamqp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/lullgo/lull/queue/queuetest"
)

// useServer is the variable that names a program to start instead of the RabbitMQ that is
// installed: a distribution's sbin/rabbitmq-server.
const useServer = "LULLAMQP_RABBITMQ_SERVER"

// server is the RabbitMQ of these tests, started when the first of them wants it.
var server struct {
	once sync.Once
	*node
	err    error
	absent bool
}

func TestMain(m *testing.M) {
	code := queuetest.Main(m, connect)
	if server.node != nil {
		server.stop()
		os.RemoveAll(server.dir)
	}
	os.Exit(code)
}

// rabbit is the server. Without one the test is skipped; with CI set it fails.
func rabbit(t testing.TB) *node {
	t.Helper()
	server.once.Do(func() {
		if server.node, server.absent, server.err = newNode("1GB"); server.err == nil {
			if server.err = server.start(); server.err != nil {
				os.RemoveAll(server.dir)
				server.node = nil
			}
		}
	})
	if server.absent && os.Getenv("CI") == "" {
		t.Skip(server.err)
	}
	if server.err != nil {
		t.Fatal(server.err)
	}
	return server.node
}

// node is a RabbitMQ with a directory of its own and ports of its own on 127.0.0.1, that
// can be stopped and started again.
type node struct {
	program, epmd string
	dir           string
	port          int // of AMQP
	management    int // of the HTTP API
	others        [2]int
	cmd           *exec.Cmd
	stdin         io.WriteCloser
	ended         chan struct{}
}

// newNode is one that is not started yet. It takes messages until it uses that much memory.
func newNode(memory string) (n *node, absent bool, err error) {
	program, epmd, err := programs()
	if err != nil {
		return nil, true, err
	}
	dir, err := os.MkdirTemp("", "lullamqp")
	if err != nil {
		return nil, false, err
	}
	n = &node{program: program, epmd: epmd, dir: dir}
	for _, port := range []*int{&n.port, &n.management, &n.others[0], &n.others[1]} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, false, err
		}
		defer l.Close() // after all have one
		*port = l.Addr().(*net.TCPAddr).Port
	}
	conf := fmt.Sprintf("listeners.tcp.1 = 127.0.0.1:%d\nmanagement.tcp.ip = 127.0.0.1\nmanagement.tcp.port = %d\n"+
		"log.console.level = warning\ndisk_free_limit.absolute = 50MB\nvm_memory_high_watermark.absolute = %s\n", n.port, n.management, memory)
	for name, text := range map[string]string{"rabbitmq.conf": conf, "enabled_plugins": "[rabbitmq_management].\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return nil, false, err
		}
	}
	for _, name := range []string{"home", "mnesia", "log"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			return nil, false, err
		}
	}
	return n, false, nil
}

// script runs the server and its port mapper until its standard input says so, or ends: with the process
// of the test, however that ends. The mapper first, and until it answers: the server would start one of
// its own, which outlives all.
const script = `exec 3<&0
"$1" -port "$ERL_EPMD_PORT" -address 127.0.0.1 <&- 3<&- &
until "$1" -port "$ERL_EPMD_PORT" -names >/dev/null 2>&1 || ! kill -0 $!; do sleep 0.05; done
shift
("$@"; echo the server has ended) <&- 3<&- &
if read how <&3; then
	kill -TERM "$(cat "$RABBITMQ_PID_FILE")"
	wait $!
fi
kill -KILL 0`

func (n *node) start() error {
	for try := 1; ; try++ {
		err := n.launch()
		if err == nil || try == 2 {
			return err
		}
	}
}

func (n *node) launch() error {
	in := func(name string) string { return filepath.Join(n.dir, name) }
	n.cmd = exec.Command("sh", "-c", script, "sh", n.epmd, n.program)
	n.cmd.Dir = n.dir
	n.cmd.SysProcAttr = ownGroup()
	n.cmd.Env = append(os.Environ(),
		"HOME="+in("home"),
		fmt.Sprint("ERL_EPMD_PORT=", n.others[0]), "ERL_EPMD_ADDRESS=127.0.0.1",
		fmt.Sprintf("RABBITMQ_NODENAME=lull%d@localhost", n.port), fmt.Sprint("RABBITMQ_NODE_PORT=", n.port), "RABBITMQ_NODE_IP_ADDRESS=127.0.0.1",
		fmt.Sprint("RABBITMQ_DIST_PORT=", n.others[1]),
		"RABBITMQ_MNESIA_BASE="+in("mnesia"), "RABBITMQ_LOG_BASE="+in("log"), "RABBITMQ_PID_FILE="+in("pid"), "RABBITMQ_GENERATED_CONFIG_DIR="+in("gen"),
		"RABBITMQ_FEATURE_FLAGS_FILE="+in("feature_flags"), "RABBITMQ_CONFIG_FILE="+in("rabbitmq.conf"), "RABBITMQ_ENABLED_PLUGINS_FILE="+in("enabled_plugins"),
		"RABBITMQ_CONF_ENV_FILE=/dev/null", "RABBITMQ_LOGS=-",
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=+S 2:2 +sbwt none +A 8 -start_epmd false -kernel inet_dist_use_interface {127,0,0,1}",
	)
	log := &tail{}
	n.cmd.Stdout, n.cmd.Stderr = log, log
	var err error
	if n.stdin, err = n.cmd.StdinPipe(); err != nil {
		return err
	}
	if err := n.cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	n.ended = ended
	go func() {
		defer close(ended)
		n.cmd.Wait()
	}()
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline) && !strings.Contains(log.String(), "the server has ended"); time.Sleep(100 * time.Millisecond) {
		conn, err := amqp.DialConfig(n.url(), amqp.Config{})
		if err == nil {
			conn.Close()
			return nil
		}
	}
	n.kill()
	return fmt.Errorf("%s does not answer:\n%s", n.program, log)
}

// stop ends the server as one should.
func (n *node) stop() {
	io.WriteString(n.stdin, "stop\n")
	select {
	case <-n.ended:
	case <-time.After(30 * time.Second):
		n.kill()
	}
}

// kill ends the server at once.
func (n *node) kill() {
	n.stdin.Close()
	<-n.ended
}

func (n *node) url() string { return fmt.Sprintf("amqp://guest:guest@127.0.0.1:%d/", n.port) }

// restart stops the server, with or without warning, and starts it again.
func (n *node) restart(t testing.TB, end func()) {
	t.Helper()
	end()
	if err := n.start(); err != nil {
		t.Fatal(err)
	}
}

// programs finds rabbitmq-server and epmd. Debian's /usr/sbin/rabbitmq-server is a
// wrapper that changes to the user of the service.
func programs() (program, epmd string, err error) {
	if epmd, err = exec.LookPath("epmd"); err != nil {
		found, _ := filepath.Glob("/usr/lib/erlang/erts-*/bin/epmd")
		if len(found) == 0 {
			return "", "", errors.New("no epmd: install RabbitMQ (apt-get install rabbitmq-server)")
		}
		epmd = found[0]
	}
	if program = os.Getenv(useServer); program != "" {
		program, err = exec.LookPath(program)
		return program, epmd, err
	}
	found, _ := filepath.Glob("/usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin/rabbitmq-server")
	slices.Sort(found)
	if len(found) == 0 {
		return "", "", errors.New("no /usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin/rabbitmq-server: install RabbitMQ (apt-get install rabbitmq-server), or name one in " + useServer)
	}
	return found[len(found)-1], epmd, nil
}

// tail is the last that a program wrote.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (x *tail) Write(p []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.text = append(x.text, p...)
	x.text = x.text[max(0, len(x.text)-16000):]
	return len(p), nil
}

func (x *tail) String() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return string(x.text)
}

// testContext ends a minute from now.
func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}
