// Command lull-proxy is lull proxy alone, for images.
package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/proxy"
)

const usage = `Usage: lull-proxy FILE, or lull-proxy --to URL

It is lull proxy alone: lull help proxy has more.

`

func main() {
	p := proxy.Program{Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv}
	version := flag.Bool("version", false, "print the version")
	flag.BoolVar(&p.Check, "check", false, "print what the file means, or all mistakes in it, and exit")
	flag.StringVar(&p.To, "to", "", "without a file: one door that leads to this `URL`")
	flag.StringVar(&p.Listen, "listen", "", "the `address` of that door (default 127.0.0.1:9001)")
	probe := flag.String("probe", "", "ask this `URL`, such as http://127.0.0.1:9900/ready, and exit with 1 unless the status is 200")
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), usage)
		flag.PrintDefaults()
	}
	flag.Parse()
	extra := false
	if p.File = flag.Arg(0); flag.NArg() > 1 { // flags may follow
		_ = flag.CommandLine.Parse(flag.Args()[1:]) // it exits
		extra = flag.NArg() > 0
	}
	if extra || p.File == "" && flag.NFlag() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	if *version {
		info, _ := debug.ReadBuildInfo()
		fmt.Println("lull-proxy", info.Main.Version, info.GoVersion)
		return
	}
	if *probe != "" {
		os.Exit(ask(*probe))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process
	os.Exit(p.Run(ctx))
}

// ask returns the exit code of a health check: an image from scratch has no other program for it.
func ask(url string) int {
	client := http.Client{Timeout: 5 * time.Second}
	resp, err := client.Get(url)
	if err == nil {
		resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			return 0
		}
		err = fmt.Errorf("%s: %s", url, resp.Status)
	}
	fmt.Fprintln(os.Stderr, "lull-proxy:", err)
	return 1
}
