package parquet

import (
	"errors"
	"fmt"
	"io"
	"math"
)

// Open opens a file of size bytes. The caller closes in after the last read.
func Open(in io.ReaderAt, size int64) (*File, error) {
	f, err := readMetadata(in, size)
	if err != nil {
		return nil, err
	}
	return f, f.measureLists()
}

// measureLists finds the widths of lists.
func (f *File) measureLists() error {
	width := 0
	for i := range f.Columns {
		c := &f.Columns[i]
		if c.List && c.Kind != Unreadable && f.Rows > 0 {
			n, err := f.firstList(c)
			if err != nil {
				return err
			}
			c.Width = n
		}
		if width += c.Width; width > maxColumns {
			return errDamaged("the file has more than %d columns, with the items of lists", maxColumns)
		}
	}
	return nil
}

// firstList returns the number of items of the first list of a column that is not missing.
func (f *File) firstList(c *Column) (int, error) {
	r := &columnReader{file: f, column: c, asText: false, pool: &pool{most: f.mostUnpacked()}}
	n, seen := 0, 0
	for {
		if r.at == r.n {
			err := r.fill()
			if errors.Is(err, io.EOF) || seen > maxLeading {
				break
			}
			if err != nil {
				return 0, err
			}
		}
		seen += r.n - r.at
		for ; r.at < r.n; r.at++ {
			if r.reps[r.at] == 0 && n > 0 {
				return n, nil
			}
			if int(r.defs[r.at]) >= c.itemDef {
				if n++; n > maxList {
					return 0, fmt.Errorf("column %.100q has lists of more than %d items: %w", c.Name, maxList, ErrFormat)
				}
			}
		}
	}
	return max(n, 1), nil
}

// Use says that a column of File.Columns is read, and as what.
type Use struct {
	Column int
	AsText bool // not as a number
}

// Reader reads the rows of a file in order.
type Reader struct {
	file    *File
	columns []*columnReader
	to      []int // where the values of each column go
	row     int64
}

// bufferBytes is how much of a file is read ahead, for all columns together.
const bufferBytes = 8 << 20

// Read begins to read the columns that are used. None of them may be Unreadable, and no list can be read as text.
func (f *File) Read(use []Use) *Reader {
	starts, next := make([]int, len(f.Columns)), 0
	for i := range f.Columns {
		starts[i] = next
		next += f.Columns[i].Width
	}
	r, held := &Reader{file: f}, &pool{most: f.mostUnpacked()}
	for _, u := range use {
		r.columns = append(r.columns, &columnReader{file: f, column: &f.Columns[u.Column], asText: u.AsText, pool: held,
			buffer: min(1<<17, bufferBytes/len(use))})
		r.to = append(r.to, starts[u.Column])
	}
	return r
}

// Share is the share of the rows that were read.
func (r *Reader) Share() float64 { return float64(r.row) / float64(max(1, r.file.Rows)) }

// Next reads the next row: each column into numbers or texts, which have a place for each column of the file and for
// each item of its lists. Missing numbers are NaN, missing texts empty. After the last row it returns io.EOF.
func (r *Reader) Next(numbers []float64, texts []string) error {
	if r.row == r.file.Rows {
		return r.end()
	}
	for k, c := range r.columns {
		if c.at == c.n {
			if err := r.fill(c); err != nil {
				return err
			}
		}
		switch to := r.to[k]; {
		case c.column.List:
			if err := r.list(c, numbers[to:to+c.column.Width]); err != nil {
				return err
			}
		case c.asText:
			texts[to] = c.outTexts[c.at]
			c.at++
		default:
			numbers[to] = c.outNumbers[c.at]
			c.at++
		}
	}
	r.row++
	return nil
}

// fill decodes more of a column, which must have more.
func (r *Reader) fill(c *columnReader) error {
	err := c.fill()
	if errors.Is(err, io.EOF) {
		return errDamaged("column %.100q ends in row %d, and the file has %d rows", c.column.Name, r.row, r.file.Rows)
	}
	return err
}

// list reads a list, which must have as many items as the first one.
func (r *Reader) list(c *columnReader, dst []float64) error {
	n := 0
	for begin := true; ; begin = false {
		if c.at == c.n {
			err := c.fill()
			if errors.Is(err, io.EOF) && !begin {
				break
			}
			if err != nil {
				return err
			}
		}
		if first := c.reps[c.at] == 0; first != begin {
			if begin {
				return errDamaged("row %d of column %.100q has no beginning", r.row, c.column.Name)
			}
			break
		}
		def := int(c.defs[c.at])
		c.at++
		switch {
		case def >= c.column.itemDef && n < len(dst):
			dst[n] = c.outNumbers[c.at-1]
			n++
		case def >= c.column.itemDef:
			return r.otherWidth(c, "more")
		case def < c.column.nullList: // the list is missing
			for ; n < len(dst); n++ {
				dst[n] = math.NaN()
			}
		}
	}
	if n < len(dst) {
		return r.otherWidth(c, fmt.Sprint(n))
	}
	return nil
}

func (r *Reader) otherWidth(c *columnReader, n string) error {
	return fmt.Errorf("row %d (counted from 0): the list in column %.100q has %s items, but the first list has %d; lists "+
		"of different lengths cannot be read: %w", r.row, c.column.Name, n, c.column.Width, ErrFormat)
}

// end checks that no column has more rows.
func (r *Reader) end() error {
	for _, c := range r.columns {
		if c.at == c.n {
			err := c.fill()
			if errors.Is(err, io.EOF) {
				continue
			}
			if err != nil {
				return err
			}
		}
		return errDamaged("column %.100q has more than %d rows", c.column.Name, r.file.Rows)
	}
	return io.EOF
}
