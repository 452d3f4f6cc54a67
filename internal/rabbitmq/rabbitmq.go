// Package rabbitmq starts a RabbitMQ for tests and comparisons: the one that is installed, as a child
// of the process, with which it ends.
package rabbitmq

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lullgo/lull/internal/child"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/ports"
	"github.com/lullgo/lull/internal/tail"
)

// UseServer is the variable that names a program to start instead of the RabbitMQ that is
// installed: a distribution's sbin/rabbitmq-server.
const UseServer = "LULLAMQP_RABBITMQ_SERVER"

// A Server is a RabbitMQ with a directory of its own and ports of its own on 127.0.0.1, that
// can be stopped and started again. Dir is to be removed by who has made it.
type Server struct {
	Dir        string
	Port       int        // of AMQP
	Management int        // of the HTTP API, if it serves that: see Manage
	Log        *tail.Tail // the last that it has written since Start

	ready         func(url string) error
	program, epmd string
	child         *child.Child
}

// ErrAbsent is why there is none: RabbitMQ is not installed.
var ErrAbsent = errors.New("no RabbitMQ")

// New is one that is not started yet. It takes messages until it uses that much memory, such as
// "1GB". ready asks whether it answers.
func New(memory string, ready func(url string) error) (n *Server, err error) {
	defer must.Catch(&err)
	program, epmd, err := programs()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAbsent, err)
	}
	dir := must.Have(os.MkdirTemp("", "lullamqp"))
	n = &Server{Dir: dir, ready: ready, program: program, epmd: epmd}
	must.Succeed(ports.Free(&n.Port, &n.Management))
	conf := fmt.Sprintf("listeners.tcp.1 = 127.0.0.1:%d\nmanagement.tcp.ip = 127.0.0.1\nmanagement.tcp.port = %d\n"+
		"log.console.level = warning\ndisk_free_limit.absolute = 50MB\nvm_memory_high_watermark.absolute = %s\n", n.Port, n.Management, memory)
	for name, text := range map[string]string{"rabbitmq.conf": conf, "advanced.config": "[].\n", "enabled_plugins": "[].\n"} {
		must.Succeed(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	for _, name := range []string{"home", "mnesia", "log", "plugins"} {
		must.Succeed(os.Mkdir(filepath.Join(dir, name), 0o755))
	}
	n.install()
	return n, nil
}

// install has the server start from n.Dir, with links to what it needs of the distribution. Erlang looks for each
// module in every plugin's directory, so that a start with all of them takes nearly twice as long.
func (n *Server) install() {
	program := must.Have(filepath.EvalSymlinks(n.program))
	sbin := filepath.Dir(program)
	plugins, _ := filepath.Glob(filepath.Join(sbin, "../plugins/*"))
	if len(plugins) == 0 {
		must.Fail("%s has no plugins in ../plugins: name a distribution's sbin/rabbitmq-server in %s", sbin, UseServer)
	}
	for _, plugin := range plugins {
		name, _, _ := strings.Cut(filepath.Base(plugin), "-") // without the version
		if strings.HasPrefix(name, "rabbitmq_") && !slices.Contains([]string{"rabbitmq_prelaunch", "rabbitmq_management", "rabbitmq_management_agent", "rabbitmq_web_dispatch"}, name) {
			continue
		}
		must.Succeed(os.Symlink(plugin, filepath.Join(n.Dir, "plugins", filepath.Base(plugin))))
	}
	n.program = filepath.Join(n.Dir, "sbin", filepath.Base(program))
	must.Succeed(os.Symlink(sbin, filepath.Join(n.Dir, "sbin")))
}

// Set changes settings of the application rabbit that rabbitmq.conf may not know, each an Erlang term such as
// {consumer_timeout,1000}, before Start. They take the place of those set before.
func (n *Server) Set(settings ...string) error {
	text := "[{rabbit,[" + strings.Join(settings, ",") + "]}].\n"
	return os.WriteFile(filepath.Join(n.Dir, "advanced.config"), []byte(text), 0o644)
}

// Manage has it serve the HTTP API too, from the next Start on. It takes a second longer to start then, and five to stop.
func (n *Server) Manage() error {
	return os.WriteFile(filepath.Join(n.Dir, "enabled_plugins"), []byte("[rabbitmq_management].\n"), 0o644)
}

// HandOn is the setting for how soon a delay level tries again to hand on what no queue has taken.
func HandOn(after time.Duration) string {
	return fmt.Sprintf("{dead_letter_worker_publisher_confirm_timeout,%d}", after.Milliseconds())
}

// script runs the server and its port mapper until it reads a line, or its standard input ends: with the
// process of the test, however that ends. The mapper first, and until it answers: the server would start one of
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

// Start starts it, and returns when it answers.
func (n *Server) Start() error {
	for try := 1; ; try++ {
		err := n.launch()
		if err == nil || try == 2 {
			return err
		}
	}
}

func (n *Server) launch() error {
	in := func(name string) string { return filepath.Join(n.Dir, name) }
	// Each start has new ones: another process may have taken those of the start before.
	var mapper, nodes int
	if err := ports.Free(&mapper, &nodes); err != nil {
		return err
	}
	cmd := exec.Command("sh", "-c", script, "sh", n.epmd, n.program)
	cmd.Dir, cmd.SysProcAttr = n.Dir, child.OwnGroup()
	cmd.Env = append(os.Environ(),
		"HOME="+in("home"),
		fmt.Sprint("ERL_EPMD_PORT=", mapper), "ERL_EPMD_ADDRESS=127.0.0.1",
		fmt.Sprintf("RABBITMQ_NODENAME=lull%d@localhost", n.Port), fmt.Sprint("RABBITMQ_NODE_PORT=", n.Port), "RABBITMQ_NODE_IP_ADDRESS=127.0.0.1",
		fmt.Sprint("RABBITMQ_DIST_PORT=", nodes),
		"RABBITMQ_MNESIA_BASE="+in("mnesia"), "RABBITMQ_LOG_BASE="+in("log"), "RABBITMQ_PID_FILE="+in("pid"), "RABBITMQ_GENERATED_CONFIG_DIR="+in("gen"),
		"RABBITMQ_FEATURE_FLAGS_FILE="+in("feature_flags"), "RABBITMQ_CONFIG_FILE="+in("rabbitmq.conf"), "RABBITMQ_ADVANCED_CONFIG_FILE="+in("advanced.config"), "RABBITMQ_ENABLED_PLUGINS_FILE="+in("enabled_plugins"),
		"RABBITMQ_PLUGINS_DIR="+in("plugins"), "RABBITMQ_CONF_ENV_FILE=/dev/null", "RABBITMQ_LOGS=-",
		// +stbt u: otherwise the threads of all servers that run at a time would be bound to the same cores, and most
		// work of a start is done by the first thread.
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=+S 2:2 +stbt u +sbwt none +A 8 -start_epmd false -kernel inet_dist_use_interface {127,0,0,1}",
	)
	n.Log = &tail.Tail{}
	cmd.Stdout, cmd.Stderr = n.Log, n.Log
	var err error
	if n.child, err = child.Start(cmd); err != nil {
		return err
	}
	err = n.child.Await(func() error {
		if strings.Contains(n.Log.String(), "the server has ended") {
			n.child.In.Close()
		}
		return n.ready(n.URL())
	}, 100*time.Millisecond, 2*time.Minute)
	if err != nil {
		n.Kill()
		return fmt.Errorf("%s: %w\n%s", n.program, err, n.Log)
	}
	return nil
}

// Stop ends the server as one should.
func (n *Server) Stop() {
	io.WriteString(n.child.In, "stop\n")
	select {
	case <-n.child.Ended:
	case <-time.After(30 * time.Second):
		n.Kill()
	}
}

// Kill ends the server at once.
func (n *Server) Kill() { n.child.CloseInput() }

// URL is where it is, for the user guest.
func (n *Server) URL() string { return fmt.Sprintf("amqp://guest:guest@127.0.0.1:%d/", n.Port) }

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
	if program = os.Getenv(UseServer); program != "" {
		program, err = exec.LookPath(program)
		return program, epmd, err
	}
	found, _ := filepath.Glob("/usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin/rabbitmq-server")
	slices.Sort(found)
	if len(found) == 0 {
		return "", "", errors.New("no /usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin/rabbitmq-server: install RabbitMQ (apt-get install rabbitmq-server), or name one in " + UseServer)
	}
	return found[len(found)-1], epmd, nil
}
