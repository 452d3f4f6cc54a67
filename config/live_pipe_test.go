//go:build unix

package config

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Opening a pipe blocks until something writes to it; Watch would block for ever.
func TestLiveRefusesAPipe(t *testing.T) {
	const want = "not a regular file"
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skipf("no pipes: %v", err)
	}
	if _, err := OpenLive(pipe, nil); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("opened: %v", err)
	}
	l := openLive(t, "attempts: 2\n")
	done(t, os.Rename(pipe, l.path))
	if err := l.Reload(); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("reloaded: %v", err)
	}
	l.reported("a pipe", "unreadable; unused retry")
}
