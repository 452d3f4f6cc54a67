// Package tail keeps the end of what a program writes: enough for the message of a test that it fails.
package tail

import (
	"strings"
	"sync"
)

// maxBytes is how many bytes are kept.
const maxBytes = 16_000

// A Tail is the last that was written to it. Its zero value is ready, and its methods may be called
// concurrently.
type Tail struct {
	mu   sync.Mutex
	text []byte
}

// Write keeps p, or its end. It never fails.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	t.text = t.text[max(0, len(t.text)-maxBytes):]
	return len(p), nil
}

// String returns what is kept, without the white space around it.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.text))
}
