package config

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull/internal/codec"
)

// watched watches the file of l for the rest of the test; each step is one look, after which
// the reports since the last must be these.
func watched(t *testing.T, l *liveFile) (step func(when string, want ...string)) {
	t.Helper()
	why := errors.New("enough")
	ctx, stop := context.WithCancelCause(context.WithoutCancel(t.Context())) // which ends before a cleanup
	ended := make(chan error)
	go func() { ended <- l.Watch(ctx, time.Second) }()
	t.Cleanup(func() {
		stop(why)
		if err := <-ended; err != why {
			t.Errorf("Watch returned %v", err)
		}
	})
	time.Sleep(time.Second / 2) // from now on between two looks
	return func(when string, want ...string) {
		t.Helper()
		time.Sleep(time.Second)
		synctest.Wait()
		l.reported(when, want...)
	}
}

// A file that is written in place is empty, and then half of itself, for as long as that
// takes.
func TestWatchWaitsForAFileThatIsWrittenInPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := openLive(t, "dependencies: {a: {attempts: 2}, b: {attempts: 2}}\n")
		a, b := l.dependency("a"), l.dependency("b")
		step := watched(t, l)
		in := func(content string) {
			t.Helper()
			done(t, os.WriteFile(l.path, []byte(content), 0o600))
		}
		in("")
		step("truncated")
		in("dependencies:\n  a: {attempts: 3}\n")
		step("half of it, which is a file by itself")
		in("dependencies:\n  a: {attempts: 3}\n  b: {attempts: 3}\n")
		step("whole")
		step("whole again", "a changed 2>3; b changed 2>3")
		if x, y := a.Policy().Attempts, b.Policy().Attempts; x != 3 || y != 3 {
			t.Errorf("%d and %d attempts", x, y)
		}
		// Other content of the same length, with the same time of change.
		info := must(os.Stat(l.path))
		in("dependencies:\n  a: {attempts: 4}\n  b: {attempts: 3}\n")
		done(t, os.Chtimes(l.path, info.ModTime(), info.ModTime()))
		step("one digit")
		step("one digit, twice", "a changed 3>4")
	})
}

// A ConfigMap in a pod: the file is a link into ..data, which is a link to the folder of one
// version. A new version is a new folder, and the old one goes.
func TestWatchFollowsTheLinksOfAConfigMap(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a link is not replaced by renaming there, and pods of Windows do otherwise")
	}
	mount := t.TempDir()
	version := func(folder, content string) {
		t.Helper()
		done(t, os.Mkdir(filepath.Join(mount, folder), 0o700))
		done(t, os.WriteFile(filepath.Join(mount, folder, "retry.yaml"), []byte(content), 0o600))
		next, data := filepath.Join(mount, "..data_tmp"), filepath.Join(mount, "..data")
		if err := os.Symlink(folder, next); err != nil {
			t.Skipf("no symbolic links: %v", err)
		}
		done(t, os.Rename(next, data))
	}
	version("..2026_01_01", "dependencies: {a: {attempts: 2}}\n")
	path := filepath.Join(mount, "retry.yaml")
	if err := os.Symlink(filepath.Join("..data", "retry.yaml"), path); err != nil {
		t.Skipf("no symbolic links: %v", err)
	}
	synctest.Test(t, func(t *testing.T) {
		l := &liveFile{t: t, path: path}
		l.Live = must(OpenLive(path, l.record))
		a := l.dependency("a")
		step := watched(t, l)
		version("..2026_01_02", "dependencies: {a: {attempts: 3}}\n")
		done(t, os.RemoveAll(filepath.Join(mount, "..2026_01_01")))
		step("another version")
		step("another version, twice", "a changed 2>3")
		done(t, os.RemoveAll(filepath.Join(mount, "..2026_01_02")))
		step("links to nothing")
		version("..2026_01_03", "dependencies: {a: {attempts: 4}}\n")
		step("back at the second look")
		step("back", "a changed 3>4")
		if got := a.Policy().Attempts; got != 4 {
			t.Errorf("%d attempts", got)
		}
	})
}

// A file that cannot be read is reported once, for any reason, and the policies stay.
func TestWatchOutlastsWhatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const content = "dependencies: {a: {attempts: 2}}\n"
		l := openLive(t, content)
		a := l.dependency("a")
		step := watched(t, l)
		l.remove()
		step("gone for a moment") // as it is while it is replaced in two steps
		l.write(content)
		step("back")
		step("back, twice")

		l.remove()
		done(t, os.Mkdir(l.path, 0o700))
		step("a folder")
		step("a folder, twice", "unreadable")
		step("a folder, three times")
		l.remove()
		l.write(content)
		step("back as it was")
		step("back as it was, twice", "")
		step("back as it was, three times")
		l.write("# " + string(make([]byte, codec.MaxBytes)))
		step("far too large")
		step("far too large, twice", "1 mistakes")
		step("far too large, three times")
		l.write("dependencies: {a: {attempts: 3}}\n")
		step("right")
		step("right, twice", "a changed 2>3")
		if got := a.Policy().Attempts; got != 3 {
			t.Errorf("%d attempts", got)
		}
	})
}

// A report function may call the methods of the Live, and end the Watch.
func TestAReportMayAskAndStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &liveFile{t: t, path: filepath.Join(t.TempDir(), "retry.yaml")}
		l.write("dependencies: {a: {attempts: 2}}\n")
		ctx, stop := context.WithCancel(t.Context())
		var live *Live
		reports := 0
		live, err := OpenLive(l.path, func(r Reload) {
			reports++
			if d, err := live.Dependency("b"); err != nil || d.Policy().Attempts != 4 {
				t.Errorf("%v, %v", d, err)
			}
			if got := live.Unused(); len(got) != 1 || got[0] != "a" {
				t.Errorf("unused are %v", got)
			}
			var u follows
			if err := live.Follow("a", &u); err != nil || live.File() != r.File || u.policies[0].Attempts != 3 {
				t.Errorf("%v, %+v", err, u)
			}
			stop()
		})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error)
		go func() { ended <- live.Watch(ctx, time.Second) }()
		l.write("dependencies: {a: {attempts: 3}, b: {attempts: 4}}\n")
		if err := <-ended; !errors.Is(err, context.Canceled) || reports != 1 {
			t.Errorf("Watch returned %v after %d reports", err, reports)
		}
	})
}

// A change is reported once, however many call Reload at the same time and watch besides.
func TestReloadsAtTheSameTime(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a file that is being read is not replaced there")
	}
	l := openLive(t, "dependencies: {a: {attempts: 1}}\n")
	a := l.dependency("a")
	ctx, stop := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	for range 2 {
		watching.Go(func() { l.Watch(ctx, time.Microsecond) })
	}
	const changes = 20
	for i := range changes {
		l.write("dependencies: {a: {attempts: " + string(rune('2'+i%2)) + "}}\n")
		var reloading sync.WaitGroup
		for range 8 {
			reloading.Go(func() {
				if err := l.Reload(); err != nil {
					t.Error(err)
				}
				if got, want := a.Policy().Attempts, 2+i%2; got != want {
					t.Errorf("%d attempts, want %d", got, want)
				}
			})
		}
		reloading.Wait()
	}
	stop()
	watching.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.got) != changes {
		t.Errorf("%d reports of %d changes: %q", len(l.got), changes, l.got)
	}
}
