//go:build servers

package report

import (
	"bytes"
	"fmt"
	"image"
	"image/draw"
	"image/png"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

// save writes the page to a file, and returns its address.
func save(t *testing.T, p Page) (url string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report.html")
	must.Succeed(os.WriteFile(path, written(t, p), 0o644))
	return "file://" + filepath.ToSlash(path)
}

// quiet fails if the browser complained about anything, or requested anything except the
// page.
func quiet(t *testing.T, b *browser, url string) {
	t.Helper()
	for _, c := range b.complaints() {
		t.Errorf("the browser complains: %s", c)
	}
	for _, r := range b.requests() {
		if r != url && r != "data:," { // the icon of the page, so that browsers request none
			t.Errorf("the page asked for %s", r)
		}
	}
}

func TestEachLineIsDrawnAndCanBeHidden(t *testing.T) {
	b := startBrowser(t)
	p := fabricate(clients, 2)
	all, _, _ := charts(p, contenders(p))
	if len(all) < 10 {
		t.Fatalf("only %d charts", len(all))
	}
	url := save(t, p)
	b.size(1100, 900, false)
	b.scheme("light")
	b.open(url)
	for k, client := range clients {
		b.eval(fmt.Sprintf(`document.querySelectorAll('.legend input').forEach((box, i) => { if (box.checked !== (i === %d)) box.click() })`, k), nil)
		var found struct {
			Color  string
			Shown  []string
			Charts []struct {
				ID         string
				Drawn      int
				X, Y, W, H float64
			}
		}
		b.eval(`({color: getComputedStyle(document.querySelector('.plot .c`+fmt.Sprint(k)+`.line')).stroke,
			shown: [...document.querySelectorAll('.charts [class*="line k"], .charts .key li')].filter(e => e.checkVisibility()).map(e => (e.closest('li') ?? e).classList.value),
			charts: lull.charts.map(c => { const r = c.plot.getBoundingClientRect();
				return {id: c.figure.id, drawn: +c.figure.dataset.drawn, x: r.x + scrollX, y: r.y + scrollY, w: r.width, h: r.height} })})`, &found)
		for _, class := range found.Shown {
			if !slices.Contains(strings.Fields(class), fmt.Sprintf("c%d", k)) {
				t.Fatalf("%s alone: %q is shown", client.Name, class)
			}
		}
		if len(found.Charts) != len(all) {
			t.Fatalf("%d charts, want %d", len(found.Charts), len(all))
		}
		picture := decodePNG(t, b.screenshot(true))
		for i, c := range found.Charts {
			want := all[i].Lines[k].Points
			if c.ID != "chart-"+all[i].ID || c.Drawn != min(1, want) {
				t.Errorf("%s alone: chart %d is %+v, want %s", client.Name, i, c, all[i].ID)
			}
			// A line is at least as long as half of the distance of its points, or a tenth
			// of the plot if it is straight.
			area := image.Rect(int(c.X), int(c.Y)-2, int(c.X+c.W), int(c.Y+c.H)+2)
			least := min(area.Dx()/10, want*area.Dx()/all[i].Steps/2)
			if n := pixels(picture, area, found.Color); n < least {
				t.Errorf("%s alone: %s has %d pixels of its colour, want %d", client.Name, c.ID, n, least)
			}
		}
	}
	quiet(t, b, url)
}

func TestAxesFitWhatIsShown(t *testing.T) {
	b := startBrowser(t)
	p := full()
	url := save(t, p)
	b.size(1280, 900, false)
	b.open(url)
	ticks := func() (texts [][]string) {
		b.eval(`lull.charts.map(c => [...c.up.querySelectorAll('text')].map(t => t.textContent))`, &texts)
		return texts
	}
	cs := contenders(p)
	same := func(when string) {
		t.Helper()
		all, _, _ := charts(p, cs)
		for i, got := range ticks() {
			var want []string
			for _, tick := range all[i].fit(quantity{axis: all[i].Axis}).Ticks {
				want = append(want, tick.Text)
			}
			check.Slices(t, got, want, "%s: %s: ticks of the page", when, all[i].ID)
		}
	}
	same("all shown")
	b.eval(`document.getElementById('show-2').click()`, nil) // the one with by far the highest values
	cs[2].Shown = false
	same("without naive")
	b.eval(`[...document.querySelectorAll('.legend button')].at(-1).click()`, nil)
	for i := range cs {
		cs[i].Shown = false
	}
	same("none shown")
	quiet(t, b, url)
}

func TestFiguresUnderThePointer(t *testing.T) {
	b := startBrowser(t)
	p := fabricate(clients[:3], 1)
	p.Summaries[0].Results[0].Series.First[100] = 4321
	p.Summaries[0].Results[0].Series.Retries[100] = 0
	url := save(t, p)
	b.size(1280, 900, false)
	b.open(url)
	var at struct{ X, Y float64 }
	b.eval(`(() => { const c = lull.charts[0].plot; c.scrollIntoView({block: 'center'}); const r = c.getBoundingClientRect();
		return {x: r.x + r.width * 100.5 / 240, y: r.y + r.height / 2} })()`, &at)
	b.call("Input.dispatchMouseEvent", map[string]any{"type": "mouseMoved", "x": at.X, "y": at.Y}, nil)
	var said []string
	key := `[lull.charts[0].when.textContent, ...[...lull.charts[0].figure.querySelectorAll('.key .value')].map(v => v.textContent), lull.charts[0].cursor.getAttribute('display')]`
	b.eval(key, &said)
	if said[0] != "from 50\u00a0s to 50.5\u00a0s" || said[1] != "4,321" || said[4] != "inline" {
		t.Errorf("under the pointer: %q", said)
	}
	for i, s := range p.Summaries {
		x := s.Results[0].Series
		check.Equal(t, said[i+1], number(fourDigits(x.First[100]+x.Retries[100])), "%s", s.Contender.Name)
	}
	b.eval(`lull.charts[0].plot.focus()`, nil)
	b.call("Input.dispatchKeyEvent", map[string]any{"type": "keyDown", "key": "ArrowRight"}, nil)
	b.eval(key, &said)
	check.Equal(t, said[0], "from 50.5\u00a0s to 51\u00a0s", "said after →, of %q", said)
	b.call("Input.dispatchKeyEvent", map[string]any{"type": "keyDown", "key": "Escape"}, nil)
	if b.eval(key, &said); said[0] != "highest" || said[4] != "none" {
		t.Errorf("after Escape: %q", said)
	}
	quiet(t, b, url)
}

func TestDark(t *testing.T) {
	b := startBrowser(t)
	url := save(t, full())
	b.size(1280, 900, false)
	ground := func(scheme string) (luminance float64, line string) {
		b.scheme(scheme)
		b.eval("0", nil)
		picture := b.screenshot(true)
		r, g, bl, _ := decodePNG(t, picture).At(3, 3).RGBA()
		b.eval(`getComputedStyle(document.querySelector('.chart .line')).stroke`, &line)
		return float64(r+g+bl) / 3 / 0xffff, line
	}
	b.open(url)
	light, lightLine := ground("light")
	dark, darkLine := ground("dark")
	if light < 0.95 || dark > 0.15 || lightLine == darkLine {
		t.Errorf("light: ground %.2f, line %s; dark: ground %.2f, line %s", light, lightLine, dark, darkLine)
	}
	quiet(t, b, url)
}

func TestPhone(t *testing.T) {
	b := startBrowser(t)
	long := fabricate(dozen(), 1)
	long.Maps = fabricatedMaps()
	long.Scenario.Title = strings.Repeat("unbroken", 12)
	long.Scenario.Source = "https://example.org/" + strings.Repeat("a", 150)
	long.Summaries[1].Contender.Name = strings.Repeat("contender", 9)
	long.Command += strings.Repeat(" --set x=y", 30) + strings.Repeat("z", 100)
	long.Notes = []string{strings.Repeat("n", 200)}
	long.Interrupted = true
	for name, p := range map[string]Page{"phone": full(), "phone-long": long} {
		url := save(t, p)
		b.size(360, 740, true)
		b.open(url)
		var widths []float64
		b.eval(`[innerWidth, document.documentElement.scrollWidth, document.body.scrollWidth, visualViewport.width]`, &widths)
		for _, w := range widths {
			if w > 360 {
				t.Errorf("%s: the page is wider than a phone: %v", name, widths)
				break
			}
		}
		var narrowest float64
		b.eval(`Math.min(...lull.charts.map(c => c.plot.getBoundingClientRect().width))`, &narrowest)
		if narrowest < 250 {
			t.Errorf("%s: a chart is only %g pixels wide", name, narrowest)
		}
		quiet(t, b, url)
	}
}

func TestPrint(t *testing.T) {
	b := startBrowser(t)
	url := save(t, full())
	b.scheme("dark") // paper is white in any scheme
	b.open(url)
	pdf := b.pdf()
	pages := len(regexp.MustCompile(`/Type\s*/Page\b`).FindAll(pdf, -1))
	if !bytes.HasPrefix(pdf, []byte("%PDF-")) || pages < 2 || pages > 12 {
		t.Errorf("printed %d bytes on %d pages", len(pdf), pages)
	}
	b.call("Emulation.setEmulatedMedia", map[string]any{"media": "print", "features": []map[string]string{{"name": "prefers-color-scheme", "value": "dark"}}}, nil)
	var printed struct {
		Ground, Legend string
		Charts, Hidden int
	}
	b.eval(`({ground: getComputedStyle(document.documentElement).backgroundColor,
		legend: getComputedStyle(document.querySelector('.legend')).display,
		charts: document.querySelectorAll('.chart').length,
		hidden: [...document.querySelectorAll('.chart .plot')].filter(p => !p.checkVisibility() || p.getBoundingClientRect().height < 100).length})`, &printed)
	if printed.Ground != "rgb(255, 255, 255)" || printed.Legend != "none" || printed.Charts < 10 || printed.Hidden != 0 {
		t.Errorf("on paper: %+v", printed)
	}
	quiet(t, b, url)
}

func TestWithoutScript(t *testing.T) {
	b := startBrowser(t)
	p := fabricate(dozen(), 1) // the last six are hidden at first
	url := save(t, p)
	b.size(1280, 900, false)
	b.scheme("light")
	b.call("Emulation.setScriptExecutionDisabled", map[string]any{"value": true}, nil)
	b.open(url)
	var before, after []string
	state := `[document.documentElement.dataset.ready ?? 'no script', ...[0, 7].map(i => getComputedStyle(document.querySelector('.chart .line.c' + i)).display)]`
	b.evalNow(state, &before) // there are no frames to wait for without scripts
	b.evalNow(`[0, 7].forEach(i => document.getElementById('show-' + i).click())`, nil)
	b.evalNow(state, &after)
	if !slices.Equal(before, []string{"no script", "inline", "none"}) || !slices.Equal(after, []string{"no script", "none", "inline"}) {
		t.Errorf("without a script: %q, and after two clicks %q", before, after)
	}
	quiet(t, b, url)
}

func TestNothingIsExecuted(t *testing.T) {
	b := startBrowser(t)
	p := full()
	deface(&p)
	url := save(t, p)
	b.size(1280, 900, false)
	b.open(url)
	var found struct {
		Owned, Ready           bool
		Scripts, Images, Forms int
		H1, Pre                string
	}
	b.eval(`({owned: 'owned' in window, ready: 'ready' in document.documentElement.dataset, scripts: document.scripts.length, images: document.images.length,
		forms: document.querySelectorAll('iframe, object, embed, form, a, base, [onerror], [onload], [style]').length,
		h1: document.querySelector('h1').textContent, pre: document.querySelector('pre:last-of-type').textContent})`, &found)
	if found.Owned || !found.Ready || found.Scripts != 1 || found.Images != 0 || found.Forms != 0 {
		t.Errorf("the page has %+v", found)
	}
	if found.H1 != hostile || !strings.Contains(found.Pre, hostile) {
		t.Errorf("the text is not as it was: %q, %q", found.H1, found.Pre)
	}
	quiet(t, b, url)
}

func TestOneRequest(t *testing.T) {
	b := startBrowser(t)
	text := written(t, full())
	asked := make(chan string, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Write(text)
	}))
	defer server.Close()
	b.open(server.URL + "/")
	b.eval(`new Promise(r => requestAnimationFrame(r))`, nil)
	quiet(t, b, server.URL+"/")
	check.Equal(t, len(asked), 1, "requests")
}

func TestTextsAreTheSameOnBothSides(t *testing.T) {
	b := startBrowser(t)
	b.open(save(t, fabricate(clients[:1], 1)))
	values := []float64{0, 1e-6, 0.0004, 0.0009994, 0.0009996, 0.004, 0.05, 0.25, 0.9876, 0.99985, 0.99986, 0.9994, 0.9996, 1, 1.005, 3.14159, 9.99, 9.996, 12.34, 99.94, 99.96,
		100, 123.4, 998.7, 999.6, 1234.4, 5999, 7199, 7201, 9999.4, 9999.6, 12345, 86400, 999949, 999951, 1234567, 0.125, 12.25, 12.5, 112.5, 1.25e6, 12_250, 0.1125, 0.00125, 1012.5, 25e6, 1e9, 3.3e9}
	for name, text := range map[string]func(float64) string{"number": number, "seconds": seconds, "percent": percent} {
		var got []string
		b.eval(fmt.Sprintf(`%s.map(lull.%s)`, strings.ReplaceAll(fmt.Sprint(values), " ", ","), name), &got)
		for i, v := range values {
			check.Equal(t, got[i], text(v), "%s of %g", name, v)
		}
	}
}

// TestLongSeries is about pages that draw only some of their points.
func TestLongSeries(t *testing.T) {
	b := startBrowser(t)
	p := fabricate(dozen(), 3)
	for i := range p.Summaries {
		for k := range p.Summaries[i].Results {
			stretch(&p.Summaries[i].Results[k].Series, 12)
		}
	}
	p.Scenario.Step /= 12
	text := written(t, p)
	if len(text) > 3<<19 {
		t.Errorf("the page has %d bytes", len(text))
	}
	url := save(t, p)
	b.size(1280, 900, false)
	b.open(url)
	quiet(t, b, url)
}

func decodePNG(t *testing.T, data []byte) image.Image {
	t.Helper()
	picture := must.Have(png.Decode(bytes.NewReader(data)))
	return picture
}

// pixels returns about how many pixels of an area have a colour.
func pixels(picture image.Image, area image.Rectangle, color string) int {
	var r, g, b float64
	if _, err := fmt.Sscanf(color, "rgb(%g, %g, %g)", &r, &g, &b); err != nil {
		return 0
	}
	part := image.NewRGBA(area.Intersect(picture.Bounds()))
	draw.Draw(part, part.Rect, picture, part.Rect.Min, draw.Src)
	n := 0
	for p := part.Pix; len(p) > 0; p = p[4:] {
		if math.Abs(float64(p[0])-r)+math.Abs(float64(p[1])-g)+math.Abs(float64(p[2])-b) < 60 {
			n++
		}
	}
	return n
}
