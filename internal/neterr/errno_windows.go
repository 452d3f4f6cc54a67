package neterr

import "syscall"

// Windows has numbers of its own for sockets; the POSIX names that package
// syscall defines there are inventions that no call ever returns.
var errnos = []errnoCode{
	{syscall.Errno(10061), codeRefused},     // WSAECONNREFUSED
	{syscall.Errno(1225), codeRefused},      // ERROR_CONNECTION_REFUSED
	{syscall.WSAECONNRESET, codeReset},      // 10054
	{syscall.WSAECONNABORTED, codeReset},    // 10053
	{syscall.Errno(10052), codeReset},       // WSAENETRESET
	{syscall.Errno(10058), codeReset},       // WSAESHUTDOWN
	{syscall.Errno(64), codeReset},          // ERROR_NETNAME_DELETED
	{syscall.ERROR_BROKEN_PIPE, codeReset},  // 109
	{syscall.Errno(10060), codeTimeout},     // WSAETIMEDOUT
	{syscall.Errno(121), codeTimeout},       // ERROR_SEM_TIMEOUT
	{syscall.Errno(10065), codeUnreachable}, // WSAEHOSTUNREACH
	{syscall.Errno(10064), codeUnreachable}, // WSAEHOSTDOWN
	{syscall.Errno(10051), codeUnreachable}, // WSAENETUNREACH
	{syscall.Errno(10050), codeUnreachable}, // WSAENETDOWN
	{syscall.Errno(10049), codeResources},   // WSAEADDRNOTAVAIL
	{syscall.Errno(10024), codeResources},   // WSAEMFILE
	{syscall.Errno(10055), codeResources},   // WSAENOBUFS
}

var dialErrnos []dialErrno
