package torture

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Server starts no client. It grades every client that calls it, at /t/CASE/RUN; RUN is the name of the card. Its page has the results so
// far, /cards.json has them for programs, and /cases/RUN has the addresses of all cases (docs/torture.md).
//
// Its methods may be called concurrently.
type Server struct {
	cases     []Case
	authority *authority
	listener  net.Listener
	gate      *gate
	http      *http.Server

	mu     sync.Mutex
	names  []string // of the runs, in their order
	runs   map[string]*waitingRun
	closed bool
}

type waitingRun struct {
	began time.Time
	sites map[string]*site // by the case
}

const mostRuns = 64

// onlyReportedWhy is the text of NoVerdict for a case that needs the client's own report.
const onlyReportedWhy = "only the client's own report shows it: give lull torture a command that makes the calls"

// Listen returns a server at an address of this machine, such as 127.0.0.1:8555. Nil cases means
// all cases.
func Listen(address string, cases []Case) (*Server, error) {
	host, _, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, fmt.Errorf("the address is %q: want a loopback address with a port, such as 127.0.0.1:8555", address)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	if cases == nil {
		cases = Cases()
	}
	s := &Server{cases: cases, authority: newAuthority(), listener: listener, runs: map[string]*waitingRun{}}
	s.http = newServer(s)
	s.gate = &gate{Listener: listener, log: newLog(0, nil)}
	go s.http.Serve(s.gate)
	return s, nil
}

// URL returns the address of the page.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() + "/" }

// CA returns the certificate, as PEM, that signs those of the cases with TLS.
func (s *Server) CA() []byte { return slices.Clone(s.authority.pem) }

// Close ends the server and all connections. Cards may still be called.
func (s *Server) Close() error {
	err := s.http.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return err
	}
	s.closed = true
	for _, run := range s.runs {
		for _, site := range run.sites {
			site.close()
		}
	}
	return err
}

// Cards returns a card for each run, with the cases that were called so far.
func (s *Server) Cards() []*Card {
	s.mu.Lock()
	defer s.mu.Unlock()
	var cards []*Card
	for _, name := range s.names {
		if card := s.runs[name].card(name, s.cases); len(card.Results) > 0 {
			cards = append(cards, card)
		}
	}
	return cards
}

func (r *waitingRun) card(name string, cases []Case) *Card {
	card := &Card{Name: name, Began: r.began, Took: time.Since(r.began)}
	var met []triedCase
	all := map[string]*Seen{}
	for _, c := range cases {
		site := r.sites[c.Name]
		if site == nil {
			continue
		}
		t := triedCase{Result: c.result()}
		t.seen, t.Events = site.log.seen(c)
		if len(t.seen.Attempts) > 0 || t.seen.Accepted > 0 {
			t.seen.Finished = assumedReports(t.seen)
			met, all[c.Name] = append(met, t), t.seen
		}
	}
	for _, t := range met {
		switch {
		case t.seen.Case.onlyReported:
			t.seen.NoVerdict = onlyReportedWhy
		case slices.ContainsFunc(t.seen.Attempts, Attempt.open):
			t.seen.NoVerdict = "an attempt is under way"
		}
		t.Verdict, t.Calls, t.Attempts, t.Took = verdictSoFar(t.seen, all), len(t.seen.Finished), len(t.seen.Attempts), t.seen.Took
		card.Results = append(card.Results, t.Result)
	}
	return card
}

// verdictSoFar is the verdict on a case where it may not be known what the client does at all. It is
// whatever would follow from all that is possible, if that has one grade.
func verdictSoFar(seen *Seen, all map[string]*Seen) Verdict {
	possible, missing := []traits{{}}, []string(nil)
	for _, basic := range traitCaseNames([]Case{seen.Case}) {
		b := all[basic]
		var both []traits
		for _, t := range possible {
			if b == nil {
				both = append(both, t)
			}
			both = append(both, t.with(basic, b))
		}
		possible = both
		if b == nil {
			missing = append(missing, basic)
		}
	}
	verdict := seen.verdict(possible[0])
	for _, t := range possible[1:] {
		if v := seen.verdict(t); v.Grade != verdict.Grade {
			return NotApplicable.Because("first point the client at %s: that shows what it does at all", strings.Join(missing, " and "))
		}
	}
	return verdict
}

// assumedReports is what a client reports that takes the last answer for the result of its call.
func assumedReports(s *Seen) []Finished {
	if len(s.Attempts) == 0 {
		return []Finished{{End: s.Took}}
	}
	var list []Finished
	of := map[int]int{}
	for _, a := range s.Attempts {
		i, ok := of[a.Call]
		if !ok {
			i = len(list)
			of[a.Call] = i
			list = append(list, Finished{Call: a.Call, Start: a.Arrived})
		}
		list[i].End = max(a.Arrived, a.Answered, a.Gone)
		list[i].OK, list[i].Status = a.Good, a.Status
	}
	slices.SortFunc(list, func(a, b Finished) int { return a.Call - b.Call })
	return list
}

// site returns that of a case in a run. With doors it opens the port of those that have one.
func (s *Server) site(c Case, name string) (*site, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	run := s.runs[name]
	if run == nil {
		if len(s.runs) >= mostRuns {
			return nil, fmt.Errorf("there are %d runs already, and room for no more: start lull torture anew", mostRuns)
		}
		run = &waitingRun{time.Now(), map[string]*site{}}
		s.runs[name] = run
		s.names = append(s.names, name)
	}
	if s.closed {
		return nil, http.ErrServerClosed
	}
	if site := run.sites[c.Name]; site != nil {
		return site, nil
	}
	l := newLog(mostAttempts, func() {})
	created := &site{c: c, log: l, ended: make(chan struct{}), base: strings.TrimSuffix(s.URL(), "/")}
	if !c.plain() {
		var err error
		if created, err = openSite(c, s.authority, l); err != nil {
			return nil, err
		}
	}
	run.sites[c.Name] = created
	return created, nil
}

// plain reports whether the case needs no port of its own.
func (c Case) plain() bool { return c.door == doorPlain && len(c.doors) == 0 }

// ServeHTTP answers an attempt, or shows the results so far.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case parts[0] == "t" && len(parts) >= 3:
		i := slices.IndexFunc(s.cases, func(c Case) bool { return c.Name == parts[1] })
		if i < 0 || !s.cases[i].plain() || s.cases[i].plan.layers > 0 || !isRunName(parts[2]) {
			http.Error(w, "no such case, or one that is not at this port, or a run whose name is not made of 1 to 64 letters, digits, dots and dashes: see /cases/"+safeRun(parts[2]), http.StatusNotFound)
			return
		}
		site, err := s.site(s.cases[i], parts[2])
		if err != nil {
			http.Error(w, err.Error(), http.StatusInsufficientStorage)
			return
		}
		site.ServeHTTP(w, r)
	case parts[0] == "cases" && len(parts) == 2 && isRunName(parts[1]):
		s.list(w, parts[1])
	case r.URL.Path == "/cards.json":
		w.Header().Set("Content-Type", "application/json")
		WriteJSON(w, s.Cards())
	case r.URL.Path == "/":
		s.page(w)
	default:
		http.NotFound(w, r)
	}
}

// list prints the addresses of all cases for a run: name, method and address.
func (s *Server) list(w http.ResponseWriter, run string) {
	var b bytes.Buffer
	for _, c := range s.cases {
		if c.plan.layers > 0 {
			continue
		}
		address := s.URL() + "t/" + c.Name + "/" + run
		if !c.plain() {
			site, err := s.site(c, run)
			if err != nil {
				http.Error(w, err.Error(), http.StatusInsufficientStorage)
				return
			}
			address = site.base + "/t/" + c.Name + "/" + run
		}
		fmt.Fprintf(&b, "%s\t%s\t%s\n", c.Name, c.method, address)
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Write(b.Bytes())
}

func (s *Server) page(w http.ResponseWriter) {
	var b bytes.Buffer
	cards := s.Cards()
	if len(cards) == 0 {
		fmt.Fprintf(w, "Nobody has come yet.\n\nPoint a client at %st/CASE/RUN. %[1]scases/RUN lists the cases. RUN is a word of your own.\n", s.URL())
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if err := WritePage(&b, cards); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Write(b.Bytes())
}

func isRunName(s string) bool {
	return len(s) >= 1 && len(s) <= 64 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_") == ""
}

func safeRun(s string) string {
	if isRunName(s) {
		return s
	}
	return "RUN"
}
