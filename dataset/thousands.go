package dataset

import (
	"fmt"
	"strconv"
	"strings"
)

// decimal returns the mark before decimals.
func (m marks) decimal() byte {
	if m.comma {
		return ','
	}
	return '.'
}

// alike are the marks that stand for one between thousands.
var alike = map[rune]string{',': ",", '.': ".", '\'': "'\u2019", ' ': " \u00a0\u2009\u202f"}

// ungroup takes the marks between thousands out of the whole part of a number; ok: they are where they must be, or there is
// none. After the first mark come three digits, or two if more follow (as in India).
func ungroup(field, between string, decimal byte) (plain string, ok bool) {
	whole, rest := field, ""
	if i := strings.IndexAny(field, string(decimal)+"eE"); i >= 0 {
		whole, rest = field[:i], field[i:]
	}
	marks := 0
	for _, r := range whole {
		if strings.ContainsRune(between, r) {
			marks++
		}
	}
	if marks == 0 {
		return field, true
	}
	groups := strings.FieldsFunc(whole, func(r rune) bool { return strings.ContainsRune(between, r) })
	if len(groups) != marks+1 {
		return "", false
	}
	for i, group := range groups {
		if i == 0 {
			group = strings.TrimLeft(group, "+-")
		}
		last := i == len(groups)-1
		if !digits(group) || i == 0 && (len(group) > 3 || group[0] == '0') || last && len(group) != 3 || i > 0 && !last && len(group) != 3 && len(group) != 2 {
			return "", false
		}
	}
	return strings.Join(groups, "") + rest, true
}

// likeThousands reports whether a mark in a number may be one between thousands: one to three digits before it,
// no zero first, and three after it.
func likeThousands(field string, mark byte) bool {
	field = strings.TrimLeft(field, "+-")
	whole, rest, found := strings.Cut(field, string(mark))
	return found && len(rest) == 3 && digits(rest) && len(whole) <= 3 && digits(whole) && whole[0] != '0'
}

// digits reports whether s is digits.
func digits(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r < '0' || r > '9' })
}

// parseGrouped reads a number with marks between thousands.
func (m marks) parseGrouped(field string) (v float64, reason string) {
	plain, ok := ungroup(field, alike[m.thousands], m.decimal())
	if !ok {
		return 0, fmt.Sprintf("%.40q is not a number with the thousands separator %q", field, m.thousands) + m.spelling(field)
	}
	if m.comma {
		plain = strings.Replace(plain, ",", ".", 1)
	}
	if v, reason = parseNumber(plain); reason != "" && field != "" {
		reason = fmt.Sprintf("%.40q is not a number", field) + m.spelling(field)
	}
	return v, reason
}

// advice names the flags with which a field that is not a number is one.
func (m marks) advice(field string) (text string) {
	for _, way := range m.ways(field) {
		text += "; " + way.What
	}
	return text
}

// ways lists the ways to read a field that is not a number with these marks.
func (m marks) ways(field string) (ways []Way) {
	field = strings.TrimSpace(field)
	if !strings.ContainsAny(field, "0123456789") || strings.ContainsFunc(field, func(r rune) bool { return !strings.ContainsRune("0123456789+-.,eE' \u00a0\u2009\u202f\u2019", r) }) {
		return nil
	}
	values := map[float64]bool{}
	for _, other := range m.others() {
		if v, reason := other.parseGrouped(field); reason == "" && !values[v] {
			values[v] = true
			ways = append(ways, Way{other.String() + " reads " + strconv.FormatFloat(v, 'f', -1, 64), other.flags()})
		}
	}
	return ways
}

// marks returns the marks of a way that Way.What describes as ways does.
func (w *Way) marks() (m marks) {
	decimal := ""
	for _, f := range w.Flags {
		switch f.Name {
		case "--thousands":
			m.thousands = []rune(f.Value)[0]
			m.comma = m.thousands == '.'
		case "--decimal":
			decimal = f.Value
		}
	}
	if decimal != "" {
		m.comma = decimal == ","
	}
	return m
}

// fitting returns the ways with which all fields of the given columns are numbers that are numbers now. conflict is for an error if there
// is none: it names a field that is no number then.
func (s *csvSource) fitting(ways []Way, columns []int) (fit []Way, conflict string) {
	for _, way := range ways {
		other := way.marks()
		e := example{}
		err := s.eachRecord(func(_ int, record []string, r *csvRecords) error {
			for _, i := range columns {
				if field := strings.TrimSpace(record[i]); !isMissing(field) && isFieldNumber(field, s.dialect.marks) && !isFieldNumber(field, other) {
					e = example{strings.Clone(field), r.line(i), i}
					return errFound
				}
			}
			return nil
		})
		if err == nil {
			fit = append(fit, way)
		} else if conflict == "" && e.field != "" {
			conflict = fmt.Sprintf("; %s, but then %q (line %d, column %d) is not a number: write all numbers of the file with the same separators", way.What, e.field, e.line, e.column)
		}
	}
	return fit, conflict
}

// others lists the marks to try if a field is no number with these.
func (m marks) others() [7]marks {
	return [7]marks{{comma: !m.comma}, {thousands: ','}, {thousands: '.', comma: true}, {thousands: '\''}, {thousands: '\'', comma: true}, {thousands: ' '}, {thousands: ' ', comma: true}}
}

// flags returns the flags that read numbers with these marks.
func (m marks) flags() (flags []Flag) {
	if m.thousands != 0 {
		flags = append(flags, Flag{Name: "--thousands", Value: string(m.thousands)})
	}
	if m.thousands == 0 || m.comma != (m.thousands == '.') {
		flags = append(flags, Flag{Name: "--decimal", Value: string(m.decimal())})
	}
	return flags
}

// String writes the flags.
func (m marks) String() string {
	var words []string
	for _, f := range m.flags() {
		if strings.Contains("' ", f.Value) {
			f.Value = strconv.Quote(f.Value)
		}
		words = append(words, f.Name+" "+f.Value)
	}
	return strings.Join(words, " ")
}

// decimalsProof is what shows that marks of a file are before decimals, where no flag says it: a number that could not be
// written so with marks between thousands.
type decimalsProof struct {
	needed bool // none was seen, and no flag says it
	doubt  bool // a mark was seen that may be one between thousands
}

// look looks at a number with a fraction or of more than four characters.
func (p *decimalsProof) look(field string, mark byte) {
	field = strings.TrimSpace(field)
	switch {
	case strings.IndexByte(field, mark) < 0:
	case likeThousands(field, mark):
		p.doubt = true
	default:
		p.needed = false
	}
}

// lookAt looks at the numbers of records in columns that are read as numbers.
func (p *decimalsProof) lookAt(records [][]string, columns []int, m marks) {
	for _, record := range records {
		for _, i := range columns {
			if i >= len(record) {
				continue
			}
			if field := record[i]; p.needed && strings.IndexByte(field, m.decimal()) >= 0 && isFieldNumber(field, m) {
				p.look(field, m.decimal())
			}
		}
	}
}

// columnMarks are the first numbers of a column with a mark that may be one between thousands, and without marks.
type columnMarks struct {
	marked, whole example
	proved        bool // a number of five digits has no mark
}

// checkMarks reads the file again, of which every mark may be one between thousands, and refuses it if two ways to
// read it are left: numbers of a column have no mark, or the mark is a comma.
func (s *csvSource) checkMarks() error {
	mark, columns := s.dialect.marks.decimal(), map[int]*columnMarks{}
	used := s.columns.numeric(s.classes)
	err := s.eachRecord(func(_ int, record []string, r *csvRecords) error {
		for _, i := range used {
			field := strings.TrimSpace(record[i])
			if field == "" || isMissing(field) {
				continue
			}
			c := columns[i]
			if c == nil {
				c = new(columnMarks)
				columns[i] = c
			}
			switch {
			case likeThousands(field, mark):
				c.marked.keep(strings.Clone(field), r.line(i), i)
			case strings.IndexByte(field, mark) < 0:
				c.whole.keep(strings.Clone(field), r.line(i), i)
				c.proved = c.proved || len(strings.TrimLeft(field, "+-")) > 4
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, i := range used {
		c := columns[i]
		if c == nil || c.proved || c.marked.field == "" || c.whole.field == "" && mark == '.' {
			continue
		}
		return s.thousandsError(c)
	}
	return nil
}

func (s *csvSource) thousandsError(c *columnMarks) error {
	m, at := s.dialect.marks, c.marked
	grouped := marks{thousands: rune(m.decimal()), comma: !m.comma}
	thousand, _ := grouped.parseGrouped(at.field)
	decimal, _ := m.parseGrouped(at.field)
	reason := fmt.Sprintf("%q may mean %v or %v: %v reads %v, %v reads %v", at.field, thousand, decimal, grouped, thousand, m, decimal)
	if c.whole.field != "" {
		reason += fmt.Sprintf("; %q (line %d) has no separator", c.whole.field, c.whole.line)
	}
	return &RowError{
		File: s.info.File, Row: -1, Line: at.line, Column: at.column, Kind: "column", Name: nameAt(s.names, at.column), Reason: reason, Err: &WaysError{reason, []Way{
			oneWay("--thousands", string(m.decimal()), "%q is %v", at.field, thousand), oneWay("--decimal", string(m.decimal()), "%q is %v", at.field, decimal),
		}},
	}
}
