//go:build unix

package neterr

import "syscall"

// The numbers that speak of a connection. A number that is missing here is not
// retried, so those that need a person (EACCES, EAFNOSUPPORT) stay out.
var errnos = []errnoCode{
	{syscall.ECONNREFUSED, codeRefused},
	{syscall.ECONNRESET, codeReset},
	{syscall.EPIPE, codeReset},
	{syscall.ECONNABORTED, codeReset},
	{syscall.ENETRESET, codeReset},
	{syscall.ETIMEDOUT, codeTimeout},
	{syscall.EHOSTUNREACH, codeUnreachable},
	{syscall.EHOSTDOWN, codeUnreachable},
	{syscall.ENETUNREACH, codeUnreachable},
	{syscall.ENETDOWN, codeUnreachable},
	{syscall.EADDRNOTAVAIL, codeResources},
	{syscall.EMFILE, codeResources},
	{syscall.ENFILE, codeResources},
	{syscall.ENOBUFS, codeResources},
}

// EAGAIN is a timeout by its method Timeout. Of connect it is none: it fails at once, since the backlog of
// a Unix socket is full, or no port of this machine is free.
var dialErrnos = []dialErrno{
	{syscall.EAGAIN, codeResources, codeBacklog},
	{syscall.ENOENT, "", codeNoSocket},
}
