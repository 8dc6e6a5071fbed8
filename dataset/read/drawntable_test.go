package read

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/coppice-ldl/coppice/dataset/numbers"
	"pgregory.net/rapid"
)

// drawnTable is a table of data; NaN and "" are missing values.
type drawnTable struct {
	features [][]float64 // by row; float32 numbers
	names    []string    // of the features
	class    *identityColumn
	labels   [][]float64 // by row, unless there are classes; sums are 1, or counts are whole
	counts   bool
	groups   *identityColumn // nil: none
	header   bool
}

// identityColumn are classes or groups: whole numbers or texts.
type identityColumn struct {
	numbers []uint64 // nil: texts
	texts   []string // decimal digits of numbers; "" for a missing one
}

func drawTable(r *rapid.T) *drawnTable {
	t := &drawnTable{header: rapid.Bool().Draw(r, "header")}
	rows, width := rapid.IntRange(2, 12).Draw(r, "rows"), rapid.IntRange(1, 4).Draw(r, "features")
	value := rapid.OneOf(
		rapid.Map(rapid.IntRange(-999, 999), func(i int) float64 { return float64(i) }),
		rapid.Map(rapid.IntRange(-99999, 99999), func(i int) float64 { return float64(i) / 1000 }),
		rapid.Map(rapid.Float32Range(-1e30, 1e30), func(v float32) float64 { return float64(v) }),
		rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 1e-45, 3.4e38, 16777217, 0.1, 1. / 3}),
	)
	gap := rapid.IntRange(0, 3).Draw(r, "gaps") == 0
	for range rows {
		row := make([]float64, width)
		for i := range row {
			if row[i] = value.Draw(r, "value"); gap && rapid.IntRange(0, 9).Draw(r, "gap") == 0 {
				row[i] = numbers.NaN
			}
		}
		t.features = append(t.features, row)
	}
	t.features[0] = make([]float64, width) // so that one row at least has all values
	for i := range width {
		t.names = append(t.names, fmt.Sprintf("f%d %s", i, drawText(r)))
	}
	switch rapid.IntRange(0, 3).Draw(r, "labels") {
	case 0:
		t.counts = true
		t.labels = drawCounts(r, rows)
	case 1:
		for _, counts := range drawCounts(r, rows) {
			sum := 0.0
			for _, n := range counts {
				sum += n
			}
			for i := range counts {
				counts[i] /= sum
			}
			t.labels = append(t.labels, counts)
		}
	default:
		t.class = drawIdentities(r, rows, gap)
	}
	if rapid.Bool().Draw(r, "grouped") {
		t.groups = drawIdentities(r, rows, gap)
	}
	return t
}

func drawCounts(r *rapid.T, rows int) (all [][]float64) {
	width := rapid.IntRange(2, 4).Draw(r, "width")
	for range rows {
		row := make([]float64, width)
		for i := range row {
			row[i] = float64(rapid.IntRange(0, 20).Draw(r, "count"))
		}
		row[0]++
		all = append(all, row)
	}
	return all
}

// drawText draws a text of any letters, which begins and ends with none that is a blank, and is no number.
func drawText(r *rapid.T) string {
	text := rapid.StringOfN(rapid.Rune().Filter(func(c rune) bool {
		return unicode.IsGraphic(c) && c <= 0xffff && c != unicode.ReplacementChar
	}), 0, 8, 60).Draw(r, "text")
	return "t" + text + "."
}

func drawIdentities(r *rapid.T, rows int, gap bool) *identityColumn {
	c := new(identityColumn)
	var few []string
	texts := rapid.IntRange(0, 2).Draw(r, "texts") == 0
	for range rapid.IntRange(1, 5).Draw(r, "different") {
		if texts {
			few = append(few, drawText(r))
			continue
		}
		v := rapid.OneOf(rapid.Uint64Range(0, 30), rapid.Uint64Range(1e6, 1e9), rapid.Uint64Range(1<<53-2, 1<<53+2),
			rapid.Uint64Range(1<<63-9, 1<<63), rapid.Uint64()).Draw(r, "number")
		few = append(few, strconv.FormatUint(v, 10))
	}
	for i := range rows {
		text := rapid.SampledFrom(few).Draw(r, "identity")
		if gap && i > 0 && rapid.IntRange(0, 9).Draw(r, "gap") == 0 {
			text = ""
		}
		c.texts = append(c.texts, text)
	}
	if !texts {
		for _, text := range c.texts {
			v, _ := strconv.ParseUint(text, 10, 64)
			c.numbers = append(c.numbers, v)
		}
	}
	return c
}

// largest returns the greatest number, and whether a value is missing.
func (c *identityColumn) largest() (most uint64, missing bool) {
	for i, v := range c.numbers {
		most, missing = max(most, v), missing || c.texts[i] == ""
	}
	return most, missing
}

// spelling writes the cells of a table as text.
type spelling struct {
	r       *rapid.T
	comma   bool // the decimal separator is a comma
	plain   bool // words for missing values have no #
	refused int  // what of mayBeRefused was written; -1: nothing
}

func (s *spelling) missing() string {
	words := append([]string{""}, numbers.MissingWords...)
	if s.plain {
		words = slices.DeleteFunc(words[1:], func(w string) bool {
			return strings.Contains(w, "#") || strings.Contains(w, " ")
		})
	}
	word := rapid.SampledFrom(words).Draw(s.r, "missing")
	if rapid.Bool().Draw(s.r, "capitals") {
		word = strings.ToUpper(word)
	}
	return word
}

// number writes a number in one of the ways that read back as the same float64.
func (s *spelling) number(v float64) string {
	if v != v {
		return s.missing()
	}
	var text string
	switch rapid.IntRange(0, 4).Draw(s.r, "form") {
	case 0:
		text = strconv.FormatFloat(v, 'f', -1, 64)
	case 1:
		text = strconv.FormatFloat(v, 'e', -1, 64)
	case 2:
		text = strconv.FormatFloat(v, 'E', 18, 64) // as numpy.savetxt
	default:
		text = strconv.FormatFloat(v, 'g', -1, 64)
	}
	text = s.dressed(text)
	if s.comma {
		text = strings.Replace(text, ".", ",", 1)
	}
	return text
}

// dressed adds to a number what does not change it.
func (s *spelling) dressed(text string) string {
	switch whole := !strings.ContainsAny(text, ".eE"); rapid.IntRange(0, 7).Draw(s.r, "dress") {
	case 0:
		if text[0] != '-' {
			text = "+" + text
		}
	case 1:
		if whole {
			text += ".0"
		}
	case 2:
		if strings.HasPrefix(text, "0.") {
			text = text[1:]
		} else if text[0] != '-' {
			text = "0" + text
		}
	case 3:
		if strings.Contains(text, ".") && !strings.ContainsAny(text, "eE") {
			text += "00"
		}
	case 4:
		text = " " + text + " "
	}
	return text
}

// identity writes a class or a group.
func (s *spelling) identity(c *identityColumn, row int) string {
	text := c.texts[row]
	if text == "" {
		return s.missing()
	}
	if c.numbers == nil || rapid.Bool().Draw(s.r, "plain") {
		return text
	}
	switch rapid.IntRange(0, 200).Draw(s.r, "as") {
	case 0:
		s.refused = refusedZeros // if it is written without as well, or the other way round
		return "00" + text
	case 1:
		if v := c.numbers[row]; v >= 1<<53 {
			s.refused = refusedFloat
		}
		return text + ".0"
	}
	if c.numbers[row] >= 1<<53 {
		return "+" + text
	}
	forms := []string{text + ".0", "+" + text, text + ".", strconv.FormatFloat(float64(c.numbers[row]), 'e', -1, 64),
		strconv.FormatFloat(float64(c.numbers[row]), 'e', 18, 64)}
	text = rapid.SampledFrom(forms).Draw(s.r, "form")
	if s.comma {
		text = strings.Replace(text, ".", ",", 1)
	}
	return text
}
