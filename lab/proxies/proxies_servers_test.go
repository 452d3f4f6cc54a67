//go:build servers

package main

import (
	"os"
	"testing"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

// The program is the test itself, since a proxy starts it again.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "bare" {
		must.Main("bare", 1, func() error { return bare(os.Args[2:]) })
		return
	}
	os.Exit(m.Run())
}

// In an outage the proxy without retries makes one request for a GET, and lull no more than its budget allows. lull makes no POST
// twice, and comes back after the time that a server names.
func TestOutage(t *testing.T) {
	for _, bad := range []answer{unavailable, cut} {
		gets, _ := volume(peerNamed("bare"), bad, 100, 100)
		check.Equal(t, gets, 1, "requests of the bare proxy for a GET")
		gets, twice := volume(peerNamed("lull"), bad, 500, 250)
		check.Equal(t, gets < 1.5, true, "%v requests of lull for a GET", gets)
		check.Equal(t, twice, 0, "POSTs that lull has made twice")
	}
	early, _, succeeded := hints(peerNamed("lull"))
	check.Equal(t, early, 0, "retries of lull before the time that the server names")
	check.Equal(t, succeeded, hinted, "calls that succeed")
}
