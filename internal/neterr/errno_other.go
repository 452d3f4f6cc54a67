//go:build !unix && !windows

package neterr

// Here errors carry texts and no numbers: what is left is timeouts and early
// ends.
var errnos []errnoCode

var dialErrnos []dialErrno
