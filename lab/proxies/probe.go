package main

import (
	"context"
	"embed"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/ports"
	"github.com/lullgo/lull/lab/torture"
	"github.com/lullgo/lull/lab/torture/probe"
)

//go:embed app.py app.mjs app.php
var apps embed.FS

// runProbe grades servers of three languages, bare and behind the ingress door.
func runProbe(ctx context.Context, out io.Writer) (err error) {
	defer must.Catch(&err)
	folder := must.Have(os.MkdirTemp("", "lull-proxies-"))
	defer os.RemoveAll(folder)
	must.Succeed(os.CopyFS(folder, apps))
	must.Succeed(os.Setenv("PHP_CLI_SERVER_WORKERS", "16"))
	t := newTable(out, "pass / warn / fail", "bare", "behind the ingress door", "fails bare", "fails behind it")
	for _, server := range []struct{ name, program, file string }{{"Python", "/usr/bin/python3", "app.py"}, {"Node", "node", "app.mjs"}, {"PHP", "php", "app.php"}} {
		var port int
		must.Succeed(ports.Free(&port))
		file, address := filepath.Join(folder, server.file), fmt.Sprint("127.0.0.1:", port)
		args := []string{file, fmt.Sprint(port)}
		if server.name == "PHP" {
			args = []string{"-S", address, file}
		}
		app := must.Have(startServer(port, server.program, args...))
		defer app.Kill()
		r := must.Have(peerNamed("lull").start("", door{to: "http://" + address, ingress: "admission: {max: 8}, keys: {store: memory}"}))
		defer r.close()
		bare, behind := probed(ctx, "http://"+address), probed(ctx, r.url(0))
		t.row(server.name, grades(bare), grades(behind), failures(bare), failures(behind))
	}
	return nil
}

func probed(ctx context.Context, url string) *torture.Card {
	return must.Have(probe.Run(ctx, probe.Target{URL: url + "/orders", Post: "/payments", Slow: "/slow", Fail: "/fails"}, probe.Options{
		Rate: 1000, Together: 64, Progress: func(done, all int, last torture.Result) {
			progress("probe: %s: %d of %d, %s %s: %s", url, done, all, last.Case, last.Grade, last.Why)
		},
	}))
}

// failures returns the cases that a card has failed.
func failures(c *torture.Card) string {
	var names []string
	for _, r := range c.Results {
		if r.Grade == torture.Fail {
			names = append(names, r.Case)
		}
	}
	return strings.Join(names, ", ")
}
