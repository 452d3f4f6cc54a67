//go:build race

package main

// With the race detector on a simulation takes ten times as long.
func init() { raced = true }
