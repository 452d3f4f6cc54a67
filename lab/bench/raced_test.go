//go:build race

package main

// The race detector changes what is allocated.
func init() { raced = true }
