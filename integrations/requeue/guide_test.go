package requeue_test

import (
	"testing"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/integrations/requeue"
)

// What the guide and the comment of the package show, as it stands there.

func guideNew() (*requeue.RateLimiter[Request], error) {
	d, err := lull.NewDependency("cloud", requeue.Policy())
	if err != nil {
		return nil, err
	}
	return requeue.New[Request](d) // for controller.Options{RateLimiter: ...}
}

func TestWhatTheDocsShow(t *testing.T) {
	limiter, err := guideNew()
	if err != nil || limiter.When(Request{"default", "first"}) < 0 {
		t.Errorf("%v, %v", limiter, err)
	}
}
