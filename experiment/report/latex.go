package report

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/coppice-ldl/coppice/engine/outcome/measures"
)

// latexHead and latexTail stand around a report. Each table between them can be copied alone; it
// needs the packages booktabs and longtable.
const (
	latexHead = `\documentclass{article}
\usepackage[utf8]{inputenc}
\usepackage[T1]{fontenc}
\usepackage{booktabs,longtable}
\usepackage{graphicx}
\usepackage[margin=20mm]{geometry}
\setlength{\emergencystretch}{3em}
\begin{document}
`
	latexTail = `\end{document}
`
)

// mostWaiting is how many tables and figures may wait for their place: LaTeX has room for some 50.
const mostWaiting = 12

// A table with more than mostTableLines lines breaks across pages.
const mostTableLines = 40

// Names of longName letters and other texts of longText letters are broken into lines.
const (
	longName = 30
	longText = 55
)

var latexCells = cellStyles{best: [2]string{`\textbf{\boldmath `, "}"}, second: [2]string{`\underline{`, "}"},
	worse: ` $\bullet$`, better: ` $\circ$`}

// writeLaTeX writes a report as a document of LaTeX, or only its tables with labels. A picture is as wide as it was
// drawn.
func writeLaTeX(w io.Writer, s *Summary) error {
	d := s.layout()
	out := bufio.NewWriter(w)
	name := labelled(s.Name)
	if s.options.Bare {
		line := "column"
		if s.options.Transpose {
			line = "row"
		}
		out.WriteString("% \\usepackage{booktabs,longtable}\n% In each " + line + ", the best value is bold and the second " +
			"best underlined.\n% \\bullet marks a method that is worse, and \\circ a method that is better, than ")
		if s.options.Against != "" {
			out.WriteString(oneLine(s.options.Against))
		} else {
			out.WriteString("the best")
		}
		fmt.Fprintf(out, ",\n%% by the corrected resampled t-test, Holm-adjusted within a dataset, at the level %v.\n%% The "+
			"number after \\pm is the %s standard deviation over folds.", s.Level, s.Deviations)
		for _, b := range d.blocks {
			if t, ok := b.(table); ok && t.label != "" {
				out.WriteString("\n")
				writeLaTeXTable(out, t, name)
			}
		}
		return out.Flush()
	}
	out.WriteString(latexHead + `\section*{` + latex(d.title) + "}\n")
	floats := 0
	for _, b := range d.written(s.options.Pictures) {
		out.WriteString("\n")
		switch b := b.(type) {
		case heading:
			out.WriteString(`\subsection*{` + latex(string(b)) + "}\n")
		case paragraph:
			out.WriteString(latex(string(b)) + "\n")
		case list:
			out.WriteString("\\begin{itemize}\n")
			for _, item := range b {
				out.WriteString(`\item {}` + latex(item) + "\n")
			}
			out.WriteString("\\end{itemize}\n")
		case table:
			writeLaTeXTable(out, b, name)
			floats++
		case picture:
			floats++
			if b.Picture == nil {
				out.WriteString(latex(b.caption) + "\n")
				break
			}
			out.WriteString("\\begin{figure}[htbp]\n\\centering\n\\includegraphics[width=84mm]{\\detokenize{" +
				s.options.Pictures + "/" + b.Name + ".pdf}}\n\\caption{" + latex(b.Caption) + "}\n\\end{figure}\n")
		}
		if floats == mostWaiting {
			out.WriteString("\\clearpage\n")
			floats = 0
		}
	}
	out.WriteString(latexTail)
	return out.Flush()
}

// labelled is a text for a label of LaTeX: the letters and digits of ASCII, with a hyphen for what is between them.
func labelled(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9')
	}), "-")
}

// writeLaTeXTable writes a table of the report of a name. Its label, if it has one, is tab:NAME:LABEL.
func writeLaTeXTable(out *bufio.Writer, t table, name string) {
	columns, long := latexColumns(&t)
	text := latex(t.caption)
	measured, _, _ := strings.Cut(t.label, "-") // a part of a wide table has a number
	if formula, ok := latexFormulas[measured]; ok {
		measure, _ := measures.Find(measured)
		text = strings.Replace(text, latex(measure.Formula), "$"+formula+"$", 1)
	}
	caption, header := "\\caption{"+text+"}", new(strings.Builder)
	if t.label != "" {
		caption += fmt.Sprintf("\n\\label{tab:%s:%s}", name, labelled(t.label))
	}
	header.WriteString("\\toprule\n")
	for i, h := range t.header {
		if i > 0 {
			header.WriteString(" & ")
		}
		header.WriteString(noArgument(latex(h)))
	}
	header.WriteString(" \\\\\n\\midrule\n")
	const size = "\\footnotesize\\setlength{\\tabcolsep}{4pt}\n"
	end := "\\bottomrule\n\\end{tabular}\n\\end{table}\n"
	if len(t.lines) > mostTableLines {
		fmt.Fprintf(out, "{%s\\begin{longtable}{@{}%s@{}}\n%s \\\\\n%s\\endfirsthead\n%s\\endhead\n", size, columns,
			caption, header, header)
		end = "\\bottomrule\n\\end{longtable}}\n"
	} else {
		fmt.Fprintf(out, "\\begin{table}[htbp]\n\\centering%s%s\n\\begin{tabular}{@{}%s@{}}\n%s", size, caption, columns,
			header)
	}
	marked := func(column int) bool {
		return slices.ContainsFunc(t.lines, func(l line) bool { return l.cells[column].worse || l.cells[column].better })
	}
	for _, l := range t.lines {
		if l.rule {
			out.WriteString("\\midrule\n")
		}
		for i, c := range l.cells {
			if i > 0 {
				out.WriteString(" & ")
			}
			text := noArgument(c.styled(latex(c.text), &latexCells))
			if marked(i) && c.value && !c.worse && !c.better { // so that numbers with and without a mark stand in line
				text += `\phantom{ $\bullet$}`
			}
			if long[i] {
				text = `{\raggedright ` + text + `\par}`
			}
			out.WriteString(text)
		}
		out.WriteString(" \\\\\n")
	}
	out.WriteString(end)
}

// noArgument braces the first letter of a text that would be an argument of the command before it: \\ and the rules of
// booktabs take a star and a length in square brackets, on the next line as well.
func noArgument(text string) string {
	if strings.HasPrefix(text, "[") || strings.HasPrefix(text, "*") {
		return "{" + text[:1] + "}" + text[1:]
	}
	return text
}

// latexColumns returns the specification of the columns of a table. long is true for a column if its texts are broken
// into lines.
func latexColumns(t *table) (columns string, long []bool) {
	for i := range t.header {
		longest := 0
		for _, l := range t.lines {
			longest = max(longest, utf8.RuneCountInString(l.cells[i].text))
		}
		own, width, most := "r", "", longText
		if i == 0 || t.texts {
			own, width = "l", "75mm"
		}
		if i == 0 {
			width, most = "45mm", longName
		}
		is := width != "" && longest >= most
		if is {
			own = "p{" + width + "}"
		}
		columns, long = columns+own, append(long, is)
	}
	return columns, long
}

// latexFormulas are the formulas of measures in mathematical notation. Other measures have their text in captions.
var latexFormulas = map[string]string{
	"kl":             `\sum d\ln(d/p)`,
	"euclidean":      `\sqrt{\sum (d-p)^2}`,
	"sorensen":       `\sum|d-p|\,/\,\sum(d+p)`,
	"chi2":           `\sum (d-p)^2/(d+p)`,
	"fidelity":       `\sum\sqrt{d\,p}`,
	"intersection":   `\sum\min(d,p)`,
	"chebyshev":      `\max|d-p|`,
	"clark":          `\sqrt{\sum (d-p)^2/(d+p)^2}`,
	"canberra":       `\sum|d-p|/(d+p)`,
	"cosine":         `\sum d\,p\,/\,(\sqrt{\sum d^2}\sqrt{\sum p^2})`,
	"jensen_shannon": `(\mathrm{KL}(d,m)+\mathrm{KL}(p,m))/2,\ m=(d+p)/2`,
	"wave_hedges":    `\sum|d-p|/\max(d,p)`,
	"mse":            `\frac{1}{C}\sum (d-p)^2`,
}

// latexOf are characters that LaTeX needs in another way.
var latexOf = map[rune]string{
	'\\': `\textbackslash{}`, '{': `\{`, '}': `\}`, '$': `\$`, '&': `\&`, '#': `\#`, '%': `\%`, '_': `\_`,
	'~': `\textasciitilde{}`, '^': `\textasciicircum{}`,
	'<': `$<$`, '>': `$>$`, '|': `$|$`, '"': `\textquotedbl{}`, '±': `$\pm$`, '•': `$\bullet$`, '◦': `$\circ$`, '²': `$^2$`, 'χ': `$\chi$`,
	'×': `$\times$`, '÷': `$\div$`, 'Σ': `$\Sigma$`, '√': `$\sqrt{\ }$`, '·': `$\cdot$`, '…': `\ldots{}`,
	'-': `-{}`, '\'': `\textquotesingle{}`, '`': `\textasciigrave{}`,
}

// notInT1 lists the letters from U+00C0 to U+017E that T1, the encoding of the document, lacks.
const notInT1 = "ĦħĸĿŀŉŦŧ"

// latex returns a text on one line without LaTeX commands. A letter that LaTeX does not have becomes its number, such
// as U+4E2D.
func latex(text string) string {
	var b strings.Builder
	for _, r := range oneLine(text) {
		switch replaced, ok := latexOf[r]; {
		case ok:
			b.WriteString(replaced)
		case r < 0x20 || r == 0x7f || r >= 0x80 && (r < 0xc0 || r > 0x17e) || strings.ContainsRune(notInT1, r):
			fmt.Fprintf(&b, "U+%04X", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
