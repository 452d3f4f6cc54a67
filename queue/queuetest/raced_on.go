//go:build race

package queuetest

const raced = true // by the race detector
