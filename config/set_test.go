package config

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/codec"
	"github.com/lullgo/lull/preset"
)

func TestSetPolicy(t *testing.T) {
	p := full
	for _, assignment := range []string{"preset=external-api", "attempts=4", "backoff.base=50ms", "budget={ratio: 20%}", "breaker.off=true", "deadline=none"} {
		if err := SetPolicy(&p, assignment); err != nil {
			t.Errorf("%s: %v", assignment, err)
		}
	}
	want := preset.ExternalAPI()
	want.Backoff.Base, want.Breaker.Off, want.Deadline = 50*time.Millisecond, true, lull.NoTimeout
	want.Budget = lull.Policy{}.Budget
	want.Budget.Ratio = 0.2
	if p != want {
		t.Errorf("got %+v, want %+v", p, want)
	}
	for assignment, message := range map[string]string{
		"attempts":        `"attempts": want an assignment such as backoff.base=50ms`,
		"base=1s":         `base is unknown: want ` + strings.TrimPrefix(codec.MappingOf(reflect.TypeFor[lull.Policy](), "preset"), "a mapping of ") + `; did you mean rate_limited_base?`,
		"preset=internal": `preset is "internal": want internal-service, external-api, background-worker, command-line, edge or a client that is all policy, such as go-retryablehttp; did you mean internal-service?`,
	} {
		if got := fmt.Sprint(SetPolicy(&p, assignment)); got != message {
			t.Errorf("%q:\n got %s\nwant %s", assignment, got, message)
		}
	}
	if p != want {
		t.Errorf("refused assignments changed it to %+v", p)
	}
}
