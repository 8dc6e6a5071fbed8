package dataset

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// totalWords are words, in small or capital letters, with which people begin a row of sums or means.
var totalWords = []string{
	"total", "totals", "totale", "totaal", "totalt", "sum", "sums", "summe", "summa", "somme", "suma", "soma", "gesamt", "insgesamt", "итого", "всего", "合计", "总计", "合計", "Σ", "∑",
	"mean", "means", "average", "averages", "avg", "mittelwert", "durchschnitt", "moyenne", "media", "média", "promedio", "gemiddelde", "среднее", "平均", "平均值", "ø",
}

// isTotalWord reports whether a field is a word of a row of sums or means, alone or with more behind it.
func isTotalWord(field string) bool {
	field = strings.TrimSpace(field)
	if field == "" || !strings.ContainsRune("tsgimadp", rune(field[0]|0x20)) && field[0] < 0x80 {
		return false
	}
	const grand = "grand "
	if len(field) > len(grand) && strings.EqualFold(field[:len(grand)], grand) {
		field = field[len(grand):]
	}
	if end := strings.IndexAny(field, " (:=,"); end > 0 {
		field = field[:end]
	}
	return slices.ContainsFunc(totalWords, func(word string) bool { return len(word) == len(field) && strings.EqualFold(word, field) })
}

// maxTotalTexts is how many columns that are no numbers are searched for words of totals in each row.
const maxTotalTexts = 16

// totalTexts lists the first columns that are not read as numbers.
func (s *csvSource) totalTexts() (texts []int) {
	numbers := make([]bool, s.columns.width)
	for _, i := range s.columns.numeric(s.classes) {
		numbers[i] = true
	}
	for i, number := range numbers {
		if !number && len(texts) < maxTotalTexts {
			texts = append(texts, i)
		}
	}
	return texts
}

// totalWordAt returns the first of some columns with a word of totals; -1: none has one.
func totalWordAt(record []string, columns []int) int {
	for _, i := range columns {
		if isTotalWord(record[i]) {
			return i
		}
	}
	return -1
}

// totalError is the error for a row of sums or means among the last rows of the file, which reads the file again; nil: there is
// none.
func (s *csvSource) totalError() error {
	const fewest = 2 // rows before it
	from, at := -1, -1
	err := s.eachRecord(func(n int, record []string, _ *csvRecords) error {
		if !slices.ContainsFunc(record, isTotalWord) {
			from = -1
		} else if from < 0 {
			from, at = n, slices.IndexFunc(record, isTotalWord)
		}
		return nil
	})
	if err != nil || from < fewest {
		return nil
	}
	sums, word, m := make([]columnSum, s.columns.width), "", s.dialect.marks
	var found *RowError
	err = s.eachRecord(func(n int, record []string, r *csvRecords) error {
		if n < from {
			for i, field := range record {
				sums[i].add(field, m)
			}
			if word = record[at]; isTotalWord(word) { // a class or a category
				return errFound
			}
			return nil
		}
		if columns, mean := totals(record, sums, m); columns > 0 && found == nil {
			what := "sums"
			if mean {
				what = "means"
			}
			at := slices.IndexFunc(record, isTotalWord)
			found = s.columnError(n, at, fmt.Sprintf("%.40q begins a row that has the %s of the rows above in %s: delete the line, or write another word if the line is an ordinary row",
				strings.TrimSpace(record[at]), what, counted(columns, "column")), r)
			found.Err = ErrAmbiguous
		}
		return nil
	})
	if err != nil || found == nil {
		return nil
	}
	return found
}

// columnSum is the sum of the numbers of a column.
type columnSum struct {
	sum      float64
	n        int
	decimals int // the most that a number has
}

func (c *columnSum) add(field string, m marks) {
	if isMissing(field) {
		return
	}
	if v, ok := m.value(field); ok {
		c.sum, c.n, c.decimals = c.sum+v, c.n+1, max(c.decimals, m.decimalsOf(field))
	}
}

// decimalsOf counts the digits after the mark before decimals.
func (m marks) decimalsOf(field string) int {
	_, rest, _ := strings.Cut(strings.TrimSpace(field), string(m.decimal()))
	return len(rest) - len(strings.TrimLeft(rest, "0123456789"))
}

// totals counts the columns in which a record has the sum or the mean of the rows before it, if these are more than half of its
// numbers other than 0; mean: most are means.
func totals(record []string, sums []columnSum, m marks) (columns int, mean bool) {
	numbers, means := 0, 0
	for i, field := range record {
		v, ok := m.value(field)
		if c := &sums[i]; ok && v != 0 && !isMissing(field) && c.n > 1 {
			numbers++
			switch decimals := m.decimalsOf(field); {
			case math.Abs(v-c.sum) <= c.slack(v, decimals, math.Sqrt(float64(c.n))):
				columns++
			case math.Abs(v-c.sum/float64(c.n)) <= c.slack(v, decimals, 1):
				columns, means = columns+1, means+1
			}
		}
	}
	if 2*columns <= numbers {
		return 0, false
	}
	return columns, 2*means > columns
}

// slack is how far a total v with so many decimals may be from that of the numbers as they are written, each of which may be
// rounded; times is how much their errors add up. A total with fewer decimals than they have needs two digits.
func (c *columnSum) slack(v float64, decimals int, times float64) float64 {
	const exact, half, fewest = 1e-9, 0.51, 10
	slack, unit := float64(exact*math.Abs(v)), lastUnit(decimals)
	if c.decimals > 0 {
		slack += float64(half * times * lastUnit(c.decimals))
	}
	if decimals > 0 && decimals >= c.decimals || c.decimals > 0 && math.Abs(v) >= fewest*unit {
		slack += float64(half * unit) // it is rounded as well
	}
	return slack
}

// lastUnit is 1 in the last of so many decimals.
func lastUnit(decimals int) float64 {
	unit := 1.0
	for range min(decimals, 20) {
		unit /= 10
	}
	return unit
}
