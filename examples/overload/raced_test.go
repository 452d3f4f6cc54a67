//go:build race

package main

// The race detector makes sockets and handlers so slow that the machine is overloaded
// before the server is.
const raced = true
