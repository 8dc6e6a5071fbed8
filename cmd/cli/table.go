package cli

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/coppice-ldl/coppice/internal/printable"
	"github.com/coppice-ldl/coppice/internal/units"
)

// OwnerColumn adds the owners to the rows of a table, if one of the things in it has an owner. owner returns the owner of
// thing i, or an empty text.
func OwnerColumn(header []string, things int, owner func(i int) string) (all []string, add func(i int, row []any) []any) {
	for i := range things {
		if owner(i) != "" {
			return append(header, "owner"), func(i int, row []any) []any { return append(row, cmp.Or(owner(i), "-")) }
		}
	}
	return header, func(_ int, row []any) []any { return row }
}

// Owner names the owner of something, and says if it is private.
func Owner(owner string, private bool) string {
	if private {
		return owner + " (private)"
	}
	return owner
}

// NewTable returns a table without frames. The columns in right, counted from 1, are aligned to the right.
func NewTable(w io.Writer, header []string, right ...int) table.Writer {
	t := table.NewWriter()
	t.SetOutputMirror(w)
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Format.Header = text.FormatDefault
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	t.SetStyle(style)
	t.SuppressTrailingSpaces()
	t.AppendHeader(Row(header...))
	var columns []table.ColumnConfig
	for _, n := range right {
		columns = append(columns, table.ColumnConfig{Number: n, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(columns)
	return t
}

// Row returns a row of a table. Each field stays on one line.
func Row(cells ...string) table.Row {
	var r table.Row
	for _, c := range cells {
		r = append(r, printable.Line(c))
	}
	return r
}

// WritePairs writes lines, each with a name and a value.
func WritePairs(w io.Writer, lines [][2]string) {
	width := 0
	for _, l := range lines {
		width = max(width, len(l[0]))
	}
	for _, l := range lines {
		fmt.Fprintf(w, "%-*s  %s\n", width, l[0], l[1])
	}
}

// Measure writes a measure with five decimals, below 0.001 with seven decimals, and below 10⁻⁶ with an exponent.
func Measure(v float64) string {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "-"
	case v != 0 && math.Abs(v) < 1e-6:
		return strconv.FormatFloat(v, 'e', 1, 64)
	case v != 0 && math.Abs(v) < 0.001:
		return strconv.FormatFloat(v, 'f', 7, 64)
	}
	return strconv.FormatFloat(v, 'f', 5, 64)
}

// Time writes a time that a cluster recorded, in Unix seconds.
func Time(seconds int64) string {
	if seconds == 0 {
		return "-"
	}
	return time.Unix(seconds, 0).Format(time.DateTime)
}

// ShortDigest shortens a digest for tables.
func ShortDigest(digest string) string {
	if len(digest) > 12 {
		return digest[:12]
	}
	return digest
}

// NameList writes at most 20 names. A name that is hard to read in a list is quoted.
func NameList(names []string) string {
	const shown = 20
	if len(names) == 0 {
		return "none"
	}
	var list []string
	for _, name := range names[:min(shown, len(names))] {
		hard := func(r rune) bool { return r == ',' || r == '"' || !strconv.IsPrint(r) }
		if name == "" || strings.ContainsFunc(name, hard) {
			name = strconv.Quote(name)
		}
		list = append(list, name)
	}
	s := strings.Join(list, ", ")
	if n := len(names); n > shown {
		s += fmt.Sprintf(", ... (%s in all; -o json has them)", units.Count(n))
	}
	return s
}
