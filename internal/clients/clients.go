// Package clients has the names that policy files may have as a preset beside those of package
// preset: what other clients do. The library has none. Package lab/rivals fills it, and package
// config reads it, so that a program which imports config carries no other client's policy.
package clients

import "github.com/lullgo/lull"

// A Client is a client that exists, as a policy.
type Client struct {
	Name   string
	Policy lull.Policy
	// Partial: it has a budget or a jitter that no policy can have, or consumes a queue. Without its
	// budget it would be another client, and most of them one without any. So no file may name it.
	Partial bool
}

var all []Client

// Register adds clients. It is called by an init function only.
func Register(more []Client) { all = append(all, more...) }

// All are those that were registered.
func All() []Client { return all }
