package source

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
)

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
		to := from.Add(window)
		if to.After(r.To) {
			to = r.To
		}
		at := *base.JoinPath("api/v1/query")
		at.RawQuery = url.Values{"query": {fmt.Sprintf("%s[%dms]", names, to.Sub(from).Milliseconds())}, "time": {fmt.Sprintf("%.3f", float64(to.UnixMilli())/1000)}}.Encode()
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
