// Package proxy is the program of lull proxy: a file, its reload, listeners, signals, the admin listener and the access log
// around package server/proxy. The command lull proxy and the program lull-proxy run it.
package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/signal"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/proxy/file"
	"github.com/lullgo/lull/cmd/lull/internal/proxy/wiring"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/codec"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/internal/sleep"
	"github.com/lullgo/lull/server/idempotency"
	"github.com/lullgo/lull/server/proxy"
	"github.com/lullgo/lull/server/status"
)

// Exit codes.
const (
	exitDrained = 0
	exitFailed  = 1
	exitWrong   = 2 // the file or the flags
)

// A Program is lull proxy with its flags.
type Program struct {
	File       string // path
	To, Listen string // instead of a file: one door
	Check      bool   // the file only
	Replace    bool   // another process has the addresses of doors, and will end

	Stdout, Stderr io.Writer
	Getenv         func(string) string
}

// Run runs until ctx ends and all requests have been answered, and returns the exit code.
func (p Program) Run(ctx context.Context) int {
	signal.Ignore(syscall.SIGPIPE) // the reader of the log may end, and the proxy does not
	if p.Getenv("GOGC") == "" {
		debug.SetGCPercent(50) // most memory is that of connections, which lives long
	}
	r := &running{Program: p}
	code := exitWrong
	var err error
	if r.file, err = r.load(); err == nil && p.Check {
		code, err = r.check()
	} else if err == nil {
		code, err = r.run(ctx)
	}
	if err != nil {
		r.say(err)
	}
	return code
}

// check prints what the file means.
func (r *running) check() (code int, err error) {
	store := must.Have(idempotency.NewMemoryStore(idempotency.MemoryStoreConfig{}))
	if _, err := proxy.New(r.file.Config(), proxy.Wiring{Store: store}); err != nil { // files that it names
		return exitWrong, fmt.Errorf("%s: %w", r.File, err)
	}
	if _, err := io.WriteString(r.Stdout, describe(r.file)); err != nil {
		return exitFailed, err
	}
	return exitDrained, nil
}

// direct returns the file that --to and --listen stand for.
func (p Program) direct() (*file.File, error) {
	name := "upstream"
	if u, err := url.Parse(p.To); err == nil && u.Hostname() != "" {
		name = u.Hostname()
	}
	f := &file.File{Upstreams: map[string]proxy.Upstream{name: {Listen: cmp.Or(p.Listen, "127.0.0.1:9001"), To: []string{p.To}}}}
	wrong, _ := errors.AsType[problem.List](f.Config().Validate())
	for i, one := range wrong {
		wrong[i].Field = choice.Either(strings.HasSuffix(one.Field, ".Listen"), "--listen", "--to")
	}
	return f, wrong.Err()
}

// A running is a Program that runs.
type running struct {
	Program
	file    *file.File // at the start: what needs a restart is in force
	proxy   *proxy.Proxy
	log     *accessLog
	open    *opener
	wiring  *wiring.Wiring
	manager manager // that has started the process
	drain   context.CancelFunc
	ready   atomic.Bool // all doors are open, and the drain has not begun

	reloading sync.Mutex
	seen      string // the content that was put in force or refused last; guarded by reloading

	saying sync.Mutex // Stderr
}

// say prints what is not of a request, line by line.
func (r *running) say(what any) {
	r.saying.Lock()
	defer r.saying.Unlock()
	for line := range strings.Lines(fmt.Sprint(what)) {
		fmt.Fprintln(r.Stderr, "lull:", strings.TrimRight(line, "\n"))
	}
}

func (r *running) load() (*file.File, error) {
	var flags problem.List
	flags.Check((r.File == "") != (r.To == ""), "FILE", strconv.Quote(r.File), "the file of a proxy, or --to URL instead")
	flags.Check(r.Listen == "" || r.To != "", "--listen", strconv.Quote(r.Listen), "--to URL beside it")
	if err := flags.Err(); err != nil {
		return nil, err
	}
	if r.To != "" {
		return r.direct()
	}
	data, err := codec.ReadRegular(r.File)
	r.seen = content(data, err)
	if err != nil {
		return nil, err
	}
	return file.Parse(r.File, data, wiring.Check)
}

// content is what a look at a file has found.
func content(data []byte, err error) string { return fmt.Sprint(string(data), err) }

func (r *running) run(ctx context.Context) (code int, err error) {
	ctx, r.drain = context.WithCancel(ctx)
	defer r.drain()
	f := r.file
	r.manager = manager(r.Getenv("NOTIFY_SOCKET"))
	if r.log, err = openLog(f.Log.To, r.Stdout, r.Stderr, r.say); err != nil {
		return exitFailed, err
	}
	defer r.log.close(time.Second)
	if r.open, err = newOpener(f.Doors(), r.Getenv, r.say); err != nil {
		return exitFailed, err
	}
	r.open.replace = r.Replace
	if r.wiring, err = wiring.Start(ctx, f, r.log.lost.Load, r.say); err != nil {
		return exitFailed, err
	}
	defer r.closeWiring()
	page := &status.Page{ForceCircuits: true}
	drain := cmp.Or(f.Drain, proxy.DefaultDrain)
	w := r.wiring.Proxy()
	w.Record = func(one *proxy.Record) { r.wiring.Count(one); r.log.record(one) }
	w.Warn = func(err error) { r.say(err) }
	w.Observe, w.Listen, w.Drain = page, r.open.listen, drain
	if r.proxy, err = proxy.New(f.Config(), w); err != nil {
		return exitWrong, err
	}
	page.WatchAll(r.proxy.Dependencies)
	r.wiring.Watch(r.proxy)
	if err := r.proxy.Listen(); err != nil {
		return exitFailed, err
	}
	if f.Admin.Listen != "" {
		l, err := r.open.open("admin", f.Admin.Listen)
		if err != nil {
			return exitFailed, fmt.Errorf("admin: %w", err)
		}
		defer serveAdmin(l, r.adminHandler(page, r.wiring.Metrics()))() // after the drain: /ready answers until then
	}
	r.ready.Store(true)
	dropPages()
	r.say("open")
	r.manager.tell("READY=1")
	var background sync.WaitGroup
	defer background.Wait()
	defer r.drain()
	background.Go(func() { r.follow(ctx) })
	if r.Getenv("GOGC") == "" {
		background.Go(func() { saveMemory(ctx) })
	}
	defer context.AfterFunc(ctx, func() {
		r.ready.Store(false)
		r.manager.tell("STOPPING=1")
		r.open.retire()
		r.say(fmt.Sprintf("draining: requests in flight have at most %v", drain))
	})()
	if err := r.proxy.Serve(ctx); err != nil {
		return exitFailed, err
	}
	return exitDrained, nil
}

// saveMemory has garbage collected early while there is little of it: then memory is dearer than a few percent of a processor.
func saveMemory(ctx context.Context) {
	const little, early, usual = 25 << 20, 25, 100 // bytes a second, GOGC
	made := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	for before, now := uint64(0), usual; ctx.Err() == nil; {
		metrics.Read(made)
		bytes := made[0].Value.Uint64()
		if percent := choice.Either(bytes-before < little, early, usual); percent != now {
			debug.SetGCPercent(percent)
			now = percent
		}
		before = bytes
		_ = sleep.For(ctx, time.Second)
	}
}

func (r *running) closeWiring() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if err := r.wiring.Close(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		r.say(err)
	}
}

// follow reloads the file upon SIGHUP, which ends the process no more, also while it drains, and when two looks in a row have found
// the same new content: a file that is being written may look complete.
func (r *running) follow(ctx context.Context) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	var looks <-chan time.Time
	if r.File != "" {
		looks = time.Tick(time.Second)
	}
	for last := ""; ; {
		changed := r.File != ""
		select {
		case <-ctx.Done():
			return
		case <-hangups:
		case <-looks:
			now := content(codec.ReadRegular(r.File))
			r.reloading.Lock()
			changed = now == last && now != r.seen
			r.reloading.Unlock()
			last = now
		}
		if changed {
			_ = r.reload() // the error is said
		}
	}
}

// reload puts the file in force, or reports why not: then nothing has changed.
func (r *running) reload() error {
	r.reloading.Lock()
	defer r.reloading.Unlock()
	r.manager.tell(fmt.Sprintf("RELOADING=1\nMONOTONIC_USEC=%d", monotonic().Microseconds()))
	defer r.manager.tell("READY=1")
	f, err := r.load()
	if err == nil {
		r.open.doors = f.Doors()
		err = r.proxy.Update(f.Config())
	}
	r.wiring.Watch(r.proxy)
	r.wiring.Reloaded(err)
	if err != nil {
		r.say(err)
		r.say(fmt.Sprintf("%s changes nothing: what was in force stays in force", r.File))
		return err
	}
	r.say(r.File + " is in force")
	for _, path := range needRestart(r.file, f) {
		r.say(fmt.Sprintf("%v: %s needs a restart: until then it is as it was", f.Position(path), path))
	}
	return nil
}

// needRestart returns the sections of a file that differ, and are read at the start alone, sorted.
func needRestart(before, after *file.File) (paths []string) {
	read := func(path string, same bool) {
		if !same {
			paths = append(paths, path)
		}
	}
	read("admin", before.Admin == after.Admin)
	read("drain", before.Drain == after.Drain)
	read("fleet", before.Fleet == after.Fleet)
	read("ingress.keys.store", before.Ingress.Keys.Store == after.Ingress.Keys.Store)
	read("log", before.Log == after.Log)
	read("traces", before.Traces == after.Traces)
	return paths
}
