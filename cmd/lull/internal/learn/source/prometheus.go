package source

import (
	"bufio"
	"bytes"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// readText reads the text format of Prometheus or OpenMetrics, line by line: after a damaged one it goes on. Samples without a
// timestamp have the time of the file.
func (r *reader) readText(text *bufio.Reader) error {
	var fileTime int64
	if info, err := os.Stat(r.name); err == nil {
		fileTime = info.ModTime().UnixNano()
	}
	labels := map[string]string{}
	return r.eachLine(text, func(line []byte) bool { return string(bytes.TrimSpace(line)) == "# EOF" }, func(line []byte) error {
		if line[0] == '#' || len(bytes.TrimSpace(line)) == 0 {
			return nil
		}
		clear(labels)
		name, value, at, ok := parseSample(line, labels)
		if !ok {
			r.problem("sample", "the line is not a sample of Prometheus' text format")
			return nil
		}
		if base, _, _ := ruleName(name); at == 0 && rules[base] != nil {
			if at = fileTime; at == 0 {
				r.problem("untimed", "the sample has no timestamp, and is not used: want a file, whose time would be taken")
				return nil
			}
			r.problem("untimed", "the sample has no timestamp, and gets the time of the file's last change, "+time.Unix(0, at).UTC().Format(time.RFC3339))
		}
		r.addSample(name, labels, sample{at: at, n: value})
		return nil
	})
}

var (
	sampleLine = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)?\s*(?:\{((?:[^"}]|"(?:[^"\\]|\\.)*")*)\})?\s+(\S+)(?:\s+(-?[\d.eE+]+))?(?:\s+# .*)?\s*$`)
	labelPart  = regexp.MustCompile(`^[\s,]*(?:([^\s="]+)|"((?:[^"\\]|\\.)*)")\s*(?:=\s*"((?:[^"\\]|\\.)*)")?`)
	unescape   = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n")
)

// parseSample reads a line such as name{label="value"} 1 1796000000000, with the time in milliseconds or, in OpenMetrics, seconds. A
// name may stand in quotes between the labels. Labels may be nil.
func parseSample(line []byte, labels map[string]string) (name string, value float64, ns int64, ok bool) {
	parts := sampleLine.FindSubmatch(line)
	if parts == nil {
		return "", 0, 0, false
	}
	name = string(parts[1])
	for rest := bytes.TrimSpace(parts[2]); len(rest) > 0 && string(rest) != ","; {
		l := labelPart.FindSubmatch(rest)
		if l == nil || len(l[0]) == 0 {
			return "", 0, 0, false
		}
		rest = rest[len(l[0]):]
		if key := unescape.Replace(string(l[1]) + string(l[2])); l[3] == nil {
			name = key
		} else if labels != nil {
			labels[plainName(key)] = unescape.Replace(string(l[3]))
		}
	}
	value, err := strconv.ParseFloat(string(parts[3]), 64)
	if err != nil || name == "" {
		return "", 0, 0, false
	}
	if parts[4] != nil {
		t, _, err := new(clock).parse(parts[4])
		return name, value, t.UnixNano(), err == nil
	}
	return name, value, 0, true
}
