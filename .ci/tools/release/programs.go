package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A platform is one that programs are built for.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "_" + p.arch }

// platforms are those that lull is released for.
var platforms = []platform{
	{"linux", "amd64"}, {"linux", "arm64"},
	{"darwin", "amd64"}, {"darwin", "arm64"},
	{"windows", "amd64"}, {"windows", "arm64"},
}

// buildPrograms builds the programs for each of the platforms, and writes into the folder to: an archive for
// each, what is in it (CycloneDX), and the checksums of all.
func (s *stranger) buildPrograms(to, tree string, platforms []platform, programs []program, module, version string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	if old, err := os.ReadDir(to); err != nil || len(old) > 0 {
		return errors.Join(err, fmt.Errorf("%s is not empty: checksums are for all files of a folder", to))
	}
	extras, err := s.extras(tree, programs)
	if err != nil {
		return err
	}
	var sums strings.Builder
	for _, p := range platforms {
		began := time.Now()
		files, err := s.packed(p, s.home, nil, extras, programs, module, version)
		if err != nil {
			return err
		}
		for _, f := range files {
			fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(f.data), f.name)
			if err := os.WriteFile(filepath.Join(to, f.name), f.data, 0o644); err != nil {
				return err
			}
		}
		fmt.Fprintf(s.out, "%5.1f s  built %s\n", time.Since(began).Seconds(), files[0].name)
	}
	return os.WriteFile(filepath.Join(to, "SHA256SUMS"), []byte(sums.String()), 0o644)
}

// proveReproducible builds the programs for a platform twice, in different folders and the second time
// without anything that was compiled before, and returns an error if the files differ.
func (s *stranger) proveReproducible(p platform, tree string, programs []program, module, version string) error {
	began := time.Now()
	extras, err := s.extras(tree, programs)
	if err != nil {
		return err
	}
	once, err := s.packed(p, filepath.Join(s.home, "one"), nil, extras, programs, module, version)
	if err != nil {
		return err
	}
	other := filepath.Join(s.home, "somewhere", "else")
	cache := "GOCACHE=" + filepath.Join(other, "cache")
	again, err := s.packed(p, other, []string{cache, "TMPDIR=" + other}, extras, programs, module, version)
	if err != nil {
		return err
	}
	for i := range once {
		if !bytes.Equal(once[i].data, again[i].data) {
			return fmt.Errorf("%s differs when it is built a second time", once[i].name)
		}
	}
	fmt.Fprintf(s.out, "%5.1f s  built %s twice: the same bytes\n", time.Since(began).Seconds(), once[0].name)
	return nil
}

// A file is one of an archive, or an archive.
type file struct {
	name string
	mode fs.FileMode
	data []byte
}

// extras returns what an archive has beside the programs: the license, and what the installed
// programs print of themselves.
func (s *stranger) extras(tree string, programs []program) ([]file, error) {
	license, err := os.ReadFile(filepath.Join(tree, "LICENSE"))
	if err != nil {
		return nil, err
	}
	all := []file{{"LICENSE", 0o644, license}}
	for _, p := range programs {
		for _, e := range p.prints {
			text, err := s.run(s.home, nil, filepath.Join(s.bin, path.Base(p.path)), e.args...)
			if err != nil {
				return nil, err
			}
			all = append(all, file{e.file, 0o644, []byte(text)})
		}
	}
	return all, nil
}

// packed builds the programs for a platform, in the folder home, and returns the archive and what is
// in it.
func (s *stranger) packed(p platform, home string, env []string, extras []file, programs []program, module, version string) ([]file, error) {
	name := fmt.Sprintf("%s_%s_%s", path.Base(module), version, p)
	files := slices.Clone(extras)
	var built []string
	if err := os.MkdirAll(home, 0o755); err != nil {
		return nil, err
	}
	for _, program := range programs {
		at, err := s.build(p, home, env, module+"/"+program.path+"@"+version)
		if err != nil {
			return nil, err
		}
		data, err := os.ReadFile(at)
		if err != nil {
			return nil, err
		}
		built = append(built, at)
		files = append(files, file{filepath.Base(at), 0o755, data})
	}
	parts, err := bom(path.Base(module), version, built)
	if err != nil {
		return nil, err
	}
	archive, ending := tarred, ".tar.gz"
	if p.os == "windows" {
		archive, ending = zipped, ".zip"
	}
	data, err := archive(name, files)
	return []file{{name + ending, 0o644, data}, {name + ".cdx.json", 0o644, parts}}, err
}

// build builds a program of a version, and returns where it is. It is what everybody gets who
// installs that version with the same Go: GOFLAGS=-trimpath CGO_ENABLED=0 go install.
func (s *stranger) build(p platform, home string, env []string, target string) (string, error) {
	gopath := filepath.Join(home, "programs")
	env = append(slices.Clone(env), "CGO_ENABLED=0", "GOOS="+p.os, "GOARCH="+p.arch, "GOPATH="+gopath,
		"GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=", "GOFIPS140=off")
	if _, err := s.run(home, env, "go", "install", target); err != nil {
		return "", err
	}
	base, _, _ := strings.Cut(path.Base(target), "@")
	if p.os == "windows" {
		base += ".exe"
	}
	at := filepath.Join(gopath, "bin", p.os+"_"+p.arch, base)
	if _, err := os.Stat(at); errors.Is(err, fs.ErrNotExist) { // it is the platform of this machine
		at = filepath.Join(gopath, "bin", base)
	}
	return at, nil
}

// packedAt is the time of all files in archives: the earliest that zip knows. The time of the build would
// make each archive another one.
var packedAt = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

// tarred returns an archive with the files in a folder.
func tarred(folder string, files []file) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	t := tar.NewWriter(z)
	for _, f := range files {
		h := &tar.Header{Name: folder + "/" + f.name, Mode: int64(f.mode), Size: int64(len(f.data)), ModTime: packedAt, Format: tar.FormatUSTAR}
		if err := t.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := t.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(t.Close(), z.Close()); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// zipped is tarred for Windows.
func zipped(folder string, files []file) ([]byte, error) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, f := range files {
		h := &zip.FileHeader{Name: folder + "/" + f.name, Method: zip.Deflate, Modified: packedAt}
		h.SetMode(f.mode)
		w, err := z.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := io.Copy(w, bytes.NewReader(f.data)); err != nil {
			return nil, err
		}
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
