// Package child starts programs that end with this process, however it ends: their standard input ends then.
package child

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/lullgo/lull/internal/sleep"
)

// A Child is a program that was started.
type Child struct {
	*exec.Cmd
	In    io.WriteCloser // its standard input
	Ended <-chan struct{}
}

// Start starts a program.
func Start(cmd *exec.Cmd) (*Child, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		cmd.Wait()
	}()
	return &Child{cmd, in, ended}, nil
}

// HasEnded reports whether the program has ended.
func (c *Child) HasEnded() bool { return sleep.IsOver(c.Ended) }

// Await calls ready at the given interval, until it returns nil. It returns an error if the program has ended, or the time is over.
func (c *Child) Await(ready func() error, every, within time.Duration) (err error) {
	for deadline := time.Now().Add(within); time.Now().Before(deadline); time.Sleep(every) {
		if c.HasEnded() {
			return errors.New("it has ended")
		}
		if err = ready(); err == nil {
			return nil
		}
	}
	return fmt.Errorf("it does not answer: %w", err)
}

// CloseInput closes the program's standard input, and waits for its end.
func (c *Child) CloseInput() {
	c.In.Close()
	<-c.Ended
}

// Kill kills the program, and waits for its end.
func (c *Child) Kill() {
	c.Process.Kill()
	<-c.Ended
}

// KillSelf ends this process as kill -9 does.
func KillSelf() {
	if p, err := os.FindProcess(os.Getpid()); err == nil {
		p.Kill()
	}
	select {} // until the signal is there
}
