//go:build servers

package torture

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

func standingServer(t testing.TB) *Server {
	s := must.Have(Listen("127.0.0.1:0", nil))
	t.Cleanup(func() { s.Close() })
	return s
}

func fetch(url string) (int, string) {
	resp := must.Have(http.Get(url))
	defer resp.Body.Close()
	return resp.StatusCode, string(must.Have(io.ReadAll(resp.Body)))
}

// settled waits until a run has no attempt under way: that a client has gone arrives later.
func (s *Server) settled(t *testing.T, run string) {
	for {
		open := false
		s.mu.Lock()
		for _, site := range s.runs[run].sites {
			open = open || site.log.hasOpenAttempt()
		}
		s.mu.Unlock()
		if !open {
			return
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatal("attempts are under way")
		}
	}
}

// A client that is pointed at a standing server gets the verdicts that it gets when lull torture
// makes its calls, but for those that only its own report shows.
func TestAStandingServerJudgesAlike(t *testing.T) {
	t.Parallel()
	s := standingServer(t)
	cases := must.Have(Select([]string{"statuses", "must not be repeated", "bodies", "keys", "hint-seconds-503", "hint-seconds-429", "hint-day", "broken-reset", "broken-body", "broken-accept-reset", "h2-refused", "h2-goaway-post",
		"connection-retries", "connection-calls", "connection-tls", "tls-expired", "deadline-cancel", "deadline-hint"}))
	cases = slices.DeleteFunc(cases, func(c Case) bool { return c.plan.fresh }) // their short waits are asked for again on a busy machine
	clients := map[string]Client{
		"lullhttp": Lull("lullhttp", lull.Policy{}), "net-http": NetHTTP(),
		"greedy": HTTP("greedy", func(base *http.Transport) (Doer, error) { return greedy{&http.Client{Transport: base}}, nil }),
	}
	// differences makes the calls of all cases at the standing server, and returns the verdicts that are not
	// those of a card.
	differences := func(t *testing.T, client Client, run string, card *Card) (differ []string) {
		_, list := fetch(s.URL() + "cases/" + run)
		addresses := map[string]string{}
		for line := range strings.Lines(list) {
			f := strings.Split(strings.TrimSpace(line), "\t")
			addresses[f[0]] = f[2]
		}
		session := must.Have(client.Start(t.Context(), Env{CA: s.CA()}, true))
		defer session.Close()
		g := grader{folder: t.TempDir()}
		var calls sync.WaitGroup
		room := make(chan struct{}, 16) // as Run has
		for i, c := range cases {
			calls.Go(func() {
				room <- struct{}{}
				defer func() { <-room }()
				body, file := g.bodyOf(c)
				key := ""
				if c.key {
					key = newKey()
				}
				// A process for each case, as Run has. The time is one that a busy machine has, too.
				call := Call{Client: i, Method: c.method, Body: body, File: file, Timeout: 4 * c.timeout, Key: key}
				for n := range c.plan.count() {
					call.URL = addresses[c.Name] + "/" + strconv.Itoa(n)
					session.Call(t.Context(), call)
				}
			})
		}
		calls.Wait()
		s.settled(t, run)
		var got *Card
		for _, card := range s.Cards() {
			if card.Name == run {
				got = card
			}
		}
		same := 0
		for _, w := range card.Results {
			r, ok := got.Result(w.Case)
			switch {
			case !ok:
				differ = append(differ, w.Case+" is missing")
			case r.Why == onlyReportedWhy:
			case r.Grade != w.Grade:
				differ = append(differ, fmt.Sprintf("%s is %s (%s), and %s (%s) if lull torture makes the call\n%s", w.Case, r.Grade, r.Why, w.Grade, w.Why, timeline(r)))
			default:
				same++
			}
		}
		if len(differ) == 0 && same < 60 {
			differ = append(differ, fmt.Sprintf("only %d verdicts", same))
		}
		return differ
	}
	for name, client := range clients {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			card := must.Have(Run(t.Context(), client, Options{Cases: cases}))
			// What a busy machine has done once is seen again, as Run would.
			var differ []string
			for try := range mostTries {
				if differ = differences(t, client, fmt.Sprintf("%s-%d", name, try), card); len(differ) == 0 {
					return
				}
			}
			t.Error(strings.Join(differ, "\n"))
		})
	}
}

func TestAStandingServerShowsWhatItHasSeen(t *testing.T) {
	t.Parallel()
	s := standingServer(t)
	if status, text := fetch(s.URL()); status != http.StatusOK || !strings.Contains(text, "Point a client at "+s.URL()+"t/CASE/RUN") {
		t.Errorf("%d, %s", status, text)
	}
	// A hint alone shows nothing: does this client read them at all?
	fetch(s.URL() + "t/hint-seconds-429/mine")
	fetch(s.URL() + "t/hint-seconds-429/mine")
	if r, _ := s.Cards()[0].Result("hint-seconds-429"); r.Grade != NotApplicable || !strings.Contains(r.Why, "first point the client at status-503 and hint-seconds-503") {
		t.Errorf("%s: %s", r.Grade, r.Why)
	}
	for _, name := range []string{"status-503", "once-400"} {
		fetch(s.URL() + "t/" + name + "/mine")
		fetch(s.URL() + "t/" + name + "/mine")
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	open, _ := http.NewRequestWithContext(ctx, "GET", s.URL()+"t/deadline-silent/mine", nil)
	go http.DefaultTransport.RoundTrip(open)
	for len(s.Cards()[0].Results) < 4 {
		time.Sleep(5 * time.Millisecond)
	}
	card := s.Cards()[0]
	for name, want := range map[string]Grade{"status-503": Pass, "once-400": Fail, "deadline-silent": NotApplicable} {
		if r, _ := card.Result(name); r.Grade != want {
			t.Errorf("%s is %s (%s), want %s", name, r.Grade, r.Why, want)
		}
	}
	if status, page := fetch(s.URL()); status != http.StatusOK || !strings.Contains(page, "once-400") {
		t.Errorf("%d, the page is\n%s", status, page)
	}
	_, text := fetch(s.URL() + "cards.json")
	if cards, err := ReadJSON(strings.NewReader(text)); err != nil || len(cards) != 1 || cards[0].Name != "mine" {
		t.Errorf("%v, %d cards", err, len(cards))
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil { // once more does nothing
		t.Error(err)
	}
	var b bytes.Buffer
	if err := WriteJSON(&b, s.Cards()); err != nil || b.Len() == 0 {
		t.Error("nothing is left after the end")
	}
}

// What a client can ask for is bounded, and what it cannot have is named.
func TestAStandingServerIsBounded(t *testing.T) {
	t.Parallel()
	s := standingServer(t)
	for path, want := range map[string]int{"t/nothing/mine": 404, "t/tls-expired/mine": 404, "t/volume-layers/mine": 404, "t/status-503/mi%20ne": 404, "t/status-503/" + strings.Repeat("a", 65): 404, "t/status-503": 404, "cases/": 404, "else": 404} {
		if status, text := fetch(s.URL() + path); status != want {
			t.Errorf("%s: %d, %s", path, status, text)
		}
	}
	for n := range mostRuns {
		fetch(s.URL() + "t/once-success/" + strconv.Itoa(n))
	}
	if status, text := fetch(s.URL() + "t/once-success/more"); status != http.StatusInsufficientStorage || !strings.Contains(text, "64 runs") {
		t.Errorf("%d, %s", status, text)
	}
	check.Equal(t, len(s.Cards()), mostRuns, "cards")
	for _, address := range []string{"0.0.0.0:0", ":0", "192.0.2.1:80", "nothing"} {
		if _, err := Listen(address, nil); err == nil || !strings.Contains(err.Error(), "want a loopback address") {
			t.Errorf("%s: %v", address, err)
		}
	}
}
