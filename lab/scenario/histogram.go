package scenario

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"reflect"
	"strings"

	"github.com/lullgo/lull/internal/codec"
	"github.com/lullgo/lull/internal/tree"
	"github.com/lullgo/lull/lab/sim"
)

// readHistogram reads the bars of the distribution at where from the file that n names. Each line is a
// bar, with its upper bound and its weight.
func readHistogram(r *codec.Reader, n *tree.Node, where string) []sim.Bar {
	where, at := codec.Field(where, "bars"), codec.Field(where, "file")
	if !r.Sound(n, at) {
		return nil
	}
	const allowed = "the name of a file in the folder of this one, or below it"
	if !n.Scalar() {
		r.WrongAt(n, at, n.Quoted(), allowed, "")
		return nil
	}
	// A scenario may come from a stranger: it must not read files outside its folder.
	if !fs.ValidPath(n.Text) || n.Text == "." || r.Files == nil {
		r.WrongAt(n, at, tree.Quote(n.Text), allowed, "")
		return nil
	}
	data, err := codec.Read(r.Files, n.Text)
	if err != nil {
		why := "which cannot be read"
		if errors.Is(err, fs.ErrNotExist) {
			why = "which does not exist"
		}
		r.WrongAt(n, at, tree.Quote(n.Text)+", "+why, allowed, "")
		return nil
	}
	before := len(r.Mistakes)
	b := barReader{r, where, path.Join(folder(r.File), n.Text)}
	bars := b.read(data)
	if len(bars) == 0 && len(r.Mistakes) == before {
		r.WrongAt(n, at, tree.Quote(n.Text)+", which has no lines", "a file with a line for each bar, such as 20ms,350", "")
	}
	return bars
}

// A barReader reads the bars at path from file.
type barReader struct {
	*codec.Reader
	path string
	file string
}

func (b barReader) read(data []byte) []sim.Bar {
	if len(data) > codec.MaxBytes {
		b.bad(1, 1, "a file of more than 1 MiB", "at most 1 MiB", "")
		return nil
	}
	var bars []sim.Bar
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, codec.MaxBytes+1)
	for number := 1; lines.Scan() && !b.Full(); number++ {
		line := lines.Text()
		text := strings.TrimSpace(line)
		if text == "" || text[0] == '#' || len(bars) == 0 && text == "up_to,weight" {
			continue
		}
		if len(bars) == codec.MaxElements {
			b.bad(number, 1, "one line too many", fmt.Sprintf("at most %d bars", codec.MaxElements), "")
			break
		}
		bars = append(bars, b.bar(line, number, len(bars)))
	}
	return bars
}

func (b barReader) bar(line string, number, i int) (bar sim.Bar) {
	at := codec.Element(b.path, i)
	b.Places[at] = tree.Position{File: b.file, Line: number, Column: 1}
	parts := strings.Split(line, ",")
	if len(parts) != 2 {
		b.bad(number, 1, tree.Quote(line), "an upper bound and a weight, such as 20ms,350", "")
		return bar
	}
	column := 1
	for k, target := range []reflect.Value{reflect.ValueOf(&bar.UpTo).Elem(), reflect.ValueOf(&bar.Weight).Elem()} {
		column += len([]rune(parts[k])) - len([]rune(strings.TrimLeft(parts[k], " \t")))
		b.Places[codec.Field(at, []string{"up_to", "weight"}[k])] = tree.Position{File: b.file, Line: number, Column: column}
		text := strings.TrimSpace(parts[k])
		if allowed, suggestion := codec.Scalar(text, target, codec.Plain); allowed != "" {
			b.bad(number, column, tree.Quote(text), allowed, suggestion)
		}
		column += len([]rune(strings.TrimLeft(parts[k], " \t"))) + 1
	}
	return bar
}

func (b barReader) bad(line, column int, found, allowed, suggestion string) {
	b.Broken = append(b.Broken, b.path)
	b.Note(tree.Position{File: b.file, Line: line, Column: column}, "", found, allowed, suggestion)
}
