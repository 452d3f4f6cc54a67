// Command release releases all modules of a repository under one version. It is run from the
// root of the repository, by .ci/release.
//
// While lull is developed, its modules require version v0.0.0 of each other, and replace it with
// the folder beside them. A module like that can be fetched by nobody: v0.0.0 does not exist, and
// go install refuses a replace. So the commit that the tags name is not on the branch. It is a
// child of the commit that is released, and differs from it in go.mod and go.sum alone: the
// requirements have the version, and the replaces are gone.
//
// First the release is proved (packing it as the module proxy would, and using it from modules
// that know nothing of this repository), then the commit and its tags are made. With --dry-run
// nothing is made.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/mod/semver"

	"github.com/lullgo/lull/ci/internal/tool"
	"github.com/lullgo/lull/internal/must"
)

type settings struct {
	version  string
	dryRun   bool
	again    bool   // build a program twice
	to       string // the folder for the programs of all platforms; empty: they are not built
	programs []program
	all      []platform // those that programs are built for
	tried    platform   // the one for which a program is built twice
}

const usage = `usage: .ci/release [--dry-run] [--twice] [--programs FOLDER] VERSION

VERSION is that of all modules, such as v0.1.0. The tree must be committed, and CHANGELOG.md
must have a section for the version. With --dry-run neither is needed: what stands in the tree
is packed and proved, and no commit and no tag is made. With --twice lull is also built for one
other platform, twice, to see that it becomes the same; it takes as long as all else.

With --programs the programs of all platforms are put into a folder, as archives with checksums
and a list of what is in them.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s := settings{programs: ofLull, all: platforms, tried: platform{"windows", "amd64"}}
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.BoolVar(&s.dryRun, "dry-run", false, "prove the release, and make no commit and no tag")
	flags.BoolVar(&s.again, "twice", false, "build a program twice, and compare all bytes")
	flags.StringVar(&s.to, "programs", "", "build the programs of all platforms into this `folder`")
	flags.Usage = func() { fmt.Fprint(flags.Output(), usage); flags.PrintDefaults() }
	if err := flags.Parse(os.Args[1:]); err != nil {
		os.Exit(2)
	}
	s.version = flags.Arg(0)
	if err := flags.Parse(flags.Args()[min(1, flags.NArg()):]); err != nil { // flags may follow the version
		os.Exit(2)
	}
	if s.version == "" || flags.NArg() > 0 {
		flags.Usage()
		os.Exit(2)
	}
	must.Main("release", 1, func() error { return release(ctx, os.Stdout, ".", s) })
}

func release(ctx context.Context, out io.Writer, root string, s settings) (err error) {
	defer must.Catch(&err)
	checkVersion(s.version)
	repo := repository{must.Have(filepath.Abs(root))}
	if !s.dryRun {
		repo.checkReady(s.version)
	}
	tmp, remove := tool.TempDir("lull-release-")
	defer remove()

	tree := filepath.Join(tmp, "tree")
	repo.copyTo(tree)
	modules := readWorkspace(tree)
	changed := setVersion(tree, filepath.Join(tmp, "proxy"), modules, s.version)
	fmt.Fprintf(out, "packed %d modules as %s\n", len(modules), s.version)
	use := newStranger(ctx, tmp, out)
	use.prove(modules, s.programs, s.version)
	if s.again {
		use.proveReproducible(s.tried, tree, s.programs[:1], modules[0].path, s.version)
	}
	if s.to != "" {
		use.buildPrograms(s.to, tree, s.all, s.programs, modules[0].path, s.version)
	}
	if s.dryRun {
		fmt.Fprintln(out, "dry run: no commit and no tag is made")
		return nil
	}
	tags := repo.tag(changed, modules, s.version)
	fmt.Fprintf(out, "made the release commit and its tags; nothing is published yet. Next:\n\n  git push origin %s\n", strings.Join(tags, " "))
	return nil
}

// checkVersion refuses what cannot be the version of modules whose paths end in no /v2.
func checkVersion(version string) {
	switch {
	case !semver.IsValid(version) || semver.Canonical(version) != version:
		must.Fail("%q is no version: want vMAJOR.MINOR.PATCH, such as v0.1.0 or v0.1.0-rc.1", version)
	case semver.Major(version) != "v0" && semver.Major(version) != "v1":
		must.Fail("%s: from v2 on the paths of all modules must end in /%s; they do not", version, semver.Major(version))
	}
}
