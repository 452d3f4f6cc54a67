// Package clients has the policies of other clients that a policy file may name as a preset. Package lab/rivals registers
// them, and package config reads them. So a program that imports only config carries none.
package clients

import "github.com/lullgo/lull"

// A Client is a client that exists, as a policy.
type Client struct {
	Name   string
	Policy lull.Policy
	// Partial: the client has a budget or a jitter that a Policy cannot express, or consumes a queue. No file may name it.
	Partial bool
}

var all []Client

// Register adds clients. Only init functions call it.
func Register(more []Client) { all = append(all, more...) }

// All returns the registered clients.
func All() []Client { return all }
