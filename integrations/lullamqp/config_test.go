package lullamqp

import (
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
)

func TestConfigReportsAllThatIsWrong(t *testing.T) {
	err := Config{
		Queue: "orders.*", DeadLetters: "amq.dead", Prefix: strings.Repeat("p", 101), DeliveryLimit: 2,
		Native: Native{Min: 2 * time.Second, Max: time.Second},
	}.Validate()
	if err == nil {
		t.Fatal("nothing is wrong")
	}
	for _, field := range []string{"Queue", "DeadLetters", "Prefix", "DeliveryLimit", "Native.Max"} {
		if !strings.Contains(err.Error(), field+" is ") {
			t.Errorf("nothing about %s in:\n%v", field, err)
		}
	}
}

func TestConfigs(t *testing.T) {
	for _, c := range []struct {
		name string
		Config
		ok bool
	}{
		{"zero", Config{}, false},
		{"name only", Config{Queue: "orders"}, true},
		{"dots, spaces, slashes, umlauts", Config{Queue: "eu.orders /ü"}, true},
		{"longest name", Config{Queue: strings.Repeat("q", 200)}, true},
		{"too long a name", Config{Queue: strings.Repeat("q", 201)}, false},
		{"a name that is a pattern", Config{Queue: "orders.#"}, false},
		{"not UTF-8", Config{Queue: "orders\xff"}, false},
		{"the broker's name", Config{Queue: "amq.orders"}, false},
		{"dead letters into itself", Config{Queue: "orders", DeadLetters: "orders"}, false},
		{"dead letters elsewhere", Config{Queue: "orders", DeadLetters: "dead"}, true},
		{"a limit", Config{Queue: "orders", DeliveryLimit: 3}, true},
		{"no limit", Config{Queue: "orders", DeliveryLimit: -1}, false},
		{"native", Config{Queue: "orders", Native: Native{Min: time.Second, Max: time.Minute}}, true},
		{"native without an end", Config{Queue: "orders", Native: Native{Min: time.Second}}, false},
		{"native without a beginning", Config{Queue: "orders", Native: Native{Max: time.Second}}, false},
		{"native in parts of a millisecond", Config{Queue: "orders", Native: Native{Min: time.Microsecond * 1500, Max: time.Second}}, false},
	} {
		if err := c.Validate(); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	// The routing key of the longest name fits into the 255 bytes that it may have.
	if n := len(levelKey(1<<levels-1, strings.Repeat("q", 200))); n > 255 {
		t.Errorf("a routing key of %d bytes", n)
	}
}

func TestOpenRefuses(t *testing.T) {
	c := New(nil)
	if _, err := c.open(Config{}); err == nil {
		t.Error("a queue without a name")
	}
	check.Equal(t, c.Close(t.Context()), nil, "c.Close(t.Context())")
	if _, err := c.open(Config{Queue: "orders"}); err == nil {
		t.Error("a queue of a client that was closed")
	}
}

func TestVersions(t *testing.T) {
	for _, c := range []struct {
		ServerInfo
		native bool
	}{
		{ServerInfo{Product: "RabbitMQ", Version: "4.3.6"}, true},
		{ServerInfo{Product: "RabbitMQ", Version: "4.3.0-rc.1"}, true},
		{ServerInfo{Product: "RabbitMQ", Version: "4.10.0"}, true},
		{ServerInfo{Product: "RabbitMQ", Version: "5.0.0"}, true},
		{ServerInfo{Product: "RabbitMQ", Version: "4.3+14.gabc"}, true},
		{ServerInfo{Product: "RabbitMQ", Version: "4.2.9"}, false},
		{ServerInfo{Product: "RabbitMQ", Version: "3.10.8"}, false},
		{ServerInfo{Product: "RabbitMQ", Version: "4"}, false},
		{ServerInfo{Product: "RabbitMQ", Version: ""}, false},
		{ServerInfo{Product: "RabbitMQ", Version: "x.y"}, false},
		{ServerInfo{Product: "LavinMQ", Version: "4.3.6"}, false},
	} {
		config := Config{Queue: "orders", Native: Native{Min: time.Second, Max: time.Minute}}
		if err := config.supported(c.ServerInfo); (err == nil) != c.native {
			t.Errorf("%v: %v", c.ServerInfo, err)
		}
		config.Native = Native{}
		check.Equal(t, config.supported(c.ServerInfo), nil, "%v without native retries", c.ServerInfo)
	}
}

// Whether Concurrency grows at once or in steps, a channel has no more consumers than RabbitMQ can
// put in order.
func TestConsumersOfOneChannel(t *testing.T) {
	t.Parallel()
	const concurrency = 100_000
	for step := 1; step <= concurrency; step += 1 + step/3 {
		n, limit := 0, 0
		for wanted := step; limit < concurrency; wanted = min(max(wanted, limit)+step, concurrency) {
			for limit < wanted {
				limit += prefetchStep(n, limit, wanted)
				n++
			}
		}
		if n > maxConsumers {
			t.Errorf("%d consumers by steps of %d, want no more than %d", n, step, maxConsumers)
		}
	}
}

// A channel may be closed at once after few acknowledgements, and a second after the last of many.
func TestKeepOpen(t *testing.T) {
	var u ackTimes
	now := time.Unix(1_800_000_000, 0)
	check.Equal(t, u.keepOpen(now), 0, "before the first")
	for range safeAcks - 1 {
		now = now.Add(time.Millisecond)
		u.note(now)
	}
	check.Equal(t, u.keepOpen(now), 0, "after few")
	for range 3 * safeAcks {
		now = now.Add(time.Millisecond)
		u.note(now)
		if d := u.keepOpen(now); d != applyTime {
			t.Fatalf("after many: %v", d)
		}
	}
	check.Equal(t, u.keepOpen(now.Add(applyTime/4)), applyTime*3/4, "a quarter later")
	check.Equal(t, u.keepOpen(now.Add(applyTime)), 0, "at its end")
	u.note(now.Add(applyTime))
	check.Equal(t, u.keepOpen(now.Add(applyTime)), 0, "after one more")
}
