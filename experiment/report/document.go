package report

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

func plain(texts ...string) (cells []cell) {
	for _, t := range texts {
		cells = append(cells, cell{text: t})
	}
	return cells
}
