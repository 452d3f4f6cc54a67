package config

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"reflect"
	"strings"

	"github.com/lullgo/lull/internal/tree"
	"github.com/lullgo/lull/sim"
)

// histogram reads the bars of the distribution at where from the file that n names. Each line is a
// bar, with its upper bound and its weight.
func (r *reader) histogram(n *tree.Node, where string) []sim.Bar {
	where, at := field(where, "bars"), field(where, "file")
	if !r.sound(n, at) {
		return nil
	}
	const allowed = "the name of a file in the folder of this one, or below it"
	if !n.Scalar() {
		r.wrong(n, at, n.Quoted(), allowed, "")
		return nil
	}
	// A scenario may come from a stranger: it must not read files outside its folder.
	if !fs.ValidPath(n.Text) || n.Text == "." || r.files == nil {
		r.wrong(n, at, tree.Quote(n.Text), allowed, "")
		return nil
	}
	data, err := read(r.files, n.Text)
	if err != nil {
		why := "which cannot be read"
		if errors.Is(err, fs.ErrNotExist) {
			why = "which does not exist"
		}
		r.wrong(n, at, tree.Quote(n.Text)+", "+why, allowed, "")
		return nil
	}
	before := len(r.Mistakes)
	b := barReader{r, where, path.Join(folder(r.File), n.Text)}
	bars := b.read(data)
	if len(bars) == 0 && len(r.Mistakes) == before {
		r.wrong(n, at, tree.Quote(n.Text)+", which has no lines", "a file with a line for each bar, such as 20ms,350", "")
	}
	return bars
}

// A barReader reads the bars at path from file.
type barReader struct {
	*reader
	path string
	file string
}

func (b barReader) read(data []byte) []sim.Bar {
	if len(data) > maxBytes {
		b.bad(1, 1, "a file of more than 1 MiB", "at most 1 MiB", "")
		return nil
	}
	var bars []sim.Bar
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, maxBytes+1)
	for number := 1; lines.Scan() && !b.Full(); number++ {
		line := lines.Text()
		text := strings.TrimSpace(line)
		if text == "" || text[0] == '#' || len(bars) == 0 && text == "up_to,weight" {
			continue
		}
		if len(bars) == maxElements {
			b.bad(number, 1, "one line too many", fmt.Sprintf("at most %d bars", maxElements), "")
			break
		}
		bars = append(bars, b.bar(line, number, len(bars)))
	}
	return bars
}

// bar reads one line.
func (b barReader) bar(line string, number, i int) (bar sim.Bar) {
	at := element(b.path, i)
	b.places[at] = Position{File: b.file, Line: number, Column: 1}
	parts := strings.Split(line, ",")
	if len(parts) != 2 {
		b.bad(number, 1, tree.Quote(line), "an upper bound and a weight, such as 20ms,350", "")
		return bar
	}
	column := 1
	for k, target := range []reflect.Value{reflect.ValueOf(&bar.UpTo).Elem(), reflect.ValueOf(&bar.Weight).Elem()} {
		column += len([]rune(parts[k])) - len([]rune(strings.TrimLeft(parts[k], " \t")))
		b.places[field(at, []string{"up_to", "weight"}[k])] = Position{File: b.file, Line: number, Column: column}
		text := strings.TrimSpace(parts[k])
		if allowed, suggestion := scalar(text, target, plain); allowed != "" {
			b.bad(number, column, tree.Quote(text), allowed, suggestion)
		}
		column += len([]rune(strings.TrimLeft(parts[k], " \t"))) + 1
	}
	return bar
}

func (b barReader) bad(line, column int, found, allowed, suggestion string) {
	b.broken = append(b.broken, b.path)
	b.Note(Position{File: b.file, Line: line, Column: column}, "", found, allowed, suggestion)
}
