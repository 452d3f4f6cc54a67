package admission

import (
	"testing"
	"time"
)

func TestTimes(t *testing.T) {
	var x times
	x.learn(20 * ms)
	if x.mean != 20*ms || x.median != 20*ms {
		t.Errorf("%+v after the first", x)
	}
	x.learn(time.Second) // one that is slow moves the median by no more than any other
	if x.median <= 20*ms || x.median > 22*ms || x.mean < 50*ms || x.mean > 51*ms {
		t.Errorf("%+v after one that is slow", x)
	}
	for range 300 {
		x.learn(100 * ms)
		if x.median > 100*ms {
			t.Fatalf("median %v of requests that take 100ms", x.median)
		}
	}
	if x.median != 100*ms || x.mean < 99*ms || x.mean > 101*ms {
		t.Errorf("%+v when all take 100ms", x)
	}
	for i := range 3000 { // a third is slow
		x.learn(10*ms + time.Duration(i%3/2)*time.Second)
	}
	if x.median < 9*ms || x.median > 15*ms || x.mean < 250*ms || x.mean > 450*ms {
		t.Errorf("%+v when one in three takes a second, and the others 10ms", x)
	}
	x.learn(-5)
	x.learn(1 << 62)
	if x.mean <= 0 || x.mean > 10*time.Minute {
		t.Errorf("%+v", x)
	}
}
