package main

import (
	"context"
	"io"
	"strings"
	"testing"
)

func TestSettings(t *testing.T) {
	for _, s := range []setting{{}, {rate: 1e9, before: 1, outage: 1, after: 1, patience: 1, workers: 1}, {rate: 1, before: 1, outage: 1, after: 1, patience: 1, workers: -1}} {
		if _, err := compare(context.Background(), s, io.Discard); err == nil || !strings.Contains(err.Error(), "want") {
			t.Errorf("%+v: %v", s, err)
		}
	}
}
