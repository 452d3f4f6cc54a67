package config

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/internal/seed"
)

// A liveFile is a Live, its file, and its reports.
type liveFile struct {
	*Live
	t    testing.TB
	path string
	mu   sync.Mutex
	got  []string
}

func openLive(t testing.TB, content string) *liveFile {
	t.Helper()
	l := &liveFile{t: t, path: filepath.Join(t.TempDir(), "retry.yaml")}
	l.write(content)
	l.Live = must(OpenLive(l.path, l.record))
	return l
}

func (l *liveFile) record(r Reload) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.got = append(l.got, l.words(r))
}

func (l *liveFile) words(r Reload) string {
	if r.File != l.Live.File() {
		l.t.Error("a report with a file that is not in force")
	}
	var all []string
	for _, c := range r.Changes {
		all = append(all, fmt.Sprintf("%s %v %d>%d", c.Name, c.Kind, c.Before.Attempts, c.After.Attempts))
		if c.Err != nil {
			all = append(all, c.Err.Error())
		}
	}
	if r.Err != nil {
		var wrong Mistakes
		if errors.As(r.Err, &wrong) {
			all = append(all, fmt.Sprint(len(wrong), " mistakes"))
		} else {
			all = append(all, "unreadable")
		}
	}
	if r.Unused != nil {
		all = append(all, "unused "+strings.Join(r.Unused, " "))
	}
	return strings.Join(all, "; ")
}

// write replaces the file as editors do, in one step.
func (l *liveFile) write(content string) {
	l.t.Helper()
	next := l.path + ".next"
	done(l.t, os.WriteFile(next, []byte(content), 0o600))
	done(l.t, os.Rename(next, l.path))
}

// reload replaces the file and reads it; the reports of that must be these.
func (l *liveFile) reload(when, content string, want ...string) {
	l.t.Helper()
	l.write(content)
	done(l.t, l.Reload())
	l.reported(when, want...)
}

func (l *liveFile) remove() {
	l.t.Helper()
	done(l.t, os.RemoveAll(l.path))
}

// reported fails unless the reports since the last time are these.
func (l *liveFile) reported(when string, want ...string) {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !reflect.DeepEqual(l.got, append([]string(nil), want...)) {
		l.t.Errorf("%s: reported %q, want %q", when, l.got, want)
	}
	l.got = nil
}

func (l *liveFile) dependency(name string) *lull.Dependency {
	l.t.Helper()
	return must(l.Dependency(name, lull.WithRand(seed.Source(l.t))))
}

func TestReloadChangesEachDependency(t *testing.T) {
	l := openLive(t, "defaults: {attempts: 2}\ndependencies: {a: , b: {attempts: 3}, c: {attempts: 4}}\n")
	a, b, c, other := l.dependency("a"), l.dependency("b"), l.dependency("c"), l.dependency("other")
	attempts := func() [4]int {
		return [4]int{a.Policy().Attempts, b.Policy().Attempts, c.Policy().Attempts, other.Policy().Attempts}
	}
	if got := attempts(); got != [4]int{2, 3, 4, 2} {
		t.Fatalf("at first %v", got)
	}
	if l.dependency("a") != a {
		t.Error("another dependency for the same name")
	}

	l.reload("the same in other words", "# a comment\ndefaults: {attempts: 2}\ndependencies: {c: {attempts: 4, p99: 1s}, a: , b: {attempts: 3}}\n", "")

	l.reload("changed", "defaults: {attempts: 5}\ndependencies: {a: {attempts: 2}, c: , d: {attempts: 7}}\n", "b removed 3>5; c changed 4>5; d added 2>7; other changed 2>5; unused d")
	if got := attempts(); got != [4]int{2, 5, 5, 5} {
		t.Errorf("after the change %v", got)
	}
	if d := l.dependency("d"); d.Policy().Attempts != 7 {
		t.Errorf("one that came has %d attempts", d.Policy().Attempts)
	}
	done(t, l.Reload())
	l.reported("nothing has changed")

	l.reload("one comes back", "defaults: {attempts: 5}\ndependencies: {a: {attempts: 2}, b: {attempts: 6}, c: , d: {attempts: 7}}\n", "b added 5>6")
	if l.dependency("b") != b || b.Policy().Attempts != 6 {
		t.Errorf("one that comes back is another, or has %d attempts", b.Policy().Attempts)
	}
}

func TestAWrongFileChangesNothing(t *testing.T) {
	l := openLive(t, "dependencies: {a: {attempts: 3}, b: {attempts: 3}}\n")
	a, before := l.dependency("a"), l.File()
	for _, c := range []struct{ content, want string }{
		{"dependencies: {a: {attempts: 4}, b: {atempts: 3, deadline: x}}\n", "2 mistakes; unused b"},
		{"", "1 mistakes; unused b"},
		{"{", "1 mistakes; unused b"},
	} {
		l.write(c.content)
		for range 2 {
			var wrong Mistakes
			if err := l.Reload(); !errors.As(err, &wrong) {
				t.Errorf("%q: %v", c.content, err)
			}
			l.reported(c.content, c.want)
		}
	}
	l.remove()
	if err := l.Reload(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	l.reported("no file", "unreadable; unused b")
	if a.Policy().Attempts != 3 || l.File() != before {
		t.Errorf("the policy has %d attempts", a.Policy().Attempts)
	}
	l.write("dependencies: {a: {attempts: 3}, b: {attempts: 3}}\n")
	for range 2 {
		if err := l.Reload(); err != nil {
			t.Error(err)
		}
	}
	l.reported("back as it was, once", "unused b")
}

func TestOpenLiveRefusesWhatIsWrong(t *testing.T) {
	if _, err := OpenLive(filepath.Join(t.TempDir(), "none"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	path := filepath.Join(t.TempDir(), "f.yaml")
	done(t, os.WriteFile(path, []byte("atempts: 3\n"), 0o600))
	if _, err := OpenLive(path, nil); err == nil {
		t.Error("a wrong file")
	}
	if _, err := openLive(t, "attempts: 3\n").Dependency(""); err == nil {
		t.Error("a dependency without a name")
	}
}

func TestWatchTakesWhatTwoLooksHaveSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := openLive(t, "dependencies: {a: {attempts: 2}}\n")
		a := l.dependency("a")
		step := watched(t, l)
		step("nothing")
		l.write("dependencies: {a: {attempts: 3}}\n")
		step("one look")
		if got := a.Policy().Attempts; got != 2 {
			t.Errorf("%d attempts after one look", got)
		}
		step("two looks", "a changed 2>3")
		step("three looks")
		if got := a.Policy().Attempts; got != 3 {
			t.Errorf("%d attempts after two looks", got)
		}

		// Half a file is never taken, though it is one by itself.
		l.write("dependencies:\n  a:\n")
		step("half")
		l.write("dependencies:\n  a:\n    attempts: 4\n")
		step("whole")
		step("whole again", "a changed 3>4")

		l.write("dependencies: {a: {atempts: 5}}\n")
		step("wrong")
		step("wrong, twice", "1 mistakes")
		step("wrong, three times")
		l.write("dependencies: {a: {atempts: 6}}\n")
		step("wrong in another way")
		step("wrong in another way, twice", "1 mistakes")
		l.write("dependencies:\n  a:\n    attempts: 9\n")
		step("right")
		step("right, twice", "a changed 4>9")
		l.write("dependencies: {a: {atempts: 6}}\n")
		step("wrong as it was before")
		step("wrong as it was before, twice", "1 mistakes")
		l.write("dependencies:\n  a:\n    attempts: 4\n")
		step("right as it was before")
		step("right as it was before, twice", "a changed 9>4")

	})
}

// Versions of the file that nobody has looked at are not reported, and what they changed is not lost: each report begins
// where the one before it ended, also if a report takes its time.
func TestChangesAreThoseSinceTheLastReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "retry.yaml")
		l := &liveFile{t: t, path: path}
		content := func(n int) string { return fmt.Sprintf("dependencies: {a: {attempts: %d}}\n", n) }
		l.write(content(2))
		at := 2 // by the reports
		live, err := OpenLive(path, func(r Reload) {
			time.Sleep(10 * time.Second) // many versions come and go meanwhile
			for _, c := range r.Changes {
				if c.Before.Attempts != at {
					t.Errorf("a change from %d, after one to %d", c.Before.Attempts, at)
				}
				at = c.After.Attempts
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		l.Live = live
		a := l.dependency("a")
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- live.Watch(ctx, time.Second) }()
		for i := range 200 {
			l.write(content(2 + i%7))
			time.Sleep(time.Duration(300+i*17%4000) * time.Millisecond)
		}
		l.write(content(9))
		time.Sleep(time.Minute)
		stop()
		<-ended
		if at != 9 || a.Policy().Attempts != 9 {
			t.Errorf("%d attempts by the reports, %d in force; want 9", at, a.Policy().Attempts)
		}
	})
}

func TestWatchRefusesAnInterval(t *testing.T) {
	if err := openLive(t, "attempts: 2").Watch(t.Context(), -1); err == nil || !strings.Contains(err.Error(), "interval is -1ns") {
		t.Errorf("got %v", err)
	}
}

// A look at a file that has not changed, and the reading of one that has.
func BenchmarkLive(b *testing.B) {
	l := openLive(b, shopFile)
	b.Run("look", func(b *testing.B) {
		for range b.N {
			l.checkFile(fileState{})
		}
	})
	b.Run("parse", func(b *testing.B) {
		for range b.N {
			if _, err := ParsePolicyFile("f", []byte(shopFile)); err != nil {
				b.Fatal(err)
			}
		}
	})
}

type follows struct {
	policies []lull.Policy
	err      error
}

func (f *follows) Update(p lull.Policy) error {
	f.policies = append(f.policies, p)
	return f.err
}

func TestFollow(t *testing.T) {
	l := openLive(t, "defaults: {attempts: 2}\ndependencies: {a: {attempts: 3}}\n")
	if got := l.Unused(); !reflect.DeepEqual(got, []string{"a"}) {
		t.Errorf("unused are %v", got)
	}
	registry := must(lull.NewRegistry(lull.Policy{}, 0))
	host := registry.Get("host")
	var a, b, never follows
	never.err = errors.New("never")
	for name, u := range map[string]Updater{"a": &a, "b": &b, "": registry} {
		done(t, l.Follow(name, u))
	}
	if err := l.Follow("a", &never); err != never.err {
		t.Errorf("got %v", err)
	}
	if got := host.Policy().Attempts; got != 2 {
		t.Errorf("the registry's have %d attempts", got)
	}
	b.err = errors.New("not now")
	l.reload("with one that refuses", "defaults: {attempts: 4}\ndependencies: {a: {attempts: 3}}\n", " changed 2>4; b changed 2>4; not now")
	if got := host.Policy().Attempts; got != 4 {
		t.Errorf("the registry's have %d attempts", got)
	}
	if got := l.Unused(); got != nil {
		t.Errorf("unused are %v", got)
	}
	l.write("defaults: {attempts: 3}\n") // as a was, by another way
	done(t, l.Reload())
	l.reported("one that is not listed any more", " changed 4>3; a removed 3>3; b changed 4>3; not now")
	if len(a.policies) != 1 || len(b.policies) != 3 || len(never.policies) != 1 {
		t.Errorf("updates: %d of what has not changed, %d of what has, %d of what does not follow", len(a.policies), len(b.policies), len(never.policies))
	}
}

// A hundred thousand calls while the file changes under them all the time, every other
// time for the worse: each call ends as its operation does, and what an outage has taught
// is not forgotten.
func TestReloadUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // a worker that waits long for a processor has not run out of time
		const file = `
defaults:
  budget: {stock: %d}
dependencies:
  api: {attempts: %d, deadline: none, limit: {in_flight: %d, max_wait: 1h}}
  down:
    attempts: %d
    breaker: {consecutive: 3, consecutive_for: -1s, open_for: %dh, open_max: 1000h, window: %ds}
`
		version := func(i int) string {
			if i%2 == 1 {
				return fmt.Sprintf("dependencies: {api: {attempts: %d, atempts: 1}, down: {breaker: {off: true}}}\n", i)
			}
			return fmt.Sprintf(file, 1+i%5, 1+i%7, 100+i%3, 1+i%2, 100+i%3, 10+i%4)
		}
		l := openLive(t, version(0))
		api, down := l.dependency("api"), l.dependency("down")
		broken := errors.New("broken")
		for range 3 {
			lull.Run(t.Context(), down, func(context.Context) error { return lull.Transient(broken) })
		}
		if s := down.Breaker().State(down.Now()); s != breaker.Open {
			t.Fatalf("the circuit is %v before it begins", s)
		}
		opened := down.Breaker().RetryAt(down.Now())

		const workers, each, least = 8, 2500, 50
		var changes atomic.Int64
		var good, wrong, through atomic.Int64
		var working sync.WaitGroup
		for w := range workers {
			working.Go(func() {
				for i := 0; i < each || changes.Load() < least; i++ {
					tries := 0
					got, err := lull.Do(t.Context(), api, func(context.Context) (int, error) {
						if tries++; (w+i)%100 == 0 { // an error is as good as an answer
							return 0, lull.Permanent(broken)
						}
						return i, nil
					})
					switch {
					case tries != 1 || (w+i)%100 == 0 && !errors.Is(err, broken) || (w+i)%100 != 0 && (err != nil || got != i):
						wrong.Add(1)
					default:
						good.Add(1)
					}
					if i%50 == 0 {
						if err := lull.Run(t.Context(), down, func(context.Context) error { through.Add(1); return nil }); !errors.Is(err, lull.ErrCircuitOpen) {
							wrong.Add(1)
						}
					}
				}
			})
		}
		finished := make(chan struct{})
		go func() { working.Wait(); close(finished) }()
		for done := false; !done; {
			i := int(changes.Add(1))
			l.write(version(i))
			if err := l.Reload(); (err != nil) != (i%2 == 1) {
				t.Errorf("change %d: %v", i, err)
			}
			select {
			case <-finished:
				done = true
			default:
			}
		}
		if good.Load() < workers*each || wrong.Load() != 0 || through.Load() != 0 {
			t.Errorf("%d calls ended as they should, %d did not, and %d went through an open circuit", good.Load(), wrong.Load(), through.Load())
		}
		if s, at := down.Breaker().State(down.Now()), down.Breaker().RetryAt(down.Now()); s != breaker.Open || at != opened {
			t.Errorf("after %d changes the circuit is %v until %v, and was open until %v", changes.Load(), s, at, opened)
		}
		t.Logf("%d calls, %d changes of the file", good.Load(), changes.Load())
	})
}

// Hosts are dependencies of the file by their names, those to come as well.
func TestFollowEach(t *testing.T) {
	l := openLive(t, "defaults: {attempts: 2}\ndependencies: {a: {attempts: 3}, b: {attempts: 4}, c: }\n")
	registry := must(lull.NewRegistry(lull.Policy{}, 0))
	a := registry.Get("a")
	done(t, l.FollowEach(registry))
	attempts := func(when string, want map[string]int) {
		t.Helper()
		for key, n := range want {
			if got := registry.Get(key).Policy().Attempts; got != n {
				t.Errorf("%s: %s has %d attempts, want %d", when, key, got, n)
			}
		}
	}
	attempts("at first", map[string]int{"a": 3, "b": 4, "other": 2})
	if got := l.Unused(); !reflect.DeepEqual(got, []string{"c"}) {
		t.Errorf("unused are %v", got)
	}
	l.reload("another file", "defaults: {attempts: 5}\ndependencies: {a: {attempts: 6}, c: {attempts: 7}}\n", " changed 2>5; a changed 3>6; b removed 4>5; c changed 2>7; unused c")
	attempts("after a change", map[string]int{"a": 6, "b": 5, "c": 7, "other": 5, "late": 5})
	if registry.Get("a") != a {
		t.Error("another dependency for the same host")
	}
	l.reload("other defaults", "defaults: {attempts: 8}\ndependencies: {a: {attempts: 6}, b: {attempts: 5}, c: {attempts: 7}}\n", " changed 5>8; b added 5>5")
	attempts("with other defaults", map[string]int{"a": 6, "b": 5, "c": 7, "other": 8, "new": 8})
	l.write("defaults: {attempts: 9}\ndependencies: {a: {atempts: 6}}\n")
	if err := l.Reload(); err == nil {
		t.Error("a wrong file was taken")
	}
	attempts("with a wrong file", map[string]int{"a": 6, "other": 8, "newer": 8})
}
