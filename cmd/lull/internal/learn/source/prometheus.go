package source

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
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
			return r.unused("sample", "the line is not a sample of Prometheus' text format")
		}
		if base, _, _ := ruleName(name); at == 0 && rules[base] != nil {
			if at = fileTime; at == 0 {
				return r.unused("untimed", "the sample has no timestamp, and is not used: want a file, whose time would be taken")
			}
			r.problem("untimed", "the sample has no timestamp, and gets the time of the file's last change, "+time.Unix(0, at).UTC().Format(time.RFC3339))
		}
		r.addSample(name, labels, sample{at: at, n: value})
		return nil
	})
}

const (
	quotedText = `"(?:[^"\\]|\\.)*"`
	labelText  = `([^\s="{},]+|` + quotedText + `)\s*(?:=\s*(` + quotedText + `))?[\s,]*`
)

var (
	labelPart  = regexp.MustCompile(labelText)
	sampleLine = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)?\s*(?:\{[\s,]*((?:` + labelText + `)*)\})?\s+(\S+)(?:\s+(-?[\d.eE+]+))?(?:\s+# .*)?\s*$`)
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
	for _, l := range labelPart.FindAllSubmatch(parts[2], -1) {
		key := unescape.Replace(string(bytes.Trim(l[1], `"`)))
		if l[2] == nil {
			name = key
		} else if labels != nil {
			labels[plainName(key)] = unescape.Replace(string(l[2][1 : len(l[2])-1]))
		}
	}
	value, err := strconv.ParseFloat(string(parts[5]), 64)
	if err == nil && parts[6] != nil {
		var t time.Time
		t, _, err = new(clock).parse(parts[6])
		ns = t.UnixNano()
	}
	return name, value, ns, err == nil && name != ""
}

const (
	window      = 15 * time.Minute // of one query
	maxResponse = 256 << 20
)

// readAPI reads the samples of all known metrics from the API of a Prometheus. It asks for what was scraped, at the times at which
// that was: query_range would give the latest value at other times, and hide restarts.
func (r *reader) readAPI(address string) error {
	base, err := url.Parse(address)
	if err != nil {
		return errors.New("the address of the Prometheus is no URL") // with a password, perhaps
	}
	address = base.Redacted()
	r.src.Kind, r.src.Name, r.name = "prometheus", address, address
	if r.From.IsZero() || r.To.IsZero() {
		return fmt.Errorf("%s: from and to are missing: want the time to read", address)
	}
	names := strings.ReplaceAll(strings.Join(slices.Sorted(maps.Keys(rules)), "|"), "_", "[._]")
	names = `{__name__=~"(` + names + `)(_seconds|_milliseconds)?(_bucket|_count|_sum|_total)?"}`
	for from := r.From; from.Before(r.To); from = from.Add(window) {
		length := min(window, r.To.Sub(from))
		at := *base.JoinPath("api/v1/query")
		at.RawQuery = url.Values{"query": {fmt.Sprintf("%s[%dms]", names, length.Milliseconds())},
			"time": {fmt.Sprintf("%.3f", float64(from.Add(length).UnixMilli())/1000)}}.Encode()
		if err := r.readQuery(at.String()); err != nil {
			return fmt.Errorf("%s: %w", address, err)
		}
	}
	return nil
}

func (r *reader) readQuery(address string) error {
	request, err := http.NewRequestWithContext(r.ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	response, err := cmp.Or(r.Client, http.DefaultClient).Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var answer struct {
		Status, Error string
		Data          struct{ Result []model.SampleStream }
	}
	err = json.NewDecoder(io.LimitReader(response.Body, maxResponse)).Decode(&answer)
	if err != nil || answer.Status != "success" {
		return fmt.Errorf("status %s: %.200s (%v): want the API of Prometheus", response.Status, answer.Error, err)
	}
	for _, stream := range answer.Data.Result {
		labels := map[string]string{}
		for name, value := range stream.Metric {
			labels[plainName(string(name))] = string(value)
		}
		name := string(stream.Metric[model.MetricNameLabel])
		delete(labels, model.MetricNameLabel)
		for _, v := range stream.Values {
			r.src.Lines++
			r.addSample(name, labels, sample{at: v.Timestamp.Time().UnixNano(), n: float64(v.Value)})
		}
		for _, v := range stream.Histograms {
			r.src.Lines++
			s := sample{at: v.Timestamp.Time().UnixNano(), n: float64(v.Histogram.Count)}
			for _, b := range v.Histogram.Buckets {
				s.bars = addBar(s.bars, float64(b.Lower), float64(b.Upper), float64(b.Count))
			}
			r.addSample(name, labels, s)
		}
	}
	return nil
}
