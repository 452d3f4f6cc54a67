package admission

import (
	"math"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/problem"
)

func TestValidate(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		config Config
		fields []string
	}{
		{Config{}, nil},
		{Config{Limit: 1}, nil},
		{Config{Limit: MaxLimit}, nil},
		{Config{Limit: -1}, []string{"Limit"}},
		{Config{Limit: MaxLimit + 1}, []string{"Limit"}},
		{Config{Limit: 4, Min: 1, Max: 1}, []string{"Min", "Max"}},
		{Config{Min: 5, Max: 4}, []string{"Max"}},
		{Config{Min: 5, Max: 5}, nil},
		{Config{Min: 2000}, nil},
		{Config{Min: -1, Max: -1}, []string{"Min", "Max"}},
		{Config{MaxWait: -1}, nil},
		{Config{MaxWait: -1, PressedWait: 1, MaxQueue: 1}, []string{"PressedWait", "MaxQueue"}},
		{Config{PressedWait: -1}, []string{"PressedWait"}},
		{Config{MaxWait: time.Second, PressedWait: 2 * time.Second}, []string{"PressedWait"}},
		{Config{PressedWait: time.Second}, nil},
		{Config{MaxQueue: -1}, []string{"MaxQueue"}},
		{Config{RetryRatio: -1}, nil},
		{Config{RetryRatio: 10}, nil},
		{Config{RetryRatio: 10.1}, []string{"RetryRatio"}},
		{Config{RetryRatio: nan}, []string{"RetryRatio"}},
		{Config{Limit: -1, MaxQueue: -1, RetryRatio: nan}, []string{"Limit", "MaxQueue", "RetryRatio"}},
	} {
		err := c.config.Validate()
		check.Slices(t, problem.Fields(err), c.fields, "%+v: fields of %v", c.config, err)
		if _, err := New(c.config); (err != nil) != (c.fields != nil) {
			t.Errorf("New(%+v): %v", c.config, err)
		}
	}
	want := "Limit is -1: want zero (adaptive), or a number from 1 to 1000000"
	if err := (Config{Limit: -1}).Validate(); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
