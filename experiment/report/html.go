package report

import (
	"bufio"
	_ "embed" // the style sheet
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/coppice-ldl/coppice/experiment/figure"
)

//go:embed report.css
var rules string

// Style is the style sheet of reports as HTML fragments.
var Style = rules + figure.Style()

// frameStyle is the style of a page around a report.
const frameStyle = `
:root { color-scheme: light dark; }
body { font: 15px/1.45 "Liberation Sans", Arial, Helvetica, sans-serif; color: var(--figure-ink); background: var(--figure-paper); margin: 0 auto; padding: 1.5em; max-width: 62em; }
h1 { font-size: 1.6em; }
h2 { font-size: 1.25em; margin: 2em 0 .5em; border-bottom: 1px solid var(--report-rule); }
@media print { body { font-size: 9pt; padding: 0; max-width: none; } h2 { break-after: avoid; } }
`

// The headings of sections: of a page, below its title; and of a fragment, which a page has below a heading of its own.
const (
	pageLevel     = 2
	fragmentLevel = 3
)

// writeHTML writes a report as one page without scripts, and without anything from elsewhere.
func writeHTML(w io.Writer, s *Summary) error {
	d := s.layout()
	title := html.EscapeString(d.title)
	if _, err := io.WriteString(w, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"+
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>"+title+"</title>\n<style>\n"+
		Style+frameStyle+"</style>\n</head>\n<body>\n<h1>"+title+"</h1>\n"); err != nil {
		return err
	}
	if err := d.writeFragment(w, pageLevel); err != nil {
		return err
	}
	_, err := io.WriteString(w, "</body>\n</html>\n")
	return err
}

// writeFragment writes a report for a page that has Style and headings above. It has no ids, scripts or styles, so a
// page with a strict Content-Security-Policy may contain it.
func writeFragment(w io.Writer, s *Summary) error { return s.layout().writeFragment(w, fragmentLevel) }

// writeFragment writes the blocks of a document as one element. Pictures stand next to each other.
func (d *document) writeFragment(w io.Writer, level int) error {
	out := bufio.NewWriter(w)
	out.WriteString("<div class=\"report\">\n")
	side := false
	for _, b := range d.blocks {
		if _, is := b.(picture); is != side {
			out.WriteString(map[bool]string{true: "<div class=\"report-figures\">\n", false: "</div>\n"}[is])
			side = is
		}
		switch b := b.(type) {
		case heading:
			fmt.Fprintf(out, "<h%d>%s</h%[1]d>\n", level, html.EscapeString(string(b)))
		case paragraph:
			out.WriteString("<p>" + html.EscapeString(string(b)) + "</p>\n")
		case list:
			out.WriteString("<ul>\n")
			for _, item := range b {
				out.WriteString("<li>" + html.EscapeString(item) + "</li>\n")
			}
			out.WriteString("</ul>\n")
		case table:
			writeHTMLTable(out, b)
		case picture:
			if b.Picture == nil {
				out.WriteString("<p>" + html.EscapeString(b.caption) + "</p>\n")
				continue
			}
			f, err := b.Draw()
			if err != nil {
				return err
			}
			out.WriteString("<figure>\n" + f.Element("figure "+strings.ReplaceAll(b.Name, "-", " ")) + "\n<figcaption>" +
				html.EscapeString(b.Caption) + "</figcaption>\n</figure>\n")
		}
	}
	if side {
		out.WriteString("</div>\n")
	}
	out.WriteString("</div>\n")
	return out.Flush()
}

var htmlCells = cellStyles{best: [2]string{"<strong>", "</strong>"}, second: [2]string{"<u>", "</u>"},
	worse: `<span class="report-mark"> •</span>`, better: `<span class="report-mark"> ◦</span>`}

// longTable is the number of lines from which a table is printed on several pages.
const longTable = 30

// writeHTMLTable writes a table that can be moved sideways on a narrow screen, also by keys.
func writeHTMLTable(out *bufio.Writer, t table) {
	var classes []string
	if t.texts {
		classes = append(classes, "report-texts")
	}
	if len(t.lines) > longTable {
		classes = append(classes, "report-long")
	}
	class, caption := "", html.EscapeString(t.caption)
	if classes != nil {
		class = ` class="` + strings.Join(classes, " ") + `"`
	}
	fmt.Fprintf(out, "<div class=\"report-wide\" tabindex=\"0\" role=\"group\" aria-label=\"%s\"><table%s>\n"+
		"<caption>%[1]s</caption>\n<thead><tr>", caption, class)
	for _, h := range t.header {
		out.WriteString(`<th scope="col">` + html.EscapeString(h) + "</th>")
	}
	out.WriteString("</tr></thead>\n<tbody>\n")
	for _, l := range t.lines {
		if l.rule {
			out.WriteString(`<tr class="report-rule">`)
		} else {
			out.WriteString("<tr>")
		}
		for i, c := range l.cells {
			text := c.styled(html.EscapeString(c.text), &htmlCells)
			if i == 0 {
				out.WriteString(`<th scope="row">` + text + "</th>")
				continue
			}
			out.WriteString("<td>" + text + "</td>")
		}
		out.WriteString("</tr>\n")
	}
	out.WriteString("</tbody>\n</table></div>\n")
}
