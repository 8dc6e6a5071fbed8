package report

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/coppice-ldl/coppice/internal/printable"
)

// pageWidth is the width of paragraphs of text.
const pageWidth = 110

// writeText writes a report for terminals. The best has a star, the second a plus.
func writeText(w io.Writer, s *Summary) error {
	d := s.layout()
	out := bufio.NewWriter(w)
	out.WriteString(d.title + "\n" + strings.Repeat("=", printable.Width(d.title)) + "\n")
	for _, b := range d.written("") {
		switch b := b.(type) {
		case heading:
			out.WriteString("\n" + string(b) + "\n" + strings.Repeat("-", printable.Width(string(b))) + "\n")
		case paragraph:
			out.WriteString("\n" + broken(marksInText.Replace(string(b)), pageWidth))
		case list:
			out.WriteString("\n")
			for _, item := range b {
				out.WriteString("- " + oneLine(item) + "\n")
			}
		case table:
			writeTextTable(out, b)
		}
	}
	return out.Flush()
}

// marksInText says how styles look in text.
var marksInText = strings.NewReplacer("The best value is bold and the second best underlined",
	"The best value has a star (*) and the second best a plus (+)")

// broken breaks a text between words.
func broken(text string, columns int) string {
	var b strings.Builder
	used := 0
	for _, word := range strings.Fields(text) {
		n := printable.Width(word)
		switch {
		case used == 0:
		case used+1+n > columns:
			b.WriteString("\n")
			used = 0
		default:
			b.WriteString(" ")
			used++
		}
		b.WriteString(word)
		used += n
	}
	return b.String() + "\n"
}

// oneLine puts a text on one line.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// writeTextTable writes names to the left and values to the right of their columns.
func writeTextTable(out *bufio.Writer, t table) {
	widths := make([]int, len(t.header))
	for i, h := range t.header {
		widths[i] = printable.Width(h)
	}
	for _, l := range t.lines {
		for i, c := range l.cells {
			widths[i] = max(widths[i], printable.Width(c.inText()))
		}
	}
	total := 2 * (len(widths) - 1)
	for _, n := range widths {
		total += n
	}
	out.WriteString("\n" + t.caption + "\n")
	writeTextLine(out, plain(t.header...), widths, t.texts)
	out.WriteString(strings.Repeat("-", total) + "\n")
	for _, l := range t.lines {
		if l.rule {
			out.WriteString(strings.Repeat("-", total) + "\n")
		}
		writeTextLine(out, l.cells, widths, t.texts)
	}
}

func writeTextLine(out *bufio.Writer, cells []cell, widths []int, left bool) {
	var b strings.Builder
	for i, c := range cells {
		text := c.inText()
		space := strings.Repeat(" ", widths[i]-printable.Width(text))
		switch {
		case i == 0:
			b.WriteString(text + space)
		case left:
			b.WriteString("  " + text + space)
		default:
			b.WriteString("  " + space + text)
		}
	}
	out.WriteString(strings.TrimRight(b.String(), " ") + "\n")
}

// inText is a cell with its marks; values without a mark have room for one.
func (c cell) inText() string {
	text := oneLine(c.text)
	if !c.value && !strings.Contains(text, "±") {
		return text
	}
	marks := map[int]string{1: "*", 2: "+"}[c.place]
	switch {
	case c.worse:
		marks += "•"
	case c.better:
		marks += "◦"
	}
	return fmt.Sprintf("%s%2s", text, marks)
}

var markdownCells = cellStyles{best: [2]string{"**", "**"}, second: [2]string{"<u>", "</u>"}, worse: " •", better: " ◦"}

// writeMarkdown writes a report as Markdown with tables, as GitHub reads it.
func writeMarkdown(w io.Writer, s *Summary) error {
	d := s.layout()
	out := bufio.NewWriter(w)
	out.WriteString("# " + markdown(d.title) + "\n")
	for _, b := range d.written(s.options.Pictures) {
		out.WriteString("\n")
		switch b := b.(type) {
		case heading:
			out.WriteString("## " + markdown(string(b)) + "\n")
		case paragraph:
			out.WriteString(markdown(string(b)) + "\n")
		case list:
			for _, item := range b {
				out.WriteString("- " + markdown(item) + "\n")
			}
		case table:
			writeMarkdownTable(out, b)
		case picture:
			if b.Picture == nil {
				out.WriteString(markdown(b.caption) + "\n")
				continue
			}
			file := strings.NewReplacer("<", "%3C", ">", "%3E").Replace(s.options.Pictures+"/"+b.Name) + ".svg"
			out.WriteString("![" + markdown(b.Caption) + "](<" + file + ">)\n\n" + markdown(b.Caption) + "\n")
		}
	}
	return out.Flush()
}

func writeMarkdownTable(out *bufio.Writer, t table) {
	out.WriteString(markdown(t.caption) + "\n\n")
	out.WriteString("|")
	for _, h := range t.header {
		out.WriteString(" " + markdown(h) + " |")
	}
	column := " ---: |"
	if t.texts {
		column = " --- |"
	}
	out.WriteString("\n| --- |" + strings.Repeat(column, len(t.header)-1) + "\n")
	for _, l := range t.lines {
		out.WriteString("|")
		for _, c := range l.cells {
			out.WriteString(" " + c.styled(markdown(c.text), &markdownCells) + " |")
		}
		out.WriteString("\n")
	}
}

// specialInMarkdown are the characters that mean something in Markdown.
var specialInMarkdown = strings.NewReplacer(`\`, `\\`, "|", `\|`, "*", `\*`, "_", `\_`, "<", "&lt;", ">", "&gt;", "&",
	"&amp;", "`", "\\`", "[", `\[`, "]", `\]`, "#", `\#`, "~", `\~`, "$", `\$`)

// markdown returns a text on one line without Markdown syntax.
func markdown(text string) string { return specialInMarkdown.Replace(oneLine(text)) }

// htmlStyle is the whole style of a page: black on white, columns of figures in line, tables that are
// not torn apart in print and that can be moved sideways on a narrow screen.
const htmlStyle = `
body { font: 15px/1.45 "Liberation Sans", Arial, Helvetica, sans-serif; color: #111; background: #fff; margin: 0 auto; padding: 1.5em; max-width: 62em; }
h1 { font-size: 1.6em; } h2 { font-size: 1.25em; margin: 2em 0 .5em; border-bottom: 1px solid #999; }
p, li { max-width: 48em; overflow-wrap: anywhere; }
.wide { overflow-x: auto; margin: 1.2em 0; }
table { border-collapse: collapse; border-top: 2px solid #111; border-bottom: 2px solid #111; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: bold; padding-bottom: .4em; }
th, td { padding: .2em .7em; text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; white-space: normal; min-width: 9em; overflow-wrap: anywhere; }
thead th { border-bottom: 1px solid #111; } tbody th { font-weight: normal; }
.texts td, .texts th { text-align: left; }
tr.rule > * { border-top: 1px solid #111; }
th:first-child { position: sticky; left: 0; background: #fff; }
.worse { display: inline-block; width: .9em; margin-right: -.9em; text-align: center; }
.figures { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(26em, 100%), 1fr)); gap: 1.2em 2em; align-items: start; margin: 1.2em 0; }
figure { margin: 0; } figure svg { width: 100%; max-width: 30em; height: auto; } figcaption { font-size: .9em; }
@media print { body { font-size: 9pt; padding: 0; max-width: none; } h2 { break-after: avoid; } .wide { overflow: visible; } table, tr, figure { break-inside: avoid; } table.long { break-inside: auto; } th, td { padding: .1em .45em; } .figures { grid-template-columns: 84mm 84mm; gap: 5mm 6mm; } figure svg { max-width: 84mm; } th:first-child { position: static; } }
`

var htmlCells = cellStyles{best: [2]string{"<strong>", "</strong>"}, second: [2]string{"<u>", "</u>"},
	worse: `<span class="worse"> •</span>`, better: `<span class="worse"> ◦</span>`}

// writeHTML writes a report as one page without scripts, and without anything from elsewhere.
func writeHTML(w io.Writer, s *Summary) error {
	d := s.layout()
	out := bufio.NewWriter(w)
	title := html.EscapeString(d.title)
	out.WriteString("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" " +
		"content=\"width=device-width, initial-scale=1\">\n<title>" + title + "</title>\n<style>" + htmlStyle +
		"</style>\n</head>\n<body>\n<h1>" + title + "</h1>\n")
	side := false // pictures stand beside each other
	for _, b := range d.blocks {
		if _, is := b.(picture); is != side {
			out.WriteString(map[bool]string{true: "<div class=\"figures\">\n", false: "</div>\n"}[is])
			side = is
		}
		switch b := b.(type) {
		case heading:
			out.WriteString("<h2>" + html.EscapeString(string(b)) + "</h2>\n")
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
			svg, err := f.Element()
			if err != nil {
				return err
			}
			out.WriteString("<figure>\n" + svg + "\n<figcaption>" + html.EscapeString(b.Caption) + "</figcaption>\n</figure>\n")
		}
	}
	if side {
		out.WriteString("</div>\n")
	}
	out.WriteString("</body>\n</html>\n")
	return out.Flush()
}

// longTable is the number of lines from which a table is printed on several pages.
const longTable = 30

func writeHTMLTable(out *bufio.Writer, t table) {
	var classes []string
	if t.texts {
		classes = append(classes, "texts")
	}
	if len(t.lines) > longTable {
		classes = append(classes, "long")
	}
	out.WriteString("<div class=\"wide\"><table class=\"" + strings.Join(classes, " ") + "\">\n<caption>" +
		html.EscapeString(t.caption) + "</caption>\n<thead><tr>")
	for _, h := range t.header {
		out.WriteString("<th scope=\"col\">" + html.EscapeString(h) + "</th>")
	}
	out.WriteString("</tr></thead>\n<tbody>\n")
	for _, l := range t.lines {
		row := "<tr>"
		if l.rule {
			row = `<tr class="rule">`
		}
		out.WriteString(row)
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
