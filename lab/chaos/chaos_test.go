package main

import (
	"strings"
	"testing"
)

func TestSettingsThatAreNone(t *testing.T) {
	err := run(t.Context(), setting{brokers: "kafka"}, nil, nil)
	if err == nil {
		t.Fatal("it runs")
	}
	for _, flag := range []string{"-broker", "-messages", "-for", "-workers"} {
		if !strings.Contains(err.Error(), flag) {
			t.Errorf("nothing about %s in %v", flag, err)
		}
	}
}
