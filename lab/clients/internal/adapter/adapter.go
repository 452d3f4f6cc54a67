// Package adapter makes a program of clients in Go: an adapter of lull torture. It speaks the
// protocol that docs/torture.md describes. A client hands out a body only if its users get it; otherwise it has read the body with
// the readers of the client, and returns [Status].
package adapter

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lullgo/lull/lab/torture"
)

// Clients are those that a program knows, by their names. See [torture.HTTP].
type Clients map[string]func(*http.Transport) (torture.Doer, error)

// Main is the program. Its argument is the name of a client.
func Main(clients Clients) {
	if len(os.Args) != 2 || clients[os.Args[1]] == nil {
		fmt.Fprintf(os.Stderr, "name one of %s\n", strings.Join(slices.Sorted(maps.Keys(clients)), ", "))
		os.Exit(2)
	}
	if err := serve(torture.HTTP(os.Args[1], clients[os.Args[1]])); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serve reads calls and makes them.
func serve(client torture.Client) error {
	ca, err := os.ReadFile(os.Getenv("LULL_TORTURE_CA"))
	if err != nil {
		return fmt.Errorf("LULL_TORTURE_CA: %w", err)
	}
	session, err := client.Start(context.Background(), torture.Env{CA: ca}, true)
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

// Doer makes a torture.Doer of a function.
type Doer func(*http.Request) (*http.Response, error)

// Do calls the function.
func (d Doer) Do(r *http.Request) (*http.Response, error) { return d(r) }

// Status returns an answer whose body has been read.
func Status(code int) *http.Response {
	return &http.Response{StatusCode: code, Status: fmt.Sprint(code), Body: http.NoBody}
}
