package codec

import "testing"

func TestPath(t *testing.T) {
	for path, want := range map[string]string{
		"Attempts": "attempts", "AttemptTimeout": "attempt_timeout", "DontRetry": "dont_retry", "UpTo": "up_to", "HTTP": "http", "": "",
		"Services[0].Queue.MaxWait": "services.0.queue.max_wait", "Budget.Ratio": "budget.ratio", "A[1][23].B": "a.1.23.b",
	} {
		if got := Path(path); got != want {
			t.Errorf("Path(%q) = %q, want %q", path, got, want)
		}
	}
}
