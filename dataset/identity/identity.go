// Package identity says which texts of a column are one class or one group. Only whether two of them are equal
// matters. If every text of a column is a number, equal numbers are one identity (1, 1.0 and +1), however a file of any
// kind writes them. Otherwise each text is an identity of its own.
package identity

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/units"
)

// identity is what a text of a column of identities is as a number.
type identity struct {
	number  string // one text for all equal numbers; "": the text is no number
	zeros   int    // digits 0 in front that the number does not need: 2 of 007
	inexact bool   // written as a float so large that it may stand for several whole numbers
}

// identityOf reads a text as a number. A whole number without point and exponent is exact, whatever its length.
func identityOf(text string) (id identity) {
	sign, digits := "", strings.TrimPrefix(text, "+")
	if len(digits) == len(text) && strings.HasPrefix(text, "-") {
		sign, digits = "-", text[1:]
	}
	whole := len(digits)
	if end := strings.IndexFunc(digits, func(c rune) bool { return c < '0' || c > '9' }); end >= 0 {
		whole = end
	}
	if whole < len(digits) {
		if whole == 0 && !strings.HasPrefix(digits, ".") {
			return identity{} // such as nan and inf, which are no numbers here
		}
		v, err := units.ParseFloat(text)
		if err != nil {
			return identity{}
		}
		number, exact := units.FloatText(v, 64)
		id = identity{number: number, inexact: !exact}
	}
	for id.zeros < whole-1 && digits[id.zeros] == '0' {
		id.zeros++
	}
	if whole == len(digits) && whole > 0 {
		if id.number = digits[id.zeros:]; id.number != "0" {
			id.number = sign + id.number
		}
	}
	return id
}

// name is how the identity is called: by its number, with the zeros in front of it.
func (id *identity) name() string {
	number, sign := id.number, ""
	if strings.HasPrefix(number, "-") {
		number, sign = number[1:], "-"
	}
	return sign + strings.Repeat("0", id.zeros) + number
}

// Set collects the texts of a column of identities.
type Set struct {
	file, what string // what is "class" or "group", for messages
	Texts      map[string]*Text
}

// Text is one text of a column, with the first row that has it.
type Text struct {
	identity
	text      string
	row, line int
	Rows      int // that have it
}

// NewSet returns an empty Set. Messages name the file, and what: "class" or "group".
func NewSet(file, what string) *Set {
	return &Set{file, what, map[string]*Text{}}
}

// Add adds the text of a row, and reports whether it is new.
func (s *Set) Add(text string, r *dataset.Row) bool {
	if t := s.Texts[text]; t != nil {
		t.Rows++
		return false
	}
	// the text is a part of a record
	t := &Text{identity: identityOf(text), text: strings.Clone(text), row: r.Number, line: r.Line, Rows: 1}
	s.Texts[t.text] = t
	return true
}

// all lists the texts in the order in which they first occur.
func (s *Set) all() []*Text {
	all := make([]*Text, 0, len(s.Texts))
	for _, t := range s.Texts {
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b *Text) int { return cmp.Or(a.row-b.row, strings.Compare(a.text, b.text)) })
	return all
}

// Count is an identity of a column and the number of its rows.
type Count struct {
	Name string
	Rows int
}

// Resolve returns the identities of the column, sorted, by value if all are numbers, and a pair of different texts that
// are one; an error that wraps ErrAmbiguous says which texts can be read in two ways.
func (s *Set) Resolve() (found []Count, merged []string, err error) {
	all := s.all()
	word := slices.IndexFunc(all, func(t *Text) bool { return t.number == "" })
	first := map[string]*Text{} // by number
	at := map[string]int{}      // in found, by name
	for _, t := range all {
		name := t.text
		if other := first[t.number]; other != nil && t.number != "" {
			if word >= 0 || other.zeros != t.zeros {
				why := "the leading zeros may be part of the name"
				if word >= 0 {
					why = fmt.Sprintf("%.40q in row %d is a text", all[word].text, all[word].row)
				}
				return nil, nil, s.errorf(t, "%.40q, and %.40q in row %d, are one %s as numbers but two as texts (%s): write "+
					"both as %s for one %s, "+
					"or begin each with a letter (%s, %s) for two", t.text, other.text, other.row, s.what, why, other.number, s.what,
					"s"+other.text, "s"+t.text)
			}
			if merged == nil {
				merged = []string{other.text, t.text}
			}
		} else {
			first[t.number] = t
		}
		if word < 0 {
			if name = t.name(); t.inexact {
				return nil, nil, s.inexact(t)
			}
		}
		i, known := at[name]
		if !known {
			i = len(found)
			found, at[name] = append(found, Count{Name: name}), i
		}
		found[i].Rows += t.Rows
	}
	names := make([]string, len(found))
	for i, f := range found {
		names[i] = f.Name
	}
	sorted := make([]Count, len(found))
	Sort(names)
	for i, name := range names {
		sorted[i] = found[at[name]]
	}
	return sorted, merged, nil
}

func (s *Set) inexact(t *Text) error {
	return s.errorf(t, "the %s %.40q was written as a float, which cannot tell neighbouring whole numbers of this size "+
		"apart: write whole numbers, without point and exponent", s.what, t.text)
}

func (s *Set) errorf(t *Text, format string, args ...any) error {
	return &dataset.RowError{File: s.file, Row: t.row, Line: t.line, Column: -1, Reason: errtext.Sprintf(format, args...),
		Err: dataset.ErrAmbiguous}
}

// Groups collects the groups in the first pass over a source.
type Groups struct {
	seen  *Set
	bytes int
}

// NewGroups returns an empty Groups; messages name the file.
func NewGroups(file string) *Groups {
	return &Groups{seen: NewSet(file, "group")}
}

// Add notes the group of a row.
func (g *Groups) Add(r *dataset.Row) error {
	if !g.seen.Add(r.Group, r) {
		return nil
	}
	if g.bytes += len(r.Group); len(g.seen.Texts) > dataset.MaxGroups || g.bytes > dataset.MaxGroupBytes {
		return dataset.RowErrorf(g.seen.file, r.Number, "there are more than %d groups, or their names have more than %d "+
			"bytes together", dataset.MaxGroups, dataset.MaxGroupBytes)
	}
	return nil
}

// Sorted returns the groups without their rows (nil: there are none), and what is to be said of them.
func (g *Groups) Sorted() (all *dataset.Groups, notes []string, err error) {
	if len(g.seen.Texts) == 0 {
		return nil, nil, nil
	}
	found, merged, err := g.seen.Resolve()
	if err != nil {
		return nil, nil, err
	}
	all = &dataset.Groups{}
	for _, f := range found {
		all.Names = append(all.Names, f.Name)
	}
	if merged != nil {
		notes = append(notes, MergedNote("group", merged))
	}
	return all, notes, nil
}

// Index finds the number of an identity by its text.
type Index struct {
	numbers map[string]int // by identity.number; nil: not all identities are numbers
	zeros   []int          // by result: digits 0 in front of the name
	Names   map[string]int
	seen    *Set           // texts that were looked up
	found   map[string]int // the results
}

// NewIndex makes an index of identities that differ.
func NewIndex(file, what string, names []string) *Index {
	x := &Index{
		numbers: make(map[string]int, len(names)), Names: make(map[string]int, len(names)),
		seen: NewSet(file, what), found: map[string]int{},
	}
	for i, name := range names {
		x.Names[name] = i
		if x.numbers == nil {
			continue
		}
		if id := identityOf(name); id.number == "" {
			x.numbers = nil
		} else {
			x.numbers[id.number], x.zeros = i, append(x.zeros, id.zeros)
		}
	}
	return x
}

// Find returns the number of the identity that the text of a row is; ok is false if it is none of them.
func (x *Index) Find(text string, r *dataset.Row) (i int, ok bool, err error) {
	if i, ok := x.found[text]; ok {
		return i, true, nil
	}
	return x.look(text, r)
}

// look finds a text that was not looked up before.
func (x *Index) look(text string, r *dataset.Row) (i int, ok bool, err error) {
	if x.numbers == nil {
		i, ok = x.Names[text]
	} else if id := identityOf(text); id.number != "" {
		i, ok = x.numbers[id.number]
	}
	if !ok {
		return 0, false, nil
	}
	x.seen.Add(text, r)
	added := x.seen.Texts[text]
	if x.numbers != nil {
		if x.zeros[i] != added.zeros {
			for name, at := range x.Names {
				if at == i {
					return 0, false, x.seen.errorf(added, "%.40q, and the known %s %.40q, are one %s as numbers but two as texts "+
						"(the leading zeros may be part of the name): "+
						"write %s for one %s, or another text for two", added.text, x.seen.what, name, x.seen.what, name, x.seen.what)
				}
			}
			return 0, false, nil
		}
		if added.inexact {
			return 0, false, x.seen.inexact(added)
		}
	}
	x.found[added.text] = i
	return i, true, nil
}

// Sort sorts by value if all are numbers, otherwise by text.
func Sort(names []string) {
	type sorted struct {
		name, number string
		value        float64
	}
	all := make([]sorted, len(names))
	for i, name := range names {
		id := identityOf(name)
		if id.number == "" {
			slices.Sort(names)
			return
		}
		value, _ := strconv.ParseFloat(id.number, 64) // infinite if it is too long, which is right
		all[i] = sorted{name, id.number, value}
	}
	slices.SortFunc(all, func(a, b sorted) int {
		return cmp.Or(cmp.Compare(a.value, b.value), compareWhole(a.number, b.number), strings.Compare(a.name, b.name))
	})
	for i := range all {
		names[i] = all[i].name
	}
}

// compareWhole compares two numbers that are equal as floats: whole ones of several digits, or the same text.
func compareWhole(a, b string) int {
	c := cmp.Or(len(a)-len(b), strings.Compare(a, b))
	if strings.HasPrefix(a, "-") {
		return -c
	}
	return c
}

// MergedNote says that equal numbers are one class, or one group.
func MergedNote(what string, merged []string) string {
	return fmt.Sprintf("equal numbers are read as one %s, such as %.40q and %.40q", what, merged[0], merged[1])
}

// AreNumbers reports whether all texts are numbers.
func AreNumbers(texts []string) bool {
	return !slices.ContainsFunc(texts, func(text string) bool { return identityOf(text).number == "" })
}
