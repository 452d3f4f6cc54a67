package lullamqp

import (
	"errors"
	"fmt"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"
)

// ErrNative is returned when Config.Native is refused: the server has no delayed retries.
var ErrNative = errors.New("lullamqp: Config.Native needs RabbitMQ 4.3 or later")

// A ServerInfo is how a server describes itself when a connection is made.
type ServerInfo struct {
	Product string // "RabbitMQ"
	Version string // such as "3.10.8"
	Cluster string // the cluster's name
}

func serverOf(c *amqp.Connection) ServerInfo {
	text := func(name string) string {
		s, _ := c.Properties[name].(string)
		return s
	}
	return ServerInfo{Product: text("product"), Version: text("version"), Cluster: text("cluster_name")}
}

func (s ServerInfo) String() string { return strings.TrimSpace(s.Product + " " + s.Version) }

// AtLeast reports whether it is RabbitMQ of the given version or a later one. It returns false for
// a version that cannot be read.
func (s ServerInfo) AtLeast(major, minor int) bool {
	if s.Product != "RabbitMQ" {
		return false
	}
	a, b, ok := parseVersion(s.Version)
	return ok && (a > major || a == major && b >= minor)
}

// parseVersion reads the first two numbers of "4.3.6", "4.3.0-rc.1", "4.3.6+14.g0abc".
func parseVersion(s string) (major, minor int, ok bool) {
	n, _ := fmt.Sscanf(s, "%d.%d", &major, &minor)
	return major, minor, n == 2 && major >= 0 && minor >= 0
}

func (c *Config) supported(s ServerInfo) error {
	if c.Native != (Native{}) && !s.AtLeast(4, 3) {
		return fmt.Errorf("%w: this is %v, which takes such arguments and ignores them", ErrNative, s)
	}
	return nil
}
