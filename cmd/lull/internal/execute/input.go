package execute

import (
	"io"
	"io/fs"
	"os"
	"os/exec"
	"sync"
)

// input gives every attempt the standard input of lull from its beginning. A file is put back to where it was. Of a pipe,
// what has been read is kept in a file. A terminal and other devices have no beginning, and are passed on.
type input struct {
	device *os.File
	file   *os.File
	start  int64 // of file
	pipe   *pipe
}

func newInput(from io.Reader) (*input, error) {
	file, ok := from.(*os.File)
	if !ok {
		if from == nil {
			return &input{}, nil
		}
		return newPipeInput(from)
	}
	info, err := file.Stat()
	if err != nil {
		return &input{device: file}, nil // it is closed: the command finds that out
	}
	switch mode := info.Mode(); {
	case mode.IsRegular():
		start, err := file.Seek(0, io.SeekCurrent)
		return &input{file: file, start: start}, err
	case mode&(fs.ModeNamedPipe|fs.ModeSocket) != 0:
		return newPipeInput(file)
	}
	return &input{device: file}, nil
}

func newPipeInput(from io.Reader) (*input, error) {
	kept, err := os.CreateTemp("", "lull-exec-")
	if err != nil {
		return nil, err
	}
	return &input{pipe: &pipe{from: from, kept: kept, changed: make(chan struct{})}}, nil
}

func (in *input) close() {
	if in.pipe != nil {
		in.pipe.kept.Close()
		os.Remove(in.pipe.kept.Name())
	}
}

// connect makes the input that of c, which is not started yet. If it cannot be read to its end, cut gets the reason, and
// the command does not see an end. The function that connect returns ends that, and returns when it has ended.
func (in *input) connect(c *exec.Cmd, cut chan<- error) (func(), error) {
	switch {
	case in.device != nil:
		c.Stdin = in.device
	case in.file != nil:
		if _, err := in.file.Seek(in.start, io.SeekStart); err != nil {
			return nil, err
		}
		c.Stdin = in.file
	case in.pipe != nil:
		to, err := c.StdinPipe()
		if err != nil {
			return nil, err
		}
		over, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			if err := in.pipe.feed(to, over); err != nil {
				cut <- err
				<-over
			}
			to.Close()
		}()
		return func() { close(over); <-done }, nil
	}
	return func() {}, nil
}

// pipe reads from a pipe as far as an attempt has asked for, and keeps what it has read.
type pipe struct {
	from io.Reader
	kept *os.File

	mu      sync.Mutex // guards the rest
	size    int64      // of kept
	err     error      // io.EOF: kept has all
	reading bool
	changed chan struct{} // closed when one of the others has changed
}

// feed writes all of it to an attempt, until that is over. It returns an error if it could not read all.
func (p *pipe) feed(to io.Writer, over <-chan struct{}) error {
	buffer := make([]byte, 32<<10)
	for at := int64(0); ; {
		more, err := p.wait(at, over)
		if !more {
			return err
		}
		n, err := p.kept.ReadAt(buffer, at)
		if n == 0 && err != nil {
			return err
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return nil // the command has closed its input, or has ended
		}
		at += int64(n)
	}
}

// wait waits until there is more than at, and reports whether there is. The error is why it cannot be read.
func (p *pipe) wait(at int64, over <-chan struct{}) (more bool, err error) {
	for {
		p.mu.Lock()
		more, err, changed := p.size > at, p.err, p.changed
		if !more && err == nil && !p.reading {
			p.reading = true
			go p.read()
		}
		p.mu.Unlock()
		switch {
		case more, err == io.EOF:
			return more, nil
		case err != nil:
			return false, err
		}
		select {
		case <-changed:
		case <-over: // the next attempt gets what is read now
			return false, nil
		}
	}
}

func (p *pipe) read() {
	buffer := make([]byte, 32<<10)
	n, err := p.from.Read(buffer)
	p.mu.Lock()
	defer p.mu.Unlock()
	if n > 0 {
		if _, failed := p.kept.WriteAt(buffer[:n], p.size); failed != nil {
			n, err = 0, failed
		}
	}
	p.size += int64(n)
	p.err, p.reading = err, false
	close(p.changed)
	p.changed = make(chan struct{})
}
