package source

import (
	"bufio"
	"bytes"
	"math"
	"os"
	"strconv"
	"strings"
	"time"
)

// readText reads the text format of Prometheus or OpenMetrics, line by line: after a damaged one it goes on. Samples without a
// timestamp have the time of the file.
func (r *reader) readText(text *bufio.Reader) error {
	m := r.metricsOf("prometheus")
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
			r.problem(r.line, "sample", "the line is not a sample of Prometheus' text format")
			return nil
		}
		if !wants(name) {
			return nil
		}
		if at == 0 {
			if at = fileTime; at == 0 {
				r.problem(r.line, "untimed", "the sample has no timestamp, and is not used: of a file its time would be taken")
				return nil
			}
			r.note("samples have no timestamps: the time is that of the file's last change, " + time.Unix(0, at).UTC().Format(time.RFC3339))
		}
		m.add(r, name, labels, sample{at: at, value: value})
		return nil
	})
}

// parseSample reads a line such as name{label="value"} 1 1796000000000. Labels may be nil.
func parseSample(line []byte, labels map[string]string) (name string, value float64, ns int64, ok bool) {
	end := 0
	for end < len(line) && line[end] != '{' && line[end] != ' ' && line[end] != '\t' {
		if c := line[end] | 0x20; !(c >= 'a' && c <= 'z' || line[end] == '_' || line[end] == ':' || line[end] >= '0' && line[end] <= '9' && end > 0) {
			return "", 0, 0, false
		}
		end++
	}
	name, line = string(line[:end]), bytes.TrimLeft(line[end:], " \t")
	if len(line) > 0 && line[0] == '{' {
		if line, ok = parseLabels(line[1:], &name, labels); !ok {
			return "", 0, 0, false
		}
	}
	if i := bytes.Index(line, []byte(" # ")); i >= 0 { // an exemplar
		line = line[:i]
	}
	fields := bytes.Fields(line)
	if name == "" || len(fields) < 1 || len(fields) > 2 {
		return "", 0, 0, false
	}
	value, err := strconv.ParseFloat(string(fields[0]), 64)
	if err != nil {
		return "", 0, 0, false
	}
	if len(fields) == 2 {
		if ns, _, err = parseEpoch(fields[1]); err != nil {
			return "", 0, 0, false
		}
	}
	return name, value, ns, true
}

// parseLabels reads what stands after a brace, and returns what stands after the next. A name in quotes alone is that of the metric.
func parseLabels(line []byte, name *string, labels map[string]string) ([]byte, bool) {
	for {
		line = bytes.TrimLeft(line, " \t,")
		if len(line) == 0 {
			return nil, false
		}
		if line[0] == '}' {
			return line[1:], true
		}
		var key string
		if line[0] == '"' {
			var ok bool
			if key, line, ok = parseQuoted(line); !ok {
				return nil, false
			}
			if line = bytes.TrimLeft(line, " \t"); len(line) > 0 && (line[0] == ',' || line[0] == '}') {
				*name = key
				continue
			}
		}
		eq := bytes.IndexByte(line, '=')
		if eq < 0 || eq > 1000 {
			return nil, false
		}
		if key == "" {
			key = string(bytes.TrimSpace(line[:eq]))
		}
		value, rest, ok := parseQuoted(bytes.TrimLeft(line[eq+1:], " \t"))
		if !ok {
			return nil, false
		}
		if line = rest; labels != nil {
			labels[plainName(key)] = value
		}
	}
}

// parseQuoted reads a text in quotes, in which a backslash stands before quotes, backslashes and n.
func parseQuoted(line []byte) (string, []byte, bool) {
	if len(line) == 0 || line[0] != '"' {
		return "", nil, false
	}
	escaped := false
	for i := 1; i < len(line); i++ {
		switch line[i] {
		case '\\':
			escaped = true
			i++
		case '"':
			text := string(line[1:i])
			if escaped {
				text = unescape.Replace(text)
			}
			return text, line[i+1:], true
		}
	}
	return "", nil, false
}

var unescape = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n")

func parseEdge(le string) (float64, bool) {
	edge, err := strconv.ParseFloat(le, 64)
	return edge, err == nil && !math.IsNaN(edge)
}
