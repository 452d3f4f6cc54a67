//go:build !lab

package seed

const factor = 1
