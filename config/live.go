package config

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/codec"
)

// DefaultInterval is how often [Live.Watch] looks at the file by default.
const DefaultInterval = 5 * time.Second

// Live is a policy file in a running program, which follows the changes of the file. It keeps the policies of dependencies
// as the file has them. Calls that are under way end under the policy that they began with. Budgets that are spent stay
// spent, and open circuits stay open. Every field may change; a throttle, a concurrency limit and hedging start anew if
// their own fields change ([lull.Dependency.Update]).
//
// A new file is read completely before any of it takes effect. If there is a mistake in it, the old file stays in force as a
// whole, and the mistakes are reported. A new file takes effect in one dependency after another; for some microseconds a few
// have the new policy and the others the old one. The methods of Live may be called concurrently.
type Live struct {
	path   string
	report func(Reload)

	file atomic.Pointer[PolicyFile] // in force
	// dependencies were made by Dependency, by name.
	dependencies sync.Map

	reloading sync.Mutex // held while the file is read, applied and reported
	// The following are guarded by reloading.
	inForce [sha256.Size]byte // the checksum of the file in force
	refused fileState         // what was refused and reported last; zero: nothing

	mu         sync.Mutex // guards what follows, so that no follower misses a change of the file
	followers  []follower
	registries []*lull.Registry // of FollowEach
}

type fileState struct {
	sum [sha256.Size]byte // of its content
	err string            // why it cannot be read; empty: it can
}

type follower struct {
	name string
	Updater
}

// An Updater has a policy that can be changed: a [*lull.Dependency] or a [*lull.Registry]. Update
// is called with valid policies, and must not call the Live.
type Updater interface{ Update(lull.Policy) error }

// Reload reports what came of a change of the file. One with neither Changes nor Err reports that the file is right again
// after it was refused, or that a new file has the same content in other words.
type Reload struct {
	// File is the file that is in force now: the old one if there is an error. It must not be changed.
	File *PolicyFile
	// Changes are the differences to the file that was in force before, sorted by name. So no change is
	// missed: a policy is that of the last report, changed. Versions of the file that were replaced
	// before they were looked at, or while a report was made, are not reported. There are none if the file has the same policies
	// in other words, or only its facts have changed.
	Changes []PolicyChange
	// Unused are the names of dependencies in the file that nothing in the program follows, sorted:
	// probably misspelt, or no longer called.
	Unused []string
	// Err is why the file was refused: [Mistakes], or an error of reading it. Nothing has changed then.
	Err error
}

// A PolicyChange is the change of one dependency.
type PolicyChange struct {
	// Name is the name of the dependency; empty for what follows the defaults.
	Name string
	Kind ChangeKind
	// Before and After are its policies. A dependency that the file did not list, or does not list
	// any more, has that of the defaults.
	Before, After lull.Policy
	// Err has the errors with which followers refused After, joined; they keep the policy they had.
	// Dependencies and registries refuse nothing.
	Err error
}

// A ChangeKind is how a dependency in the file has changed.
type ChangeKind uint8

const (
	// Changed: the policy has changed.
	Changed ChangeKind = iota
	// Added: the file lists it now.
	Added
	// Removed: the file does not list it any more. It has the policy of the defaults.
	Removed
)

var changeNames = [...]string{"changed", "added", "removed"}

// String returns the kind in a word: "changed".
func (k ChangeKind) String() string { return choice.Name("change", changeNames[:], k) }

// OpenLive reads the policy file at path, as [ReadPolicyFile] does: a program should not start with
// a wrong file. Afterwards it calls report with every change and with every file that it refuses,
// one after another. report may be nil. It must not call Reload.
func OpenLive(path string, report func(Reload)) (*Live, error) {
	data, err := codec.ReadRegular(path)
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

// File returns the file that is in force. It must not be changed.
func (l *Live) File() *PolicyFile { return l.file.Load() }

// Dependency returns the dependency of that name, with the policy that the file has for it, or that
// of the defaults if the file does not list the name. All callers with the same name get the same
// dependency; opts are those of the first. It fails if the name is empty.
//
// A dependency is kept as long as l. Use it for names in the text of the program. For hosts, tenants and other names that
// come from outside, make a [lull.Registry] and let it follow with FollowEach or Follow.
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

// Follow gives u the policy of the dependency of that name, now and whenever it changes. If the file does not list the name,
// and if the name is empty, that is the policy of the defaults. If u refuses the first policy it does not follow; otherwise
// it follows as long as l exists. Use it for the registry of a lullhttp.Transport if one policy is for all its hosts; they
// keep what they have learned.
func (l *Live) Follow(name string, u Updater) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := u.Update(l.File().Policy(name)); err != nil {
		return err
	}
	l.followers = append(l.followers, follower{name, u})
	return nil
}

// FollowEach gives each dependency of r the policy that the file has for its key, or that of the defaults if the file does
// not list the key, now and whenever it changes. So the hosts that a lullhttp.Transport calls, future ones included, can be
// listed in the file by their names. r follows as long as l exists.
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

// Unused returns the names of dependencies in the file that nobody has asked for or follows. When a
// program has started to call everything that it calls, those are probably misspelt: their policies
// have no effect, and the dependencies that they are meant for have the defaults.
func (l *Live) Unused() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.unused()
}

func (l *Live) unused() []string {
	left := l.File().policies()
	for _, u := range l.followers {
		delete(left, u.name)
	}
	for _, r := range l.registries {
		r.All(func(d *lull.Dependency) bool { delete(left, d.Name()); return true })
	}
	return slices.Sorted(maps.Keys(left))
}

// Reload reads the file now, for programs that do so upon a signal:
//
//	hangups := make(chan os.Signal, 1)
//	signal.Notify(hangups, syscall.SIGHUP)
//	for range hangups {
//		live.Reload()
//	}
//
// It takes the file as it is at that moment, so replace the file in one step: write it beside its place, and then rename it.
// The error is why the file was refused: [Mistakes], or an error of reading it. Nothing has changed then. Errors and changes
// are reported as well. A file that is the same as before is no change.
func (l *Live) Reload() error {
	l.reloading.Lock()
	defer l.reloading.Unlock()
	data, now, err := l.read()
	if err != nil {
		l.refuse(now, err)
		return err
	}
	return l.putInForce(data, now)
}

func (l *Live) read() ([]byte, fileState, error) {
	data, err := codec.ReadRegular(l.path)
	if err != nil {
		return nil, fileState{err: err.Error()}, err
	}
	return data, fileState{sum: sha256.Sum256(data)}, nil
}

// Watch looks at the file every interval, and takes it when it has changed, until ctx ends. It returns the cause of that. An
// interval of zero means DefaultInterval. Run it on one goroutine of its own.
//
// It takes a file when two looks in a row have found the same content, because a file that is being written may look
// complete. It reads the file, which takes microseconds, and does not wait for notifications: the file may be a link to
// another one that is replaced, as Kubernetes mounts them, or be on a file system without notifications.
func (l *Live) Watch(ctx context.Context, interval time.Duration) error {
	if interval < 0 {
		return fmt.Errorf("config: interval is %v: want a positive duration, or 0 for the default of %v", interval, DefaultInterval)
	}
	ticks := time.NewTicker(cmp.Or(interval, DefaultInterval))
	defer ticks.Stop()
	var last fileState
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticks.C:
			last = l.checkFile(last)
		}
	}
}

// checkFile puts the file in force if it is as it was at the check before, and was not refused. It returns the file's state.
func (l *Live) checkFile(before fileState) fileState {
	l.reloading.Lock()
	defer l.reloading.Unlock()
	data, now, err := l.read()
	switch {
	case now != before || now == l.refused:
	case err != nil:
		l.refuse(now, err)
	default:
		_ = l.putInForce(data, now) // the error is reported
	}
	return now
}

// putInForce makes data the file in force, if it is a policy file.
func (l *Live) putInForce(data []byte, now fileState) error {
	if now.sum == l.inForce {
		if l.refused != (fileState{}) { // the file is as before it was refused
			l.refused = fileState{}
			l.report(Reload{File: l.File(), Unused: l.Unused()})
		}
		return nil
	}
	f, err := ParsePolicyFile(l.path, data)
	if err != nil {
		l.refuse(now, err)
		return err
	}
	l.inForce, l.refused = now.sum, fileState{}
	l.report(l.apply(f))
	return nil
}

func (l *Live) refuse(what fileState, err error) {
	l.refused = what
	l.report(Reload{File: l.File(), Unused: l.Unused(), Err: err})
}

func (l *Live) apply(f *PolicyFile) Reload {
	l.mu.Lock()
	defer l.mu.Unlock()
	old := l.file.Swap(f)
	followed := choice.Each(l.followers, func(u follower) string { return u.name })
	if len(l.registries) > 0 {
		followed = append(followed, "") // a key may have the defaults
	}
	r := Reload{File: f, Changes: changes(old, f, followed), Unused: l.unused()}
	changed := map[string]*PolicyChange{}
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

func changes(old, f *PolicyFile, followed []string) []PolicyChange {
	before, after := old.policies(), f.policies()
	names := slices.Concat(slices.Collect(maps.Keys(before)), slices.Collect(maps.Keys(after)), followed)
	slices.Sort(names)
	var all []PolicyChange
	for _, name := range slices.Compact(names) {
		c := PolicyChange{Name: name, Before: old.Defaults.Policy, After: f.Defaults.Policy}
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
	return all
}

func (f *PolicyFile) policies() map[string]*lull.Policy {
	all := make(map[string]*lull.Policy, len(f.Dependencies))
	for i := range f.Dependencies {
		all[f.Dependencies[i].Name] = &f.Dependencies[i].Policy
	}
	return all
}
