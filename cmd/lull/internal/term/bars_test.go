package term

import "testing"

func TestBarsFollowTheLocale(t *testing.T) {
	for _, c := range []struct {
		env   map[string]string
		ascii bool
	}{
		{nil, false},
		{map[string]string{"LANG": "de_DE.UTF-8"}, false},
		{map[string]string{"LANG": "C.utf8"}, false},
		{map[string]string{"LANG": "C"}, true},
		{map[string]string{"LANG": "en_US.UTF-8", "LC_ALL": "POSIX"}, true},
		{map[string]string{"LANG": "C", "LC_CTYPE": "en_US.UTF-8"}, false},
	} {
		got := BarsFor(func(name string) string { return c.env[name] })
		if (string(got) == string(ASCII)) != c.ascii {
			t.Errorf("%v: %q", c.env, string(got))
		}
	}
}

func TestLine(t *testing.T) {
	if got := Blocks.Line([]float64{0, 0.01, 50, 100, 200}, 100); got != "▁▂▅██" {
		t.Errorf("got %s", got)
	}
	if got := Blocks.Line([]float64{0, 0}, 0); got != "▁▁" {
		t.Errorf("of nothing: %s", got)
	}
}
