package inspect

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/numbers"
	"github.com/coppice-ldl/coppice/dataset/read"
	"github.com/coppice-ldl/coppice/internal/units"
)

// ColumnProfile describes one column of a CSV file, and what it seems to be.
type ColumnProfile struct {
	Column   int      `json:"column"` // from 0
	Name     string   `json:"name,omitempty"`
	Role     Role     `json:"role"`
	Values   int      `json:"values"`
	Missing  int      `json:"missing"`
	Numbers  int      `json:"numbers"`  // of the values
	Distinct int      `json:"distinct"` // values; maxDistinct if there are more
	Least    *float64 `json:"least"`    // of the numbers; nil: there is none, or an infinite one
	Most     *float64 `json:"most"`
	Decimals string   `json:"decimals,omitempty"` // the mark before decimals, if there are any
	Between  string   `json:"thousands,omitempty"`
	Examples []string `json:"examples"` // the first values, each once
	Hint     string   `json:"hint,omitempty"`

	whole, rises, dates bool // all values: whole numbers, each above the one before, dates
	repeats             bool // some value is there twice
	last                float64
	proof               numbers.DecimalsProof
	words               bool          // some value is neither a number nor one with other marks
	odd                 string        // the first value that is no number
	otherwise           int           // values that are numbers with other separators
	ways                []dataset.Way // to read the first of them
	other               string
	seen                map[string]bool
}

// Role says what a column seems to be.
type Role string

// The roles of columns.
const (
	RoleFeature  Role = "feature"
	RoleLabel    Role = "label"     // one of several
	RoleClass    Role = "class"     // the only label
	RoleNumber   Role = "number"    // the only label, a number on a scale such as an age
	RoleID       Role = "id"        // it names or numbers the rows
	RoleGroup    Role = "group"     // what rows belong to
	RoleCategory Role = "category"  // a few texts
	RoleDate     Role = "date"      // days or times
	RoleText     Role = "text"      // other texts
	RoleEmpty    Role = "empty"     // no value
	RoleRowNames Role = "row names" // that are read as such
)

const (
	maxDistinct = 1000      // distinct values that are counted
	maxProfiled = 1 << 12   // columns that are described
	seenBytes   = 1 << 6    // of a value that counts as distinct
	profileRows = 1 << 8    // rows among which labels that sum to 1 are looked for
	fewLevels   = 50        // texts of a category
	maxPlanned  = 1 << 3    // readings that are listed
	maxSpan     = 1000      // numbers of a scale that is proposed
	defaultWide = 1 << 4    // levels of a class of whole numbers
	examples    = 3         // of a column
	minRows     = 10        // that show that a column numbers the rows
	sumSlack    = 1.0 / 100 // of sums of labels, for rounded ones
)

// profile is what was found in the columns of a CSV file.
type profile struct {
	table   *read.Table
	columns []ColumnProfile
	rows    int
	first   [][]float64 // of the first rows: the numbers of all columns, NaN where there is none
	wide    bool        // there are too many columns to describe
}

var (
	isoDate   = regexp.MustCompile(`^\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ].*)?$`)
	localDate = regexp.MustCompile(`^\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2})( .*)?$`)
	clockTime = regexp.MustCompile(`^\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?$`)
)

// newProfile reads a table from beginning to end and guesses the roles of its columns. After an error it returns what
// was read. tick is called after each row.
func newProfile(table *read.Table, tick func(file dataset.Measured, n int) error) (*profile, error) {
	p := &profile{table: table, wide: table.Width > maxProfiled}
	if !p.wide {
		p.columns = make([]ColumnProfile, table.Width)
		for i := range p.columns {
			p.columns[i] = ColumnProfile{Column: i, Name: table.ColumnName(i), Examples: []string{}, whole: true, rises: true,
				dates: true, proof: table.Proof, seen: map[string]bool{}}
		}
	}
	m := table.Separators()
	err := table.Each(func(n int, record []string, file dataset.Measured) error {
		p.rows++
		if p.wide {
			return tick(file, n)
		}
		var first []float64
		for i := range p.columns {
			v := p.columns[i].add(strings.TrimSpace(record[i]), m)
			if n < profileRows {
				first = append(first, v)
			}
			if proof := &p.columns[i].proof; v == v && proof.Needed && (len(record[i]) > 4 || v != math.Floor(v)) {
				proof.Look(record[i], m.Decimal())
			}
		}
		if n < profileRows {
			p.first = append(p.first, first)
		}
		return tick(file, n)
	})
	for i := range p.columns {
		c := &p.columns[i]
		c.Distinct, c.seen = len(c.seen), nil
		c.Role = c.guess(p.rows, table.Header)
	}
	return p, err
}

// add counts a field and returns its number, or NaN.
func (c *ColumnProfile) add(field string, m numbers.Marks) float64 {
	if numbers.IsMissing(field) {
		c.Missing++
		return numbers.NaN
	}
	c.Values++
	if key := field[:min(len(field), seenBytes)]; c.seen[key] {
		c.repeats = true
	} else if len(c.seen) < maxDistinct {
		key = strings.Clone(key)
		if c.seen[key] = true; len(c.Examples) < examples {
			c.Examples = append(c.Examples, key)
		}
	}
	c.dates = c.dates && (isoDate.MatchString(field) || localDate.MatchString(field) || clockTime.MatchString(field))
	v, ok := m.Value(field)
	if !ok {
		if c.odd == "" {
			c.odd = strings.Clone(field[:min(len(field), seenBytes)])
		}
		if c.whole, c.rises = false, false; !c.words && !c.dates {
			c.tryWays(field, m)
		}
		return numbers.NaN
	}
	if m.Comma && strings.Contains(field, ",") || !m.Comma && strings.Contains(field, ".") {
		c.Decimals = string(m.Decimal())
	}
	if m.Thousands != 0 && strings.ContainsAny(field, numbers.Alike[m.Thousands]) {
		c.Between = string(m.Thousands)
	}
	c.whole = c.whole && v == math.Floor(v)
	c.rises = c.rises && (c.Numbers == 0 || v > c.last)
	c.last = v
	if c.Numbers++; c.Least == nil && c.Numbers == 1 {
		low, high := v, v
		c.Least, c.Most = &low, &high
	}
	if c.Least != nil {
		if *c.Least, *c.Most = min(*c.Least, v), max(*c.Most, v); math.IsInf(*c.Least, 0) || math.IsInf(*c.Most, 0) {
			c.Least, c.Most = nil, nil
		}
	}
	return v
}

// tryWays counts a field that is no number if it is one with other marks.
func (c *ColumnProfile) tryWays(field string, m numbers.Marks) {
	for _, other := range m.Others() {
		if _, ok := other.Value(field); !ok {
			continue
		}
		if c.otherwise++; c.ways == nil {
			c.ways, c.other = m.Ways(field), strings.Clone(field)
		}
		return
	}
	c.words = true
}

// numeric reports whether all values of the column are numbers.
func (c *ColumnProfile) numeric() bool { return c.Values > 0 && c.Numbers == c.Values }

var (
	idNames = []string{"id", "uid", "uuid", "guid", "index", "idx", "row", "rowid", "no", "nr", "number", "key", "name",
		"file", "filename", "image", "path", "sample"}
	groupNames = []string{"person", "subject", "group", "participant", "patient", "user", "session", "speaker", "animal",
		"site", "batch", "fold", "cluster"}
)

// called reports whether the name of the column is one of names, alone or with an ending such as "_id".
func (c *ColumnProfile) called(names []string) bool {
	name := strings.ToLower(c.Name)
	for _, end := range []string{"_id", "-id", " id", "_no", "_nr"} {
		name = strings.TrimSuffix(name, end)
	}
	return slices.Contains(names, name)
}

// guess says what the column seems to be without the other columns; header: the file has one.
func (c *ColumnProfile) guess(rows int, header bool) Role {
	lower := strings.ToLower(c.Name)
	isID := c.called(idNames) || strings.HasSuffix(lower, "_id") || strings.HasPrefix(lower, "unnamed: ")
	switch {
	case c.Values == 0:
		return RoleEmpty
	case c.dates:
		return RoleDate
	case c.called(groupNames) && c.repeats:
		return RoleGroup
	case isID && !c.repeats && (c.whole || !c.numeric()):
		return RoleID
	case c.numeric() && c.Column == 0 && c.whole && c.rises && (header && c.Name == "" || rows >= minRows):
		return RoleID
	case c.numeric():
		return RoleFeature
	case !c.repeats && c.Values > 1 && c.Numbers == 0 && slices.ContainsFunc(c.Examples, func(e string) bool {
		return !strings.Contains(e, " ")
	}):
		return RoleID
	case c.Distinct <= fewLevels && c.repeats && 2*c.Distinct <= max(c.Values, 2*2):
		return RoleCategory
	}
	return RoleText
}

// sumsToOne finds the columns next to each other whose numbers, of 0 to 1, sum to 1 in each of the first rows that has
// all of them, and in one row at least: the longest run, and of equal ones the last. free lists the columns that may be
// such.
func (p *profile) sumsToOne(free []int) (from, to int) {
	const widest = 1 << 9
	fits := make([]bool, len(p.columns)+1)
	for _, i := range free {
		c := &p.columns[i]
		fits[i] = c.numeric() && c.Least != nil && *c.Least >= 0 && *c.Most <= 1
	}
	type sum struct {
		sum     float64
		missing int
	}
	rows := make([][]sum, len(p.first)) // of the columns before each
	for r, row := range p.first {
		rows[r] = make([]sum, len(row)+1)
		for i, v := range row {
			next := rows[r][i]
			if v != v {
				next.missing++
			} else if fits[i] {
				next.sum += v
			}
			rows[r][i+1] = next
		}
	}
	isOne := func(i, end int) bool {
		complete := 0
		for _, row := range rows {
			if row[i].missing != row[end].missing {
				continue
			}
			if complete++; math.Abs(row[end].sum-row[i].sum-1) > sumSlack {
				return false
			}
		}
		return complete > 0
	}
	for i := range p.columns {
		end := i
		for fits[end] && end < i+widest {
			end++
		}
		for ; end-i >= max(2, to-from); end-- {
			if isOne(i, end) {
				from, to = i, end
			}
		}
	}
	return from, to
}

// isOne reports whether columns from i up to j sum to 1 in each of the first rows that has all of them, and in one row
// at least.
func (p *profile) isOne(i, j int) bool {
	rows := 0
	for _, row := range p.first {
		sum := 0.0
		for _, v := range row[i:j] {
			sum += v
		}
		if sum != sum {
			continue
		}
		if rows++; math.Abs(sum-1) > sumSlack {
			return false
		}
	}
	return rows > 0
}

// sumsDiffer is the least share by which sums differ that are not the same but for rounding, such as percentages.
const sumsDiffer = 0.02

// sameSum reports whether the columns have about the same sum in all rows that were kept.
func (p *profile) sameSum(columns []int) bool {
	least, most := math.Inf(1), math.Inf(-1)
	for _, row := range p.first {
		sum := 0.0
		for _, i := range columns {
			sum += row[i]
		}
		if sum == sum {
			least, most = min(least, sum), max(most, sum)
		}
	}
	return most-least <= sumsDiffer*math.Abs(most)
}

// hints says what may be done about the columns that are no features.
func (p *profile) hints() {
	for i := range p.columns {
		c := &p.columns[i]
		if texts := c.Values - c.Numbers; c.Numbers > 2*texts && texts > 0 && c.Role != RoleDate {
			c.Hint = fmt.Sprintf("values that are not numbers: %s, such as %.40q", units.Count(texts), c.odd)
			continue
		}
		switch c.Role {
		case RoleID:
			c.Hint = "--row-names reads it as names of samples, --drop leaves it out"
		case RoleGroup:
			c.Hint = "--groups reads it as groups of samples, --drop leaves it out"
		case RoleCategory:
			c.Hint = "--categories makes a feature of each of its values, --drop leaves it out"
		case RoleText:
			c.Hint = "--drop leaves it out, --row-names reads it as names of samples, --categories makes a feature of each of " +
				"its values"
		case RoleDate:
			c.Hint = "dates cannot be read: write numbers, such as days, or leave the column out with --drop"
		case RoleRowNames:
			c.Hint = "list it in --feature-columns if it is a feature, or leave it out with --drop"
		case RoleEmpty:
			c.Hint = "--drop leaves it out"
		}
	}
}
