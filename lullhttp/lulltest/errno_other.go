//go:build !unix && !windows

package lulltest

import "errors"

var (
	refused = errors.New("connection refused")
	reset   = errors.New("connection reset by peer")
)
