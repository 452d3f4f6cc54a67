package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

type versionFlags struct{}

// Run prints what the Go tool knows of this build.
func (versionFlags) Run(env surroundings) error {
	version, revision := "(devel)", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		if info.Main.Version != "" {
			version = info.Main.Version
		}
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = " " + s.Value
			}
		}
	}
	_, err := fmt.Fprintf(env.stdout, "lull %s%s %s %s/%s\n", version, revision, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
