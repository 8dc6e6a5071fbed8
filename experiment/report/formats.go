package report

import (
	"bufio"
	"fmt"
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
