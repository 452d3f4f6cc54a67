package cells

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// A line is the result of one cell in a part. A part is a file of lines. Lines may be in any order, and parts may
// be put together with cat.
type line struct {
	Build  string          `json:"build"`
	Cell   string          `json:"cell"`
	Result json.RawMessage `json:"result"`
}

// results are the lines of parts, by cell.
type results map[string]json.RawMessage

func (r results) readFile(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return r.read(name, f)
}

// read adds the lines of a part. It ignores a last line that was cut short, as a runner that was killed leaves it.
func (r results) read(name string, in io.Reader) error {
	lines := bufio.NewReader(in)
	for n := 1; ; n++ {
		text, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		at := func(format string, args ...any) error {
			return fmt.Errorf("%s:%d: %s", name, n, fmt.Sprintf(format, args...))
		}
		var l line
		if err := json.Unmarshal(text, &l); err != nil || l.Cell == "" || len(l.Result) == 0 {
			return at("no line of a part: want what --cells printed")
		}
		if l.Build != Build() {
			return at("made by another build of lull, %s: this is %s", l.Build, Build())
		}
		if was, there := r[l.Cell]; there && !bytes.Equal(was, l.Result) {
			return at("another result than before for the same cell, %s", l.Cell)
		}
		r[l.Cell] = l.Result
	}
}

// filesOf returns the files that are named, * standing for anything.
func filesOf(names []string) (files []string, err error) {
	for _, name := range names {
		if !strings.ContainsAny(name, "*?[") {
			files = append(files, name)
			continue
		}
		found, err := filepath.Glob(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("%s: there is no such file", name)
		}
		files = append(files, found...)
	}
	return files, nil
}

func write(out io.Writer, key string, r Result) error {
	result, err := json.Marshal(r)
	if err != nil {
		return err
	}
	text, err := json.Marshal(line{Build(), key, result})
	if err != nil {
		return err
	}
	_, err = out.Write(append(text, '\n'))
	return err
}
