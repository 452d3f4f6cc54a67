//go:build !race

package queuetest

const raced = false // by the race detector
