//go:build !windows

package main

import "os"

// understandsEscapes tells whether a terminal does as escape sequences say.
func understandsEscapes(*os.File) bool { return true }
