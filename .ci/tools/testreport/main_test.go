package main

import (
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	const start = `{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}
`
	const other = `{"Action":"pass","Package":"q","Test":"TestB"}
`
	for name, c := range map[string]struct {
		in, out, report string
		ok              bool
	}{
		"passes": {
			start + `{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Output":"PASS\n"}
{"Action":"output","Package":"p","Output":"ok  \tp\t0.1s\n"}
{"Action":"pass","Package":"p"}`,
			"ok  \tp\t0.1s\n", "1 tests ran, 0 failed, 0 skipped\n", true,
		},
		"fails, and shows what the test said": {
			start + `{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:9: got 1, want 2\n"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"fail","Package":"p"}`,
			"=== RUN   TestA\n    a_test.go:9: got 1, want 2\n", "1 tests ran, 1 failed, 0 skipped\n", false,
		},
		"skips for want of a server": {
			start + `{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:9: install redis-server\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"--- SKIP: TestA (0.00s)\n"}
{"Action":"skip","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p"}`,
			"", "skipped p TestA: a_test.go:9: install redis-server\n0 tests ran, 0 failed, 1 skipped\n", false,
		},
		"skips under the race detector": {
			other + start + `{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:9: allocations differ under the race detector\n"}
{"Action":"skip","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p"}`,
			"", "skipped p TestA: a_test.go:9: allocations differ under the race detector\n1 tests ran, 0 failed, 1 skipped\n", true,
		},
		"skips what is not for it": {
			other + start + `{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:9: not for this broker: no order is kept\n"}
{"Action":"skip","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p"}`,
			"", "skipped p TestA: a_test.go:9: not for this broker: no order is kept\n1 tests ran, 0 failed, 1 skipped\n", true,
		},
		"does not build": {
			`{"ImportPath":"p [p.test]","Action":"build-output","Output":"./a.go:1:1: oops\n"}
{"ImportPath":"p [p.test]","Action":"build-fail"}
{"Action":"output","Package":"p","Output":"FAIL\tp [build failed]\n"}
{"Action":"fail","Package":"p","FailedBuild":"p [p.test]"}`,
			"./a.go:1:1: oops\nFAIL\tp [build failed]\n", "0 tests ran, 0 failed, 0 skipped\n", false,
		},
		"has no test files": {
			other + `{"Action":"output","Package":"p","Output":"?   \tp\t[no test files]\n"}
{"Action":"skip","Package":"p"}`,
			"?   \tp\t[no test files]\n", "1 tests ran, 0 failed, 0 skipped\n", true,
		},
		"runs nothing": {
			`{"Action":"output","Package":"p","Output":"ok  \tp\t0.1s [no tests to run]\n"}
{"Action":"pass","Package":"p"}`,
			"ok  \tp\t0.1s [no tests to run]\n", "0 tests ran, 0 failed, 0 skipped\n", false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			report, ok, err := read(strings.NewReader(c.in), &out)
			if err != nil || ok != c.ok || report != c.report || out.String() != c.out {
				t.Errorf("ok %v, error %v, report:\n%soutput:\n%s", ok, err, report, out.String())
			}
		})
	}
}
