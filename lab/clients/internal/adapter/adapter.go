// Package adapter makes a program of clients in Go: an adapter of lull torture. It speaks the
// protocol that docs/torture.md describes. A client hands out a body only if its users get it; otherwise it has read the body with
// the readers of the client, and returns [Status].
package adapter

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lullgo/lull/internal/must"
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

func serve(client torture.Client) (err error) {
	defer must.Catch(&err)
	ca, err := os.ReadFile(os.Getenv("LULL_TORTURE_CA"))
	if err != nil {
		return fmt.Errorf("LULL_TORTURE_CA: %w", err)
	}
	session := must.Have(client.Start(context.Background(), torture.Env{CA: ca}, true))
	var out sync.Mutex
	fmt.Println("ready")
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		id, call, err := parse(lines.Text())
		must.Succeed(err)
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

func parse(line string) (id string, c torture.Call, err error) {
	f := strings.Split(line, "\t")
	if len(f) != 7 {
		return "", c, fmt.Errorf("a line has %d fields, want 7: %q", len(f), line)
	}
	client, err1 := strconv.Atoi(f[1])
	ms, err2 := strconv.Atoi(f[5])
	if err := errors.Join(err1, err2); err != nil {
		return "", c, fmt.Errorf("the client and the timeout must be numbers: %w", err)
	}
	c = torture.Call{Client: client, Method: f[2], URL: f[3], Timeout: time.Duration(ms) * time.Millisecond}
	if f[4] != "-" {
		c.Body, err = os.ReadFile(f[4])
	}
	if f[6] != "-" {
		c.Key = f[6]
	}
	return f[0], c, err
}

// Doer makes a torture.Doer of a function. What that fails with, as those of package must do, is the error.
type Doer func(*http.Request) (*http.Response, error)

// Do calls the function.
func (d Doer) Do(r *http.Request) (resp *http.Response, err error) {
	defer must.Catch(&err)
	return d(r)
}

// Body returns the body of a request; nil if it has none.
func Body(r *http.Request) []byte {
	if r.Body == nil {
		return nil
	}
	return must.Have(io.ReadAll(r.Body))
}

// Status returns an answer whose body has been read.
func Status(code int) *http.Response {
	return &http.Response{StatusCode: code, Status: fmt.Sprint(code), Body: http.NoBody}
}
