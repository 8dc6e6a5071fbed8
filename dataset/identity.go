package dataset

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/printable"
	"github.com/coppice-ldl/coppice/internal/units"
)

// Classes and groups are identities: only whether two of them are equal matters. If every text of a
// column is a number, equal numbers are one identity (1, 1.0 and +1), however a file of any kind writes
// them. Otherwise each text is an identity of its own.

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

// identities collects the texts of a column of identities.
type identities struct {
	file, what string // what is "class" or "group", for messages
	texts      map[string]*identityText
}

// identityText is one text of a column, with the first row that has it.
type identityText struct {
	identity
	text      string
	row, line int
	rows      int // that have it
}

func newIdentities(file, what string) *identities {
	return &identities{file, what, map[string]*identityText{}}
}

// add adds the text of a row, and reports whether it is new.
func (s *identities) add(text string, r *Row) bool {
	if t := s.texts[text]; t != nil {
		t.rows++
		return false
	}
	t := &identityText{identityOf(text), strings.Clone(text), r.Number, r.line, 1} // the text is a part of a record
	s.texts[t.text] = t
	return true
}

// all lists the texts in the order in which they first occur.
func (s *identities) all() []*identityText {
	all := make([]*identityText, 0, len(s.texts))
	for _, t := range s.texts {
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b *identityText) int { return cmp.Or(a.row-b.row, strings.Compare(a.text, b.text)) })
	return all
}

// identityCount is an identity of a column and the number of its rows.
type identityCount struct {
	name string
	rows int
}

// resolve returns the identities of the column, sorted, by value if all are numbers, and a pair of different texts that are one; an error that wraps ErrAmbiguous
// says which texts can be read in two ways.
func (s *identities) resolve() (found []identityCount, merged []string, err error) {
	all := s.all()
	if err := s.alike(all); err != nil {
		return nil, nil, err
	}
	word := slices.IndexFunc(all, func(t *identityText) bool { return t.number == "" })
	first := map[string]*identityText{} // by number
	at := map[string]int{}              // in found, by name
	for _, t := range all {
		name := t.text
		if other := first[t.number]; other != nil && t.number != "" {
			if word >= 0 || other.zeros != t.zeros {
				return nil, nil, s.twoWays(other, t, all, word)
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
			found, at[name] = append(found, identityCount{name: name}), i
		}
		found[i].rows += t.rows
	}
	names := make([]string, len(found))
	for i, f := range found {
		names[i] = f.name
	}
	sorted := make([]identityCount, len(found))
	sortIdentities(names)
	for i, name := range names {
		sorted[i] = found[at[name]]
	}
	return sorted, merged, nil
}

// alike refuses texts that look alike, unless these are the numbers that they look like.
func (s *identities) alike(all []*identityText) error {
	type shown struct {
		text *identityText
		own  bool // the text is what it looks like
	}
	first := make(map[string]shown, len(all))
	for _, t := range all {
		key := printable.Look(t.text)
		now := shown{t, key == t.text}
		if id := identityOf(key); id.number != "" {
			key = id.number
		}
		before, known := first[key]
		if known && !(before.own && now.own) {
			return s.errorf(t, "%+.40q looks like %+.40q in row %d, but the texts differ: for one %s, write both in the same way; for two, begin each with another letter",
				t.text, before.text.text, before.text.row, s.what)
		}
		if !known {
			first[key] = now
		}
	}
	return nil
}

// twoWays is the error for two texts that are one number, where it is open whether they are one identity.
func (s *identities) twoWays(a, b *identityText, all []*identityText, word int) error {
	why := "the leading zeros may be part of the name"
	if word >= 0 {
		why = fmt.Sprintf("%.40q in row %d is a text", all[word].text, all[word].row)
	}
	return s.errorf(b, "%.40q, and %.40q in row %d, are one %s as numbers but two as texts (%s): write both as %s for one %s, "+
		"or begin each with a letter (%s, %s) for two", b.text, a.text, a.row, s.what, why, a.number, s.what, "s"+a.text, "s"+b.text)
}

func (s *identities) inexact(t *identityText) error {
	return s.errorf(t, "the %s %.40q was written as a float, which cannot tell neighbouring whole numbers of this size apart: write whole numbers, without point and exponent", s.what, t.text)
}

func (s *identities) errorf(t *identityText, format string, args ...any) error {
	return &RowError{File: s.file, Row: t.row, Line: t.line, Column: -1, Reason: errtext.Sprintf(format, args...), Err: ErrAmbiguous}
}

// groupSet collects the groups in the first pass over a source.
type groupSet struct {
	seen  *identities
	bytes int
}

func newGroupSet(file string) *groupSet {
	return &groupSet{seen: newIdentities(file, "group")}
}

// add notes the group of a row.
func (g *groupSet) add(r *Row) error {
	if !g.seen.add(r.Group, r) {
		return nil
	}
	if g.bytes += len(r.Group); len(g.seen.texts) > MaxGroups || g.bytes > maxGroupBytes {
		return rowErrorf(g.seen.file, r.Number, "there are more than %d groups, or their names have more than %d bytes together", MaxGroups, maxGroupBytes)
	}
	return nil
}

// sorted returns the groups without their rows (nil: there are none), and what is to be said of them.
func (g *groupSet) sorted() (all *Groups, notes []string, err error) {
	if len(g.seen.texts) == 0 {
		return nil, nil, nil
	}
	found, merged, err := g.seen.resolve()
	if err != nil {
		return nil, nil, err
	}
	all = &Groups{}
	for _, f := range found {
		all.Names = append(all.Names, f.name)
	}
	if merged != nil {
		notes = append(notes, mergedNote("group", merged))
	}
	return all, notes, nil
}

// identityIndex finds the number of an identity by its text.
type identityIndex struct {
	numbers map[string]int // by identity.number; nil: not all identities are numbers
	zeros   []int          // by result: digits 0 in front of the name
	names   map[string]int
	seen    *identities    // texts that were looked up
	found   map[string]int // the results
}

// newIdentityIndex makes an index of identities that differ.
func newIdentityIndex(file, what string, names []string) *identityIndex {
	x := &identityIndex{
		numbers: make(map[string]int, len(names)), names: make(map[string]int, len(names)),
		seen: newIdentities(file, what), found: map[string]int{},
	}
	for i, name := range names {
		x.names[name] = i
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

// find returns the number of the identity that the text of a row is; ok is false if it is none of them.
func (x *identityIndex) find(text string, r *Row) (i int, ok bool, err error) {
	if i, ok := x.found[text]; ok {
		return i, true, nil
	}
	return x.look(text, r)
}

// look finds a text that was not looked up before.
func (x *identityIndex) look(text string, r *Row) (i int, ok bool, err error) {
	if x.numbers == nil {
		i, ok = x.names[text]
	} else if id := identityOf(text); id.number != "" {
		i, ok = x.numbers[id.number]
	}
	if !ok {
		return 0, false, nil
	}
	x.seen.add(text, r)
	added := x.seen.texts[text]
	if x.numbers != nil {
		if x.zeros[i] != added.zeros {
			return 0, false, x.otherZeros(i, added)
		}
		if added.inexact {
			return 0, false, x.seen.inexact(added)
		}
	}
	x.found[added.text] = i
	return i, true, nil
}

// otherZeros is the error for a text that is a known identity as a number and has other zeros in front.
func (x *identityIndex) otherZeros(i int, t *identityText) error {
	for name, at := range x.names {
		if at == i {
			return x.seen.errorf(t, "%.40q, and the known %s %.40q, are one %s as numbers but two as texts (the leading zeros may be part of the name): "+
				"write %s for one %s, or another text for two", t.text, x.seen.what, name, x.seen.what, name, x.seen.what)
		}
	}
	return nil
}

// sortIdentities sorts by value if all are numbers, otherwise by text.
func sortIdentities(names []string) {
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

// mergedNote says that equal numbers are one class, or one group.
func mergedNote(what string, merged []string) string {
	return fmt.Sprintf("equal numbers are read as one %s, such as %.40q and %.40q", what, merged[0], merged[1])
}

// isNumbers reports whether all texts are numbers.
func isNumbers(texts []string) bool {
	return !slices.ContainsFunc(texts, func(text string) bool { return identityOf(text).number == "" })
}
