package requeue_test

import (
	"github.com/lullgo/lull"
	"github.com/lullgo/lull/requeue"
)

// What the guide shows must compile as it stands there; other tests run it.
func guideNew() (*requeue.Limiter[Request], error) {
	d, err := lull.NewDependency("cloud", requeue.Policy())
	if err != nil {
		return nil, err
	}
	return requeue.New[Request](d) // for controller.Options{RateLimiter: ...}
}

var _ = guideNew
