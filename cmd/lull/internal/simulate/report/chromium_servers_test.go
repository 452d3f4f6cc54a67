//go:build servers

package report

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/tail"
)

// A chromium is a headless Chromium at the other end of two pipes, spoken to in
// the DevTools protocol: https://chromedevtools.github.io/devtools-protocol/
// JSON messages end with a zero byte. One command at a time is under way.
type chromium struct {
	cmd    *exec.Cmd
	in     *os.File
	out    *bufio.Reader
	id     int
	dir    string
	stderr tail.Tail
	ended  chan struct{}
}

// running is the one that the tests use, one after the other, each with a window of its own. It is started when the
// first of them wants it.
var running *chromium

func TestMain(m *testing.M) {
	code := m.Run()
	if running != nil {
		running.end()
	}
	os.Exit(code)
}

// A browser is a window: nothing that others have loaded or set is there.
type browser struct {
	*chromium
	t       *testing.T
	session string
	events  []message // since the page was opened
}

type message struct {
	ID        int             `json:"id,omitempty"`
	Method    string          `json:"method,omitempty"`
	SessionID string          `json:"sessionId,omitempty"`
	Params    json.RawMessage `json:"params,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	Error     json.RawMessage `json:"error,omitempty"`
}

// browserPatience is for a machine that is busy with other things.
const browserPatience = 2 * time.Minute

// startBrowser skips the test where there is no Chromium; with CI set it fails.
func startBrowser(t *testing.T) *browser {
	t.Helper()
	if testing.Short() {
		t.Skip("not short: a browser takes seconds")
	}
	path := ""
	for _, name := range []string{"google-chrome-stable", "google-chrome", "chromium-browser", "chromium"} {
		if p, err := exec.LookPath(name); err == nil {
			path = p
		}
	}
	if path == "" || runtime.GOOS == "windows" { // where pipes cannot be handed on
		give := t.Skip
		if os.Getenv("CI") != "" && runtime.GOOS != "windows" {
			give = t.Fatal
		}
		give("no Chromium: apt-get install --no-install-recommends chromium")
	}
	if running == nil {
		var err error
		if running, err = startChromium(path); err != nil {
			t.Fatal(err)
		}
	}
	b := &browser{chromium: running, t: t}
	late := time.AfterFunc(browserPatience, b.kill)
	var window struct {
		BrowserContextID string `json:"browserContextId"`
	}
	t.Cleanup(func() {
		late.Stop()
		if t.Failed() { // who knows what it is about; the next test has another
			running.end()
			t.Logf("Chromium ended with %v and said\n%s", running.cmd.ProcessState, lastLines(running.stderr.String(), 20))
			running = nil
		}
	})
	t.Cleanup(func() {
		if !t.Failed() {
			b.session = ""
			b.call("Target.disposeBrowserContext", window, nil)
		}
	})
	b.call("Target.createBrowserContext", nil, &window)
	var target struct{ TargetID string }
	b.call("Target.createTarget", map[string]any{"url": "about:blank", "browserContextId": window.BrowserContextID}, &target)
	var attached struct{ SessionID string }
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		b.call(domain+".enable", nil, nil)
	}
	return b
}

func startChromium(path string) (*chromium, error) {
	fromUs, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, toUs, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "lullreport")
	if err != nil {
		return nil, err
	}
	c := &chromium{in: in, out: bufio.NewReader(out), dir: dir, ended: make(chan struct{})}
	c.cmd = exec.Command(path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions", "--disable-dev-shm-usage",
		"--remote-debugging-pipe", "--user-data-dir="+dir, "about:blank")
	c.cmd.ExtraFiles = []*os.File{fromUs, toUs} // 3 and 4, as the protocol has it
	c.cmd.Stderr = &c.stderr
	c.cmd.WaitDelay = 10 * time.Second
	if err := c.cmd.Start(); err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	fromUs.Close()
	toUs.Close()
	go func() {
		defer close(c.ended)
		c.cmd.Wait()
		out.Close()
	}()
	return c, nil
}

func (c *chromium) kill() { c.cmd.Process.Kill() }

func (c *chromium) end() {
	c.send("", "Browser.close", nil) // it takes its own children along
	late := time.AfterFunc(browserPatience, c.kill)
	<-c.ended
	late.Stop()
	c.in.Close()
	os.RemoveAll(c.dir)
}

func (c *chromium) send(session, method string, params any) (int, error) {
	c.id++
	command := map[string]any{"id": c.id, "method": method}
	if params != nil {
		command["params"] = params
	}
	if session != "" {
		command["sessionId"] = session
	}
	text, err := json.Marshal(command)
	if err != nil {
		return 0, err
	}
	_, err = c.in.Write(append(text, 0))
	return c.id, err
}

func (c *chromium) receive() (message, error) {
	text, err := c.out.ReadBytes(0)
	if err != nil {
		return message{}, err
	}
	var m message
	err = json.Unmarshal(text[:len(text)-1], &m)
	return m, err
}

// keep keeps an event of this window.
func (b *browser) keep(m message) {
	if m.SessionID == b.session {
		b.events = append(b.events, m)
	}
}

// call has the browser do something. Events that come meanwhile are kept.
func (b *browser) call(method string, params, result any) {
	b.t.Helper()
	id, err := b.send(b.session, method, params)
	for err == nil {
		var m message
		if m, err = b.receive(); err != nil {
			break
		}
		if m.ID != id {
			b.keep(m)
			continue
		}
		if m.Error != nil {
			err = errors.New(string(m.Error))
			break
		}
		if result != nil {
			err = json.Unmarshal(m.Result, result)
		}
		if err == nil {
			return
		}
	}
	b.t.Fatalf("%s: %v", method, err)
}

// open opens a page and waits until it has loaded and its script has run.
func (b *browser) open(url string) {
	b.t.Helper()
	b.events = nil
	var navigated struct{ ErrorText string }
	b.call("Page.navigate", map[string]any{"url": url}, &navigated)
	if navigated.ErrorText != "" {
		b.t.Fatalf("%s: %s", url, navigated.ErrorText)
	}
	for !slices.ContainsFunc(b.events, func(m message) bool { return m.Method == "Page.loadEventFired" }) {
		m, err := b.receive()
		if err != nil {
			b.t.Fatalf("waiting for %s: %v", url, err)
		}
		b.keep(m)
	}
}

// eval evaluates an expression, or a promise, and waits for the next frame.
func (b *browser) eval(expression string, result any) {
	b.t.Helper()
	b.evalNow("(async () => { const v = await ("+expression+"); await new Promise(requestAnimationFrame); return v })()", result)
}

func (b *browser) evalNow(expression string, result any) {
	b.t.Helper()
	var answer struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	b.call("Runtime.evaluate", map[string]any{
		"expression": expression, "awaitPromise": true, "returnByValue": true,
	}, &answer)
	if answer.ExceptionDetails != nil {
		b.t.Fatalf("%s: %s", expression, answer.ExceptionDetails)
	}
	if result == nil {
		return
	}
	if err := json.Unmarshal(answer.Result.Value, result); err != nil {
		b.t.Fatalf("%s: %s: %v", expression, answer.Result.Value, err)
	}
}

// size sets the window, in CSS pixels. Scrollbars take none, so that a picture of
// the whole page is laid out as in the window.
func (b *browser) size(width, height int, mobile bool) {
	b.t.Helper()
	b.call("Emulation.setScrollbarsHidden", map[string]any{"hidden": true}, nil)
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile}, nil)
}

// scheme asks for light or dark.
func (b *browser) scheme(value string) {
	b.t.Helper()
	b.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": value}}}, nil)
}

// screenshot is a PNG of what is in the window, or of the whole page.
func (b *browser) screenshot(whole bool) []byte {
	b.t.Helper()
	var shot struct{ Data []byte }
	b.call("Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": whole, "optimizeForSpeed": true}, &shot)
	return shot.Data
}

// pdf prints.
func (b *browser) pdf() []byte {
	b.t.Helper()
	var printed struct{ Data []byte }
	b.call("Page.printToPDF", map[string]any{"printBackground": false, "paperWidth": 8.27, "paperHeight": 11.69, "preferCSSPageSize": true}, &printed)
	return printed.Data
}

// complaints are the console's messages, exceptions, and what the browser itself
// logged: violations of the policy, failed requests.
func (b *browser) complaints() []string {
	var said []string
	for _, m := range b.events {
		switch m.Method {
		case "Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded", "Page.javascriptDialogOpening":
			said = append(said, fmt.Sprintf("%s %s", m.Method, m.Params))
		}
	}
	return said
}

// requests are the addresses that were asked for.
func (b *browser) requests() []string {
	var urls []string
	for _, m := range b.events {
		if m.Method != "Network.requestWillBeSent" {
			continue
		}
		var sent struct{ Request struct{ URL string } }
		if err := json.Unmarshal(m.Params, &sent); err != nil {
			b.t.Fatal(err)
		}
		urls = append(urls, sent.Request.URL)
	}
	return urls
}

// lastLines leaves out what Chromium logs about a desktop that it does not find.
func lastLines(s string, n int) string {
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(s), "\n"), func(line string) bool { return strings.Contains(line, "dbus") })
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
