package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// measureApart measures a subject in a process of its own, which is this command
// again, with the flag -subject. In one process for all, those that come later pay
// for what a subject leaves behind: goroutines that have ended but are looked at by
// every collection, pools, timers, a heap that has been large.
func measureApart(per time.Duration) measurer { //outside: no test comes to what it returns
	return func(g group, s subject, cores int) (sample, error) {
		program, err := os.Executable()
		if err != nil {
			return sample{}, err
		}
		var out, complaint bytes.Buffer
		cmd := exec.Command(program, "-subject", g.name+"/"+s.name, "-cores", fmt.Sprint(cores), "-time", per.String())
		cmd.Stdout, cmd.Stderr = &out, &complaint
		if err := cmd.Run(); err != nil {
			if text := strings.TrimSpace(complaint.String()); text != "" {
				return sample{}, errors.New(strings.TrimPrefix(text, "bench: "))
			}
			return sample{}, err
		}
		var got sample
		return got, json.Unmarshal(out.Bytes(), &got)
	}
}

// measureHere is the other side of measureApart: it measures the subject of that
// path, "group/subject", in this process.
func measureHere(groups []group, path string, cores int, out io.Writer) error {
	if cores < 1 {
		return fmt.Errorf("-cores is %d: want 1 or more", cores)
	}
	name, part, _ := strings.Cut(path, "/")
	for _, g := range groups {
		if i := g.index(part); i >= 0 && g.name == name {
			s, err := measure(g.subjects[i], cores)
			if err != nil {
				return err
			}
			return json.NewEncoder(out).Encode(s)
		}
	}
	return fmt.Errorf("-subject %q: there is none", path)
}
