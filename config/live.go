package config

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lullgo/lull"
)

// DefaultInterval is how often [Live.Watch] looks at the file if it is not told
// otherwise.
const DefaultInterval = 5 * time.Second

// Live is a policy file in a program that goes on while the file changes. It keeps the
// policies of dependencies as the file has them: calls that are under way end under the
// policy they began with, budgets that are spent stay spent, and open circuits open. Every
// field may change; a throttle, a concurrency limit and hedging begin anew if theirs do
// ([lull.Dependency.Update]).
//
// A new file is read whole before anything of it counts. If there is a mistake in it the
// old one stays in force, all of it, and the mistakes are reported. What counts is then
// handed to one dependency after another, which takes microseconds in which some have the
// new policy and some the old. Its methods may be called concurrently.
type Live struct {
	path   string
	report func(Reload)

	file atomic.Pointer[PolicyFile] // in force
	// dependencies are those that Dependency has made, by name.
	dependencies sync.Map

	reloading sync.Mutex // held while the file is read, applied and reported
	// What follows is guarded by reloading.
	inForce [sha256.Size]byte // the sum of its content
	refused sight             // what was not taken, and reported last; zero: nothing is

	mu         sync.Mutex // guards what follows, and that none misses a change of file
	followers  []follower
	registries []*lull.Registry // of FollowEach
}

// A sight is what the file looks like.
type sight struct {
	sum [sha256.Size]byte // of its content
	err string            // or why it cannot be read
}

type follower struct {
	name string
	Updater
}

// An Updater has a policy that can be changed: a [*lull.Dependency], a [*lull.Registry].
// Update is called with policies that validate, and must not call the Live.
type Updater interface{ Update(lull.Policy) error }

// Reload is what has become of a change of the file. One with neither Changes nor Err says
// that there is a file again that is right, after one that was not taken, or that the new
// one says the same.
type Reload struct {
	// File is the one in force now: the old one, if there is an error. It must not be
	// changed.
	File *PolicyFile
	// Changes are what is different now, by name. A file that says the same in other words,
	// or is only changed in its facts, has none.
	Changes []Change
	// Unused are the names of dependencies in the file that nothing in the program
	// follows, by name: likely misspelt, or no longer called.
	Unused []string
	// Err is why the file was not taken: [Mistakes], or that it cannot be read. Nothing has
	// changed then.
	Err error
}

// A Change is that of one dependency.
type Change struct {
	// Name is that of the dependency; empty for what follows the defaults.
	Name string
	Kind ChangeKind
	// Before and After are its policies. Of one that the file did not or does not list
	// it is that of the defaults.
	Before, After lull.Policy
	// Err is what those that follow it said against After, joined; they go on as before.
	// That cannot be of dependencies and registries.
	Err error
}

// A ChangeKind says what became of a dependency in the file.
type ChangeKind uint8

const (
	// Changed: the policy is another.
	Changed ChangeKind = iota
	// Added: the file lists it now.
	Added
	// Removed: the file does not list it any more. The defaults count for it.
	Removed
)

var changeNames = [...]string{"changed", "added", "removed"}

// String is the kind in a word: "changed".
func (k ChangeKind) String() string {
	if int(k) < len(changeNames) {
		return changeNames[k]
	}
	return fmt.Sprintf("change(%d)", uint8(k))
}

// OpenLive reads the policy file at path, as [ReadPolicyFile] does: a program does not
// start with a file that is wrong. Afterwards report is told of every change and of every
// file that was not taken, one after the other; nil: nobody is. It must not call Reload.
func OpenLive(path string, report func(Reload)) (*Live, error) {
	data, err := readRegular(path)
	if err != nil {
		return nil, err
	}
	f, err := ParsePolicyFile(path, data)
	if err != nil {
		return nil, err
	}
	if report == nil {
		report = func(Reload) {}
	}
	l := &Live{path: path, report: report, inForce: sha256.Sum256(data)}
	l.file.Store(f)
	return l, nil
}

// File is the one in force. It must not be changed.
func (l *Live) File() *PolicyFile { return l.file.Load() }

// Dependency is the one of that name, under the policy that the file has for it, or
// that of the defaults if it does not list the name. All who ask for a name get the
// same; opts are those of the first who does. It fails if there is no name.
//
// What was asked for once is kept as long as l. The names are those in the program's
// text: for hosts, tenants and whatever else comes from outside make a [lull.Registry],
// and let it follow by FollowEach or Follow.
func (l *Live) Dependency(name string, opts ...lull.Option) (*lull.Dependency, error) {
	if d, ok := l.dependencies.Load(name); ok {
		return d.(*lull.Dependency), nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if d, ok := l.dependencies.Load(name); ok {
		return d.(*lull.Dependency), nil
	}
	d, err := lull.NewDependency(name, l.File().Policy(name), opts...)
	if err != nil {
		return nil, err
	}
	l.followers = append(l.followers, follower{name, d})
	l.dependencies.Store(name, d)
	return d, nil
}

// Follow gives u the policy of the dependency of that name, now and whenever it changes:
// that of the defaults if the file does not list the name, and if name is empty. If u
// refuses the first it does not follow; else it does as long as there is l. The registry
// of a lullhttp.Transport is one to follow, if one policy is for all its hosts; they keep
// what they remember.
func (l *Live) Follow(name string, u Updater) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := u.Update(l.File().Policy(name)); err != nil {
		return err
	}
	l.followers = append(l.followers, follower{name, u})
	return nil
}

// FollowEach gives each dependency of r the policy that the file has for its key, or that of
// the defaults if it does not list the key, now and whenever it changes. So the hosts that a
// lullhttp.Transport calls, those to come as well, are dependencies of the file by their
// names. It follows as long as there is l.
func (l *Live) FollowEach(r *lull.Registry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.updateEach(r); err != nil {
		return err
	}
	l.registries = append(l.registries, r)
	return nil
}

func (l *Live) updateEach(r *lull.Registry) error {
	return r.UpdateEach(func(key string) lull.Policy { return l.File().Policy(key) })
}

// Unused are the names of dependencies in the file that nobody has asked for or
// follows. When a program has begun to call everything it calls, those are likely
// misspelt: a policy that is for nothing, while that which it was meant for has the
// defaults.
func (l *Live) Unused() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.unused()
}

func (l *Live) unused() []string {
	used := map[string]bool{}
	for _, u := range l.followers {
		used[u.name] = true
	}
	for _, r := range l.registries {
		r.All(func(d *lull.Dependency) bool { used[d.Name()] = true; return true })
	}
	var names []string
	for name := range l.File().policies() {
		if !used[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Reload reads the file now, for programs that do so upon a signal:
//
//	hangups := make(chan os.Signal, 1)
//	signal.Notify(hangups, syscall.SIGHUP)
//	for range hangups {
//		live.Reload()
//	}
//
// It takes the file as it finds it, so write it in one step: beside its place, and then
// rename it. The error is why it was not taken:
// [Mistakes], or that it cannot be read; nothing has changed then. It is reported as well,
// and so are changes. A file that is as it was is no change.
func (l *Live) Reload() error {
	l.reloading.Lock()
	defer l.reloading.Unlock()
	data, now, err := l.read()
	if err != nil {
		l.refuse(now, err)
		return err
	}
	return l.take(data, now)
}

func (l *Live) read() ([]byte, sight, error) {
	data, err := readRegular(l.path)
	if err != nil {
		return nil, sight{err: err.Error()}, err
	}
	return data, sight{sum: sha256.Sum256(data)}, nil
}

// Watch looks at the file every interval, and takes it when it has changed, until ctx
// ends; it returns the cause of that. Zero means DefaultInterval. Run it on a goroutine
// of its own, and only one.
//
// It takes a file when two looks in a row have found the same: one that is just being
// written may well look like a whole one. It reads the file, a matter of microseconds,
// rather than waiting to be told: a file may be a link to another one which is replaced,
// as those that Kubernetes mounts, or lie where changes are not told of.
func (l *Live) Watch(ctx context.Context, interval time.Duration) error {
	if interval < 0 {
		return fmt.Errorf("config: interval is %v: want a positive duration, or 0 for the default of %v", interval, DefaultInterval)
	}
	ticks := time.NewTicker(cmp.Or(interval, DefaultInterval))
	defer ticks.Stop()
	var last sight
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticks.C:
			last = l.look(last)
		}
	}
}

// look takes the file if it has been the same at the look before, and has not been
// refused then. It returns what it has seen.
func (l *Live) look(before sight) sight {
	l.reloading.Lock()
	defer l.reloading.Unlock()
	data, now, err := l.read()
	switch {
	case now != before || now == l.refused:
	case err != nil:
		l.refuse(now, err)
	default:
		_ = l.take(data, now) // it is reported
	}
	return now
}

// take makes data the file in force, if it is one.
func (l *Live) take(data []byte, now sight) error {
	if now.sum == l.inForce {
		if l.refused != (sight{}) { // all is well again
			l.refused = sight{}
			l.report(Reload{File: l.File(), Unused: l.Unused()})
		}
		return nil
	}
	f, err := ParsePolicyFile(l.path, data)
	if err != nil {
		l.refuse(now, err)
		return err
	}
	l.inForce, l.refused = now.sum, sight{}
	l.report(l.apply(f))
	return nil
}

// refuse reports a file that is not taken.
func (l *Live) refuse(what sight, err error) {
	l.refused = what
	l.report(Reload{File: l.File(), Unused: l.Unused(), Err: err})
}

// apply makes f the file in force.
func (l *Live) apply(f *PolicyFile) Reload {
	l.mu.Lock()
	defer l.mu.Unlock()
	old := l.file.Swap(f)
	followed := []string{}
	for _, u := range l.followers {
		followed = append(followed, u.name)
	}
	if len(l.registries) > 0 {
		followed = append(followed, "") // some key may have the defaults
	}
	r := Reload{File: f, Changes: changes(old, f, followed), Unused: l.unused()}
	changed := map[string]*Change{}
	for i := range r.Changes {
		if c := &r.Changes[i]; c.Before != c.After {
			changed[c.Name] = c
		}
	}
	for _, u := range l.followers {
		if c := changed[u.name]; c != nil {
			c.Err = errors.Join(c.Err, u.Update(c.After))
		}
	}
	if len(changed) > 0 {
		for _, each := range l.registries {
			_ = l.updateEach(each) // it refuses only what does not validate
		}
	}
	return r
}

// changes are what is different in f for the dependencies of both files and for those that
// are followed, by name.
func changes(old, f *PolicyFile, followed []string) []Change {
	before, after := old.policies(), f.policies()
	names := map[string]bool{}
	for name := range before {
		names[name] = true
	}
	for name := range after {
		names[name] = true
	}
	for _, name := range followed {
		names[name] = true
	}
	var all []Change
	for name := range names {
		c := Change{Name: name, Before: old.Defaults.Policy, After: f.Defaults.Policy}
		was, listed := before[name]
		is, lists := after[name]
		if listed {
			c.Before = *was
		}
		if lists {
			c.After = *is
		}
		switch {
		case lists && !listed:
			c.Kind = Added
		case listed && !lists:
			c.Kind = Removed
		case c.Before == c.After:
			continue
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b Change) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// policies are those of the dependencies that f lists, by name.
func (f *PolicyFile) policies() map[string]*lull.Policy {
	all := make(map[string]*lull.Policy, len(f.Dependencies))
	for i := range f.Dependencies {
		all[f.Dependencies[i].Name] = &f.Dependencies[i].Policy
	}
	return all
}
