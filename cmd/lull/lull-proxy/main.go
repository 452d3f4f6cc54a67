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

func main() {
	p := proxy.Program{Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv}
	version := flag.Bool("version", false, "print the version")
	flag.BoolVar(&p.Check, "check", false, "print what the file means, or all mistakes in it, and exit")
	flag.BoolVar(&p.Replace, "replace", false, "take the place of another lull-proxy: listen at its addresses, and get its new connections when it ends")
	flag.StringVar(&p.To, "to", "", "without a file: one door that leads to this `URL`")
	flag.StringVar(&p.Listen, "listen", "", "the `address` of that door (default 127.0.0.1:9001)")
	probed := flag.String("probe", "", "request this `URL` of the admin listener, and exit with 0 if the answer is 200 and with 1 if not")
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), "Usage: lull-proxy FILE, or lull-proxy --to URL\n\nIt is lull proxy alone: lull help proxy has more.\n\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	if p.File = flag.Arg(0); p.File != "" { // flags may follow
		_ = flag.CommandLine.Parse(flag.Args()[1:]) // it exits
	}
	if flag.NArg() > 0 || p.File == "" && flag.NFlag() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	if *version {
		info, _ := debug.ReadBuildInfo()
		fmt.Println("lull-proxy", info.Main.Version, info.GoVersion)
		return
	}
	if *probed != "" {
		if err := probe(*probed); err != nil {
			fmt.Fprintln(os.Stderr, "lull:", err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process
	os.Exit(p.Run(ctx))
}

// probe is for health checks in an image without a shell. It does not read the file: a wrong one does not end a proxy that runs.
func probe(url string) error {
	client := http.Client{Timeout: 3 * time.Second, Transport: &http.Transport{}} // without HTTP_PROXY
	resp, err := client.Get(url)
	if err != nil {
		return err
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, resp.Status)
	}
	return nil
}
