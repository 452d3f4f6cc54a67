package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lullgo/lull/ci/internal/tool"
	"github.com/lullgo/lull/internal/must"
)

type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "_" + p.arch }

var platforms = []platform{
	{"linux", "amd64"}, {"linux", "arm64"},
	{"darwin", "amd64"}, {"darwin", "arm64"},
	{"windows", "amd64"}, {"windows", "arm64"},
}

// buildPrograms builds the programs for each of the platforms, and writes into the folder to: an archive for
// each, what is in it (CycloneDX), and the checksums of all.
func (s *stranger) buildPrograms(to, tree string, platforms []platform, programs []program, module, version string) {
	must.Succeed(os.MkdirAll(to, 0o755))
	if len(must.Have(os.ReadDir(to))) > 0 {
		must.Fail("%s is not empty: checksums are for all files of a folder", to)
	}
	extras := s.extras(tree, programs)
	var sums strings.Builder
	for _, p := range platforms {
		began := time.Now()
		files := s.packed(p, s.home, nil, extras, programs, module, version)
		for _, f := range files {
			fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(f.data), f.name)
			tool.WriteFile(filepath.Join(to, f.name), f.data)
		}
		fmt.Fprintf(s.out, "%5.1f s  built %s\n", time.Since(began).Seconds(), files[0].name)
	}
	tool.WriteFile(filepath.Join(to, "SHA256SUMS"), sums.String())
}

// proveReproducible builds the programs for a platform twice, in different folders and the second time
// without anything that was compiled before. It fails if the files differ.
func (s *stranger) proveReproducible(p platform, tree string, programs []program, module, version string) {
	began := time.Now()
	extras := s.extras(tree, programs)
	once := s.packed(p, filepath.Join(s.home, "one"), nil, extras, programs, module, version)
	other := filepath.Join(s.home, "somewhere", "else")
	env := []string{"GOCACHE=" + filepath.Join(other, "cache"), "TMPDIR=" + other}
	for i, again := range s.packed(p, other, env, extras, programs, module, version) {
		if !bytes.Equal(once[i].data, again.data) {
			must.Fail("%s differs when it is built a second time", again.name)
		}
	}
	fmt.Fprintf(s.out, "%5.1f s  built %s twice: the same bytes\n", time.Since(began).Seconds(), once[0].name)
}

// A file is one of an archive, or an archive.
type file struct {
	name string
	mode fs.FileMode
	data []byte
}

// extras returns what an archive has beside the programs: the license, and what the installed
// programs print of themselves.
func (s *stranger) extras(tree string, programs []program) []file {
	all := []file{{"LICENSE", 0o644, must.Have(os.ReadFile(filepath.Join(tree, "LICENSE")))}}
	for _, p := range programs {
		for _, e := range p.prints {
			text := s.run(s.home, nil, filepath.Join(s.bin, path.Base(p.path)), e.args...)
			all = append(all, file{e.file, 0o644, []byte(text)})
		}
	}
	return all
}

// packed builds the programs for a platform, in the folder home, and returns the archive and what is
// in it.
func (s *stranger) packed(p platform, home string, env []string, extras []file, programs []program, module, version string) []file {
	name := fmt.Sprintf("%s_%s_%s", path.Base(module), version, p)
	files := slices.Clone(extras)
	var built []string
	must.Succeed(os.MkdirAll(home, 0o755))
	for _, program := range programs {
		at := s.build(p, home, env, module+"/"+program.path+"@"+version)
		built = append(built, at)
		files = append(files, file{filepath.Base(at), 0o755, must.Have(os.ReadFile(at))})
	}
	archive, ending := tarred, ".tar.gz"
	if p.os == "windows" {
		archive, ending = zipped, ".zip"
	}
	return []file{{name + ending, 0o644, archive(name, files)}, {name + ".cdx.json", 0o644, bom(path.Base(module), version, built)}}
}

// build builds a program of a version, and returns where it is. It is what everybody gets who
// installs that version with the same Go: GOFLAGS=-trimpath CGO_ENABLED=0 go install.
func (s *stranger) build(p platform, home string, env []string, target string) string {
	gopath := filepath.Join(home, "programs")
	s.run(home, append(slices.Clone(env), "CGO_ENABLED=0", "GOOS="+p.os, "GOARCH="+p.arch, "GOPATH="+gopath,
		"GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=", "GOFIPS140=off"), "go", "install", target)
	base, _, _ := strings.Cut(path.Base(target), "@")
	if p.os == "windows" {
		base += ".exe"
	}
	at := filepath.Join(gopath, "bin", p.os+"_"+p.arch, base)
	if _, err := os.Stat(at); os.IsNotExist(err) { // it is the platform of this machine
		at = filepath.Join(gopath, "bin", base)
	}
	return at
}

// packedAt is the time of all files in archives: the earliest that zip knows. The time of the build would
// make each archive another one.
var packedAt = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

// tarred returns an archive with the files in a folder.
func tarred(folder string, files []file) []byte {
	var b bytes.Buffer
	z := must.Have(gzip.NewWriterLevel(&b, gzip.BestCompression))
	t := tar.NewWriter(z)
	for _, f := range files {
		must.Succeed(t.WriteHeader(&tar.Header{Name: folder + "/" + f.name, Mode: int64(f.mode), Size: int64(len(f.data)), ModTime: packedAt, Format: tar.FormatUSTAR}))
		must.Have(t.Write(f.data))
	}
	must.Succeed(errors.Join(t.Close(), z.Close()))
	return b.Bytes()
}

// zipped is tarred for Windows.
func zipped(folder string, files []file) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, f := range files {
		h := &zip.FileHeader{Name: folder + "/" + f.name, Method: zip.Deflate, Modified: packedAt}
		h.SetMode(f.mode)
		must.Have(must.Have(z.CreateHeader(h)).Write(f.data))
	}
	must.Succeed(z.Close())
	return b.Bytes()
}
