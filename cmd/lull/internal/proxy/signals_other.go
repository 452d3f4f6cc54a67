//go:build !unix

package proxy

import "os"

func onHangup() <-chan os.Signal { return nil }
func closeOnExec(int)            {}
