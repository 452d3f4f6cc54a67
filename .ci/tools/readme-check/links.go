package main

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"

	"github.com/lullgo/lull/ci/internal/tool"
)

// checkLinks checks the links of every Markdown page below the working directory, as far as
// they need no network: the file exists, and so does the heading. So it does with the names of
// pages in other files, such as docs/guide.md#marks in a comment.
func checkLinks() error {
	pages := map[string]page{}
	var others []string
	for path := range tool.Files(".", ".ci", ".github") {
		switch filepath.Ext(path) {
		case ".md":
			pages[path] = readPage(tool.ReadFile(path))
		case ".go", ".yml", ".yaml", ".json", ".sh":
			if !strings.Contains(path, "/readme-check/") { // which has bad ones on purpose
				others = append(others, path)
			}
		}
	}
	var problems []error
	links := 0
	for path, p := range pages {
		for _, l := range p.links {
			links++
			if err := l.check(path, pages); err != nil {
				problems = append(problems, fmt.Errorf("%s:%d: %s: %w", path, l.line, l.to, err))
			}
		}
	}
	for _, path := range others {
		for _, to := range named.FindAllString(tool.ReadFile(path), -1) {
			links++
			if err := (link{to: "/" + to}).check(path, pages); err != nil {
				problems = append(problems, fmt.Errorf("%s: %s: %w", path, to, err))
			}
		}
	}
	if len(problems) == 0 {
		fmt.Printf("%d links to files and headings hold, in %d pages and %d other files\n", links, len(pages), len(others))
	}
	return errors.Join(problems...)
}

type page struct {
	links   []link
	anchors map[string]bool
}

type link struct {
	line int // from 1
	to   string
}

var (
	// inline is a link or an image, which may have a title.
	inline = regexp.MustCompile(`\]\(\s*<?([^)\s>]+)>?(?:\s+"[^"]*")?\s*\)`)
	// reference is the definition of a link that is named elsewhere.
	reference = regexp.MustCompile(`^\s{0,3}\[[^\]]+\]:\s*(\S+)`)
	// attribute is a link in HTML.
	attribute = regexp.MustCompile(`\b(?:src|srcset|href)="([^"]+)"`)
	// id is an anchor in HTML.
	id      = regexp.MustCompile(`<[^>]*\b(?:id|name)="([^"]+)"`)
	heading = regexp.MustCompile(`^ {0,3}#{1,6}\s+(.*?)\s*#*$`)
	code    = regexp.MustCompile("`[^`]*`")
	// named is the name of a page of docs in a file that is no page.
	named = regexp.MustCompile(`\bdocs/[a-z-]+\.md(?:#[a-z0-9_-]+)?`)
	// linked is a link in a heading.
	linked = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// readPage finds the links and headings of a Markdown text outside of code.
func readPage(text string) page {
	p := page{anchors: map[string]bool{}}
	fence, number := "", 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimRight(line, "\r\n")
		trimmed := strings.TrimSpace(line)
		switch {
		case fence != "":
			if strings.HasPrefix(trimmed, fence) && strings.Trim(trimmed, fence[:1]) == "" {
				fence = ""
			}
			continue
		case strings.HasPrefix(trimmed, "```"), strings.HasPrefix(trimmed, "~~~"):
			fence = trimmed[:3]
			continue
		}
		if h := heading.FindStringSubmatch(line); h != nil {
			p.addAnchor(slug(h[1]))
		}
		for _, m := range id.FindAllStringSubmatch(line, -1) {
			p.anchors[m[1]] = true
		}
		plain := code.ReplaceAllString(line, "")
		for _, find := range []*regexp.Regexp{inline, reference, attribute} {
			for _, m := range find.FindAllStringSubmatch(plain, -1) {
				p.links = append(p.links, link{number, m[1]})
			}
		}
	}
	return p
}

// addAnchor adds that of a heading. A second heading of the same text gets a number.
func (p page) addAnchor(slug string) {
	name := slug
	for i := 1; p.anchors[name]; i++ {
		name = fmt.Sprintf("%s-%d", slug, i)
	}
	p.anchors[name] = true
}

// slug is the anchor that GitHub gives a heading.
func slug(heading string) string {
	heading = linked.ReplaceAllString(heading, "$1")
	var b strings.Builder
	for _, r := range strings.ToLower(heading) {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			b.WriteRune(r)
		case r == ' ':
			b.WriteByte('-')
		}
	}
	return b.String()
}

// own is where links to the repository itself begin.
var own = regexp.MustCompile(`^https://github\.com/lullgo/lull/(?:blob|tree)/main/`)

// check checks a link in the file from. A link that begins with a slash is one from the root.
func (l link) check(from string, pages map[string]page) error {
	to := l.to
	if own.MatchString(to) {
		to = "/" + own.ReplaceAllString(to, "")
	}
	u, err := url.Parse(to)
	if err != nil {
		return errors.New("this is no link")
	}
	if u.Scheme != "" || u.Host != "" {
		return nil
	}
	name := from
	if u.Path != "" {
		name = path.Join(path.Dir(from), u.Path)
		if strings.HasPrefix(u.Path, "/") {
			name = path.Clean("." + u.Path)
		}
		if _, err := os.Stat(name); err != nil {
			return errors.New("there is no such file")
		}
	}
	if u.Fragment == "" {
		return nil
	}
	p, ok := pages[name]
	switch {
	case ok && !p.anchors[u.Fragment]:
		return fmt.Errorf("%s has no such heading", name)
	case !ok && filepath.Ext(name) != ".go": // lines of a source file: #L7
		return errors.New("only pages of Markdown have headings")
	}
	return nil
}
