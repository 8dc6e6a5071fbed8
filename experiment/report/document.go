package report

import "github.com/coppice-ldl/coppice/internal/printable"

// A document is a report before it is written in a format: blocks from top to bottom.
type document struct {
	title   string
	blocks  []block
	figures int // so far
}

// block is one of heading, paragraph, list, table, picture and pictureHeading.
type block any

type (
	heading   string
	paragraph string
	list      []string
)

// table is a table whose first column has names and whose others have values.
type table struct {
	caption string
	header  []string
	texts   bool // the other columns have names as well, which stand to the left
	lines   []line
}

// columns bounds the columns next to each other in a table; the others follow in further tables.
const columns = 4

// line is a line of a table; a rule stands above it where asked for.
type line struct {
	rule  bool
	cells []cell
}

// cell is text with its style.
type cell struct {
	text  string
	place int  // 1: the best, 2: the second; else 0
	worse bool // a test finds it worse than the best
	value bool // it is a measure
}

// picture is a figure that formats with pictures show, or only its caption. The others leave it
// out, as paragraphs beside it say the same.
type picture struct {
	*Picture
	caption string // without a figure
}

// pictureHeading is a heading above pictures alone, which formats without pictures leave out.
type pictureHeading string

// makePrintable replaces what a terminal would obey in the texts: names of rows and datasets, and errors, are what users
// and other machines wrote.
func (d *document) makePrintable() {
	d.title = printable.Text(d.title)
	for i, b := range d.blocks {
		switch b := b.(type) {
		case heading:
			d.blocks[i] = heading(printable.Text(string(b)))
		case pictureHeading:
			d.blocks[i] = pictureHeading(printable.Text(string(b)))
		case paragraph:
			d.blocks[i] = paragraph(printable.Text(string(b)))
		case list:
			d.blocks[i] = list(printables(b))
		case picture:
			b.caption = printable.Text(b.caption)
			if b.Picture != nil {
				shown := *b.Picture
				shown.Caption = printable.Text(shown.Caption)
				b.Picture = &shown
			}
			d.blocks[i] = b
		case table:
			b.caption = printable.Text(b.caption)
			b.header = printables(b.header)
			for _, l := range b.lines {
				for k := range l.cells {
					l.cells[k].text = printable.Text(l.cells[k].text)
				}
			}
			d.blocks[i] = b
		}
	}
}

func printables(texts []string) (all []string) {
	for _, t := range texts {
		all = append(all, printable.Text(t))
	}
	return all
}

func plain(texts ...string) (cells []cell) {
	for _, t := range texts {
		cells = append(cells, cell{text: t})
	}
	return cells
}
