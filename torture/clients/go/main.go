// Command go is the adapter of lull torture for clients in Go. It speaks the protocol that
// docs/torture.md describes; its argument is the name of the client.
package main

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lullgo/lull/torture"
)

func main() {
	if len(os.Args) != 2 || clients[os.Args[1]] == nil {
		fmt.Fprintf(os.Stderr, "name one of %s\n", strings.Join(slices.Sorted(maps.Keys(clients)), ", "))
		os.Exit(2)
	}
	if err := serve(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serve reads calls and makes them.
func serve(name string) error {
	ca, err := os.ReadFile(os.Getenv("LULL_TORTURE_CA"))
	if err != nil {
		return fmt.Errorf("LULL_TORTURE_CA: %w", err)
	}
	session, err := torture.HTTP(name, clients[name]).Start(context.Background(), torture.Env{CA: ca}, true)
	if err != nil {
		return err
	}
	var out sync.Mutex
	fmt.Println("ready")
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		id, call, err := parse(lines.Text())
		if err != nil {
			return err
		}
		go func() {
			o := session.Call(context.Background(), call)
			what := "failed"
			if o.OK {
				what = "ok"
			}
			out.Lock()
			defer out.Unlock()
			fmt.Printf("%s\t%s\t%d\t%s\n", id, what, o.Status, strings.ReplaceAll(o.Text, "\n", " "))
		}()
	}
	return lines.Err()
}

// parse reads a call.
func parse(line string) (id string, c torture.Call, err error) {
	f := strings.Split(line, "\t")
	if len(f) != 7 {
		return "", c, fmt.Errorf("a line has %d fields, want 7: %q", len(f), line)
	}
	c = torture.Call{Method: f[2], URL: f[3]}
	if c.Client, err = strconv.Atoi(f[1]); err != nil {
		return "", c, fmt.Errorf("the client %q is no number", f[1])
	}
	if f[4] != "-" {
		if c.Body, err = os.ReadFile(f[4]); err != nil {
			return "", c, err
		}
	}
	ms, err := strconv.Atoi(f[5])
	if err != nil {
		return "", c, fmt.Errorf("the timeout %q is no number", f[5])
	}
	c.Timeout = time.Duration(ms) * time.Millisecond
	if f[6] != "-" {
		c.Key = f[6]
	}
	return f[0], c, nil
}
