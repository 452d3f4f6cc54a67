package main

import (
	"strings"
	"testing"

	"github.com/lullgo/lull/cmd/lull/internal/cli"
)

// BenchmarkProfile measures where the program spends its time, for the compiler, which reads
// default.pgo in this folder (go help build, -pgo). To update that file after a change to the
// engine or the simulator:
//
//	go test ./cmd/lull -run '^$' -bench Profile -benchtime 3x -cpuprofile cmd/lull/default.pgo
func BenchmarkProfile(b *testing.B) {
	for range b.N {
		for _, args := range []string{
			"metastable-stall --seeds 10",
			"fleet-of-many --policy lull,full-jitter,aws-legacy-standard",
			"synchronised-start --policy lull,full-jitter --clients 500k",
			"reconnect-herd --policy full-jitter,lull",
			"video-25m --policy lull --clients 2500k",
		} {
			args := append([]string{"simulate", "--quiet", "--workers", "1"}, strings.Fields(args)...)
			if code, _, stderr := lullProgram(b.Context(), args...); code != cli.OK {
				b.Fatalf("%v: exit code %d, stderr\n%s", args, code, stderr)
			}
		}
	}
}
