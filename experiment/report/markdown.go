package report

import (
	"bufio"
	"io"
	"strings"
)

var markdownCells = cellStyles{best: [2]string{"**", "**"}, second: [2]string{"<u>", "</u>"}, worse: " •"}

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
	for i, h := range t.header {
		if i == 0 {
			out.WriteString("|")
		}
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
var specialInMarkdown = strings.NewReplacer(`\`, `\\`, "|", `\|`, "*", `\*`, "_", `\_`, "<", "&lt;", ">", "&gt;", "&", "&amp;", "`", "\\`", "[", `\[`, "]", `\]`, "#", `\#`, "~", `\~`, "$", `\$`)

// markdown returns a text on one line without Markdown syntax.
func markdown(text string) string { return specialInMarkdown.Replace(oneLine(text)) }
