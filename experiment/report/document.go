package report

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/coppice-ldl/coppice/experiment/figure"
	"github.com/coppice-ldl/coppice/internal/units"
)

// A document is a report before it is written in a format: blocks from top to bottom.
type document struct {
	title   string
	blocks  []block
	figures int // so far
}

// block is one of heading, paragraph, list, table and picture.
type block any

type (
	heading   string
	paragraph string
	list      []string
)

// table is a table. The first column has names, the others have values.
type table struct {
	caption string
	header  []string
	texts   bool   // the other columns have names as well, which stand to the left
	label   string // of LaTeX; empty: it has none, and Options.Bare leaves the table out
	lines   []line
}

// line is a line of a table. If rule is true, a rule is drawn above it.
type line struct {
	rule   bool
	sparse bool // true if a table without values of the line leaves it out
	cells  []cell
}

// columns bounds the columns with values in a table, and letters the letters of a line.
const (
	columns = 4
	letters = 120
)

// width returns the letters of the longest text of a column.
func (t *table) width(column int) int {
	most := utf8.RuneCountInString(t.header[column])
	for _, l := range t.lines {
		most = max(most, utf8.RuneCountInString(l.cells[column].text))
	}
	return most
}

// addWide adds a table, which is divided into several if it has too many columns, or too wide ones.
func (d *document) addWide(t table) {
	for from, number, to := 1, 1, 0; from < len(t.header); from, number = to, number+1 {
		line := t.width(0)
		for to = from; to < min(from+columns, len(t.header)); to++ {
			if line += t.width(to); to > from && line > letters {
				break
			}
		}
		part := table{caption: t.caption, texts: t.texts, label: t.label,
			header: slices.Concat(t.header[:1], t.header[from:to])}
		if from > 1 {
			part.caption += ", continued"
			if part.label != "" {
				part.label += fmt.Sprintf("-%d", number)
			}
		}
		for _, l := range t.lines {
			l.cells = slices.Concat(l.cells[:1], l.cells[from:to])
			if !l.sparse || slices.ContainsFunc(l.cells[1:], func(c cell) bool { return c.text != none }) {
				part.lines = append(part.lines, l)
			}
		}
		d.add(part)
	}
}

// transposed returns a table whose rows are the columns of t, below the title of the first column. Columns without
// values of a sparse line are left out.
func (t *table) transposed(title string) table {
	turned := table{caption: t.caption, texts: t.texts, label: t.label, header: []string{title}}
	for _, l := range t.lines {
		turned.header = append(turned.header, l.cells[0].text)
	}
	for i, h := range t.header[1:] {
		row := line{cells: plain(h)}
		for _, l := range t.lines {
			row.cells = append(row.cells, l.cells[1+i])
		}
		turned.lines = append(turned.lines, row)
	}
	return turned
}

// cell is text with its style.
type cell struct {
	text   string
	place  int  // 1: the best, 2: the second; else 0
	worse  bool // a test finds it worse than the reference
	better bool // a test finds it better than the reference
	value  bool // it is a measure
}

// picture is a figure with its caption, or only a caption. Formats without pictures leave it out, because paragraphs
// say the same.
type picture struct {
	*Picture
	caption string // without a figure
}

func plain(texts ...string) (cells []cell) {
	for _, t := range texts {
		cells = append(cells, cell{text: t})
	}
	return cells
}

// Picture is a picture of a report.
type Picture struct {
	// Name is the name of a file without its extension: letters, digits, dots, underscores and hyphens.
	Name    string
	Caption string
	Draw    func() (*figure.Figure, error)
}

// mostFigures bounds the figures of a report.
const mostFigures = 60

// addFigures adds the figures of a section below a heading. A report has at most mostFigures.
func (d *document) addFigures(title string, figures []Picture) {
	if len(figures) == 0 {
		return
	}
	d.add(heading(title))
	for i := range figures {
		if d.figures == mostFigures {
			d.add(picture{caption: fmt.Sprintf("A report has at most %d figures. Not shown: %s.", mostFigures,
				units.Plural(len(figures)-i, "more figure"))})
			return
		}
		d.addFigure(&figures[i])
	}
}

// addFigure adds a figure. The name of the figure begins with its number, and hyphens replace the characters that names
// of files cannot have.
func (d *document) addFigure(f *Picture) {
	d.figures++
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
			return r
		}
		return '-'
	}, f.Name)
	f.Name = fmt.Sprintf("%02d-%s", d.figures, name[:min(len(name), 80)])
	d.add(picture{Picture: f})
}

// written returns the blocks that a format writes if it shows the pictures of a folder. Without a folder it shows none,
// and no heading above pictures.
func (d *document) written(folder string) (blocks []block) {
	for i, b := range d.blocks {
		_, shown := b.(picture)
		if _, above := b.(heading); above && i+1 < len(d.blocks) {
			_, shown = d.blocks[i+1].(picture)
		}
		if !shown || folder != "" {
			blocks = append(blocks, b)
		}
	}
	return blocks
}

// add appends blocks.
func (d *document) add(blocks ...block) { d.blocks = append(d.blocks, blocks...) }

// part is the part of a list that one figure shows. text says which part it is. It is empty if there is only one part.
type part[T any] struct {
	items []T
	text  string
}

// partsOf divides a list into figures. Items that go together follow each other. A figure has at most mostLines items.
func partsOf[T any](list []T, together func(a, b *T) bool) (all []part[T]) {
	for from := 0; from < len(list); {
		end := from + 1
		for end < len(list) && together(&list[from], &list[end]) {
			end++
		}
		parts := (end - from + mostLines - 1) / mostLines
		for i := range parts {
			p := part[T]{items: list[from+i*mostLines : min(end, from+(i+1)*mostLines)]}
			if parts > 1 {
				p.text = fmt.Sprintf(", part %d of %d", i+1, parts)
			}
			all = append(all, p)
		}
		from = end
	}
	return all
}

// cellStyles are the texts of a format around the best and the second best value of a column, and behind a value that a
// test finds worse or better than the reference.
type cellStyles struct {
	best, second  [2]string
	worse, better string
}

// styled returns the text of the cell, which is written in the format, with its style.
func (c cell) styled(text string, s *cellStyles) string {
	switch c.place {
	case 1:
		text = s.best[0] + text + s.best[1]
	case 2:
		text = s.second[0] + text + s.second[1]
	}
	switch {
	case c.worse:
		text += s.worse
	case c.better:
		text += s.better
	}
	return text
}

// mostLines bounds the sweeps in one figure: more lines cannot be told apart.
const mostLines = 6
