package report

import (
	"bufio"
	"io"
	"strings"
)

// writeMarkdown writes a report as Markdown with tables, as GitHub reads it.
func writeMarkdown(w io.Writer, s *Summary) error {
	d := s.layout()
	out := bufio.NewWriter(w)
	out.WriteString("# " + markdown(d.title) + "\n")
	for _, b := range d.blocks {
		if text, shown := pictureText(s.options.Pictures, b, markdownPicture, markdownHeading, markdown); shown {
			out.WriteString(text)
			continue
		}
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
		}
	}
	return out.Flush()
}

func markdownHeading(text string) string { return "\n## " + markdown(text) + "\n" }

// markdownPicture shows a picture of a folder.
func markdownPicture(folder string, f *Picture) string {
	return "\n![" + markdown(f.Caption) + "](<" + strings.NewReplacer("<", "%3C", ">", "%3E").Replace(folder+"/"+f.Name) + ".svg>)\n\n" + markdown(f.Caption) + "\n"
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
			out.WriteString(" " + c.inMarkdown() + " |")
		}
		out.WriteString("\n")
	}
}

// inMarkdown is a cell with its style.
func (c cell) inMarkdown() string {
	text := markdown(c.text)
	switch c.place {
	case 1:
		text = "**" + text + "**"
	case 2:
		text = "<u>" + text + "</u>"
	}
	if c.worse {
		text += " •"
	}
	return text
}

// specialInMarkdown are the characters that mean something in Markdown.
var specialInMarkdown = strings.NewReplacer(`\`, `\\`, "|", `\|`, "*", `\*`, "_", `\_`, "<", "&lt;", ">", "&gt;", "&", "&amp;", "`", "\\`", "[", `\[`, "]", `\]`, "#", `\#`, "~", `\~`, "$", `\$`)

// markdown is a text on one line, of which nothing is read as Markdown.
func markdown(text string) string { return specialInMarkdown.Replace(oneLine(text)) }
