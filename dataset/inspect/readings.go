package inspect

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/dataset/read"
	"github.com/coppice-ldl/coppice/internal/errtext"
)

// TriedReading is a way to read a file that Inspect tried.
type TriedReading struct {
	dataset.Way
	// Refused says why the file cannot be read so; empty: it can.
	Refused  string   `json:"refused,omitempty"`
	Rows     int      `json:"samples"` // that an import would have
	Features int      `json:"features"`
	Labels   int      `json:"labels"`
	Commands []string `json:"commands,omitempty"` // that read it so; left to the caller
}

// readings finds ways to read a CSV file.
type readings struct {
	path string
	o    read.OpenOptions // as given
	io   importer.Options

	found []TriedReading
	tried map[string]bool // flags of the ways that errors left
	// of the first way whose columns could be read, or else of one whose columns have several marks
	profile *profile
	mixed   bool   // the profile is of such
	refused string // why the file cannot be read as given
	labels  []int  // columns of the first way
}

// asGiven tries the flags as they were given.
func (f *readings) asGiven() {
	s, err := f.read(dataset.Way{})
	if err != nil {
		f.refused = err.Error()
		return
	}
	f.add(dataset.Way{What: "without other flags", Flags: []dataset.Flag{}}, s, nil)
}

// add notes a way that was tried: what was found, or why the file cannot be read so.
func (f *readings) add(w dataset.Way, s *importer.Stats, err error) {
	r := TriedReading{Way: w}
	if err != nil {
		r.Refused = err.Error()
	} else {
		r.Rows, r.Features, r.Labels = s.Rows, s.Info.Features, s.Info.Labels
	}
	f.found = append(f.found, r)
}

// tryWhole tries a way to read a file that has no columns.
func (f *readings) tryWhole(w dataset.Way) error {
	s, err := f.read(w)
	f.add(w, s, err)
	return nil
}

// Apply returns the options with the flags of a way.
func Apply(w dataset.Way, o read.OpenOptions, io importer.Options) (read.OpenOptions, importer.Options, error) {
	var err error
	for _, f := range w.Flags {
		switch f.Name {
		case "--encoding":
			o.Encoding, err = read.ParseEncoding(f.Value)
		case "--delimiter":
			o.CSV.Delimiter, err = read.ParseDelimiter(f.Value)
		case "--decimal":
			o.CSV.Decimal = f.Value
		case "--thousands":
			o.CSV.Thousands, err = read.ParseThousands(f.Value)
		case "--header":
			o.CSV.Header = dataset.Header(f.Value)
		case "--labels":
			o.Labels.Kind, err = dataset.ParseLabelKind(f.Value)
		case "--label-columns":
			o.Labels.Columns = f.Items()
		case "--label-prefix":
			o.Labels.Prefixes = f.Items()
		case "--bounds":
			o.Labels.Bounds, err = dataset.ParseBounds(f.Items())
		case "--range":
			o.Labels.Low, o.Labels.High, err = read.ParseRange(f.Value)
		case "--sigma":
			o.Labels.Sigma, err = strconv.ParseFloat(f.Value, 64)
		case "--feature-columns":
			o.FeatureColumns = f.Items()
		case "--drop":
			o.Drop = f.Items()
		case "--categories":
			o.CSV.Categories = f.Items()
		case "--row-names":
			o.CSV.RowNames = f.Value
		case "--groups":
			o.Beside.Groups = f.Value
		case "--missing":
			o.Missing, err = dataset.ParseMissing(f.Value)
		case "--normalize":
			io.Checks.Normalize = true
		default:
			err = fmt.Errorf("flag %s cannot be used here", f.Name)
		}
		if err != nil {
			return o, io, err
		}
	}
	return o, io, nil
}

// find tries a way, and those between which a file leaves it open.
func (f *readings) find(w dataset.Way) error {
	if len(f.found) >= maxPlanned {
		return nil
	}
	o, _, err := Apply(w, f.o, f.io)
	if err != nil {
		return err
	}
	p, err := f.profileOf(&o)
	if mixed := err != nil && errors.Is(err, errOtherMarks); mixed && f.profile == nil || err == nil &&
		(f.profile == nil || f.mixed) {
		f.profile, f.mixed = p, mixed
	}
	if done, failed := f.branch(w, err, f.find); done {
		return failed
	}
	ways := p.labelWays(&o)
	if len(ways) == 0 {
		f.add(w, nil, errors.New("no columns look like labels: name the label columns with --label-columns, and their kind "+
			"with --labels"))
		return nil
	}
	if f.labels == nil && p == f.profile {
		f.labels = ways[0].columns
	}
	for _, labels := range ways {
		way := w.With(labels.What, labels.Flags...)
		if len(o.FeatureColumns) == 0 && o.CSV.Images == "" {
			what, flags := p.clean(&o, labels.columns)
			way = way.With(what, flags...)
		}
		if err := f.try(way, p); err != nil {
			return err
		}
	}
	return nil
}

// branch goes on with the ways that an error leaves, or notes why there is none. done: there was an error.
func (f *readings) branch(w dataset.Way, err error, next func(dataset.Way) error) (done bool, failed error) {
	var ways *dataset.WaysError
	untried := func(way dataset.Way) bool { return !f.tried[FlagText(w.With("", way.Flags...).Flags)] }
	switch {
	case err == nil:
		return false, nil
	case f.io.Context != nil && f.io.Context.Err() != nil:
		return true, f.io.Context.Err()
	case errors.As(err, &ways) && slices.ContainsFunc(ways.Ways, untried):
		for _, way := range ways.Ways {
			if way = w.With(way.What, way.Flags...); f.tried[FlagText(way.Flags)] {
				continue
			}
			f.tried[FlagText(way.Flags)] = true
			if err := next(way); err != nil {
				return true, err
			}
		}
		return true, nil
	}
	f.add(w, nil, err)
	return true, nil
}

// leavesEncoding reports whether an error says that another encoding reads the file.
func leavesEncoding(err error) bool {
	var ways *dataset.WaysError
	return errors.As(err, &ways) && len(ways.Ways) > 0 && ways.Ways[0].Flags[0].Name == "--encoding"
}

// FlagText writes flags on one line, in an order of their own.
func FlagText(flags []dataset.Flag) string {
	var words []string
	for _, f := range flags {
		words = append(words, f.Name+" "+f.Value)
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}

// profileOf reads the columns of the file. After errOtherMarks it returns what it read as well.
func (f *readings) profileOf(o *read.OpenOptions) (*profile, error) {
	table, err := read.OpenTable(f.path, o)
	if err != nil {
		return nil, err
	}
	p, err := newProfile(table, func(file dataset.Measured, n int) error {
		if n%importer.ProgressRows != 0 {
			return nil
		}
		return f.io.Report("inspect", n, -1, file)
	})
	if err != nil {
		return p, err
	}
	var numeric []int
	listed, proof := p.numbers(o), table.Proof
	for _, i := range listed {
		if c := &p.columns[i]; c.numeric() {
			numeric = append(numeric, i)
			proof.Needed, proof.Doubt = proof.Needed && c.proof.Needed, proof.Doubt || c.proof.Doubt
		}
	}
	listed = slices.DeleteFunc(listed, func(i int) bool {
		return p.columns[i].Numbers+p.columns[i].otherwise < p.columns[i].Values
	})
	for _, i := range listed {
		if c := &p.columns[i]; c.otherwise > 0 {
			reason := errtext.Sprintf("%q in column %d is not a number", c.other, c.Column)
			ways, conflict := table.Fitting(c.ways, listed)
			if len(ways) > 0 {
				return p, dataset.WithKind(&dataset.WaysError{Text: reason, Ways: ways}, errOtherMarks)
			}
			return p, dataset.WithKind(errtext.Errorf(errtext.WrongData, "%s: %s%s", table.File, reason, conflict),
				errOtherMarks)
		}
	}
	return p, table.CheckMarks(numeric, proof)
}

// errOtherMarks says that a column has numbers with other separators than the file.
var errOtherMarks = errors.New("numbers with other separators")

// labelWay is a way to find the labels, with their columns.
type labelWay struct {
	dataset.Way
	columns []int
}

// labelWays lists the ways to find the labels of a file.
func (p *profile) labelWays(o *read.OpenOptions) (ways []labelWay) {
	if p.wide {
		return []labelWay{{Way: dataset.Way{What: "with the given flags"}}}
	}
	l := &o.Labels
	if len(l.Columns) > 0 || len(l.Prefixes) > 0 || l.Kind == dataset.Counts || l.Ordered && l.Kind != dataset.Age {
		c, err := p.table.Choose(o)
		if err == nil || !errors.Is(err, dataset.ErrAmbiguous) {
			return []labelWay{{dataset.Way{What: "labels by the given flags"}, c.Labels}}
		}
	}
	if listed := p.table.Listed; len(listed) > 1 && l.Kind == dataset.Distributions {
		return []labelWay{p.prefixed(listed, "", false)}
	}
	free := p.free(o)
	byPrefix := map[string][]int{}
	for _, i := range free {
		if prefix := o.Labels.LabelPrefix(p.table.ColumnName(i)); prefix != "" && p.columns[i].Values > 0 {
			byPrefix[prefix] = append(byPrefix[prefix], i)
		}
	}
	for _, prefix := range o.Labels.LabelPrefixes() {
		if columns := byPrefix[prefix]; len(columns) > 0 && !l.Single() {
			ways = append(ways, p.targetWays(p.prefixed(columns, prefix, len(byPrefix) > 1), l.Kind)...)
		}
	}
	if len(ways) == 0 && !l.Single() {
		if from, to := p.sumsToOne(free); to > from {
			columns := make([]int, 0, to-from)
			for i := from; i < to; i++ {
				columns = append(columns, i)
			}
			flag := dataset.ListFlag("--label-columns", p.table.ColumnFlag(from)+":"+p.table.ColumnFlag(to-1))
			ways = append(ways, labelWay{dataset.Way{What: "the labels are " + p.table.ColumnNames(columns...) +
				", which sum to 1", Flags: []dataset.Flag{flag}}, columns})
		}
	}
	return append(ways, p.singleWays(o, free, len(ways) == 0)...)
}

// free lists the columns that no flag takes for something else than labels.
func (p *profile) free(o *read.OpenOptions) (free []int) {
	rest := *o
	rest.NoLabels, rest.Labels = true, read.LabelOptions{Prefixes: []string{"\x00"}}
	c, err := p.table.Choose(&rest)
	for i := range p.columns {
		if err != nil || slices.Contains(c.Features, i) && !c.Category[i] || o.CSV.Images != "" && !c.Used[i] {
			free = append(free, i)
		}
	}
	return free
}

// numbers lists the columns that may be read as numbers: no flag takes them for something else.
func (p *profile) numbers(o *read.OpenOptions) []int {
	columns := p.free(o)
	if c, err := p.table.Choose(o); err == nil {
		columns = slices.Sorted(slices.Values(c.Numbers))
	}
	return slices.DeleteFunc(slices.Compact(columns), func(i int) bool { return i >= len(p.columns) })
}

// prefixed is the way to take the columns that begin with a prefix for labels; named: others begin with another one.
func (p *profile) prefixed(columns []int, prefix string, named bool) labelWay {
	if len(columns) == 1 {
		if flags, what := p.single(columns[0]); flags != nil {
			return labelWay{dataset.Way{What: what, Flags: flags}, columns}
		}
	}
	w := labelWay{dataset.Way{What: "the labels are " + p.table.ColumnNames(columns...)}, columns}
	if named {
		w.Flags = append(w.Flags, dataset.Flag{Name: "--label-prefix", Value: prefix})
	}
	whole, negative := true, false
	for _, i := range columns {
		c := &p.columns[i]
		whole, negative = whole && c.whole, negative || c.Least != nil && *c.Least < 0
	}
	switch last := columns[len(columns)-1] + 1; {
	case negative, last-columns[0] == len(columns) && p.isOne(columns[0], last):
	case whole:
		w.What, w.Flags = w.What+", as counts", append(w.Flags, dataset.Flag{Name: "--labels", Value: string(dataset.Counts)})
	}
	return w
}

// targetWays returns w, and the way to take its columns for targets in bounds if they seem to be real numbers that are
// no probabilities: fractions, at least one negative or above 1, with sums that differ. Negative numbers can only
// be targets. kind is what flags say of the labels.
func (p *profile) targetWays(w labelWay, kind dataset.LabelKind) []labelWay {
	if kind != dataset.Distributions || p.sameSum(w.columns) {
		return []labelWay{w}
	}
	fractions, negative, above := false, false, false
	for _, i := range w.columns {
		c := &p.columns[i]
		if !c.numeric() || c.Least == nil {
			return []labelWay{w}
		}
		fractions, above = fractions || !c.whole, above || *c.Most > 1+importer.DefaultTolerance
		negative = negative || *c.Least < -importer.DefaultTolerance
	}
	for _, f := range w.Flags {
		if f.Name == "--labels" {
			return []labelWay{w}
		}
	}
	targets := w
	flag := dataset.Flag{Name: "--labels", Value: string(dataset.Bounded)}
	targets.Way = w.With("as targets that are real numbers", flag)
	switch {
	case fractions && negative:
		return []labelWay{targets}
	case fractions && above:
		return []labelWay{w, targets}
	}
	return []labelWay{w}
}

// singleWays lists the columns that may be the only label: those with a usual name, or, if others are wanted, the last
// column and those with a few texts.
func (p *profile) singleWays(o *read.OpenOptions, free []int, others bool) (ways []labelWay) {
	l := o.Labels
	add := func(i int) {
		flags, what := p.single(i)
		if l.Single() {
			flags, what = []dataset.Flag{dataset.ListFlag("--label-columns", p.table.ColumnFlag(i))}, fmt.Sprintf("the %s is %s",
				l.Kind, p.table.ColumnNames(i))
		}
		if flags != nil {
			ways = append(ways, labelWay{dataset.Way{What: what, Flags: flags}, []int{i}})
		}
	}
	for _, i := range free {
		class, age := read.LabelOptions{Kind: dataset.Class}, read.LabelOptions{Kind: dataset.Age}
		if name := p.table.ColumnName(i); l.IsTarget(name) || !l.Single() &&
			(class.IsTarget(name) || others && age.IsTarget(name)) {
			add(i)
		}
	}
	if len(ways) > 0 || !others || len(free) == 0 {
		return ways
	}
	for at := len(free) - 1; at >= 0; at-- {
		if i := free[at]; at == len(free)-1 && p.columns[i].Role != RoleID || p.columns[i].Role == RoleCategory {
			add(i)
		}
	}
	return ways
}

// single returns the flags that take a column for the only label: a class if it has a few texts or whole numbers, else
// a number on a scale; nil: it is neither.
func (p *profile) single(i int) (flags []dataset.Flag, what string) {
	c, name := &p.columns[i], p.table.ColumnNames(i)
	column := dataset.ListFlag("--label-columns", p.table.ColumnFlag(i))
	age := read.LabelOptions{Kind: dataset.Age}
	byName := strings.EqualFold(c.Name, string(age.Kind))
	switch {
	case c.Distinct < 2 || c.Role == RoleDate:
		return nil, ""
	case c.numeric() && c.Least == nil || c.numeric() && !c.whole && *c.Least >= 0 && *c.Most <= 1: // degrees
		return nil, ""
	case c.numeric() && (byName || !c.whole || c.Distinct > defaultWide):
		low, high := math.Floor(*c.Least), -math.Floor(-*c.Most)
		if !(high > low) || high-low > maxSpan {
			return nil, ""
		}
		return []dataset.Flag{{Name: "--labels", Value: string(dataset.Age)}, {Name: "--sigma", Value: "2"},
				{Name: "--range", Value: fmt.Sprintf("%.0f:%.0f", low, high)}, column},
			fmt.Sprintf("%s is a numeric label, with a standard deviation of 2", name)
	case c.Distinct >= c.Values && c.Values > 2 || c.Distinct >= maxDistinct:
		return nil, ""
	}
	return []dataset.Flag{{Name: "--labels", Value: string(dataset.Class)}, column}, fmt.Sprintf("%s is the class", name)
}

// clean returns the flags that read words as categories and take columns out of the features which are none: names of
// rows, groups, and what is no number. It sets the roles and hints of the columns.
func (p *profile) clean(o *read.OpenOptions, labels []int) (what string, flags []dataset.Flag) {
	free, drop, categories := p.free(o), slices.Clone(o.Drop), slices.Clone(o.CSV.Categories)
	rowNames, group := o.CSV.RowNames != "" || !slices.Contains(free, 0) && p.table.ColumnName(0) == "",
		o.Beside.Groups != ""
	var parts, dropped []string
	var words []int
	class, age := read.LabelOptions{Kind: dataset.Class}, read.LabelOptions{Kind: dataset.Age}
	for _, i := range free {
		c := &p.columns[i]
		if slices.Contains(labels, i) {
			continue
		}
		name := p.table.ColumnFlag(i)
		target := class.IsTarget(p.table.ColumnName(i)) || age.IsTarget(p.table.ColumnName(i)) // of another reading
		switch {
		case c.Role == RoleFeature:
			continue
		case c.Role == RoleID && !c.numeric() && !rowNames && c.Missing == 0:
			rowNames = true
			flags = append(flags, dataset.Flag{Name: "--row-names", Value: name})
			parts = append(parts, p.table.ColumnNames(i)+" has the names of the samples")
			continue
		case c.Role == RoleGroup && !group && c.Missing == 0:
			group = true
			flags = append(flags, dataset.Flag{Name: "--groups", Value: name})
			parts = append(parts, "samples are grouped by "+p.table.ColumnNames(i))
			continue
		case c.Role == RoleCategory && !target:
			categories, words = append(categories, name), append(words, i)
			continue
		}
		drop, dropped = append(drop, name), append(dropped, fmt.Sprintf("%s (%s)", p.table.ColumnNames(i), c.Role))
	}
	if len(words) > 0 {
		flags = append(flags, dataset.ListFlag("--categories", categories...))
		parts = append(parts, "one feature for each value of "+p.table.ColumnNames(words...))
	}
	if len(dropped) > 0 {
		flags = append(flags, dataset.ListFlag("--drop", drop...))
		parts = append(parts, "left out: "+strings.Join(dropped, ", "))
	}
	return strings.Join(parts, "; "), flags
}

// try reads the file in a way. If the error is about missing values, it leaves out their samples or, if that leaves
// less than half of all, replaces them by 0. If it is about missing labels, the reading that keeps them follows.
func (f *readings) try(w dataset.Way, p *profile) error {
	if len(f.found) >= maxPlanned || slices.ContainsFunc(f.found, func(r TriedReading) bool {
		return FlagText(r.Flags) == FlagText(w.Flags)
	}) {
		return nil
	}
	s, way, err := f.readSums(w)
	if advises(err, "--labels incomplete") {
		partial := way.With("missing labels are kept as missing", dataset.Flag{Name: "--labels",
			Value: string(dataset.Incomplete)})
		if t, partial, failed := f.readSums(partial); failed == nil {
			defer f.add(partial, t, nil)
		}
	}
	if base := way; advises(err, "--missing") {
		drop, zero := dataset.Flag{Name: "--missing", Value: "drop"}, dataset.Flag{Name: "--missing", Value: "0"}
		s, way, err = f.readSums(base.With("samples with missing values are left out", drop))
		if err != nil || 2*s.Rows < p.rows {
			t, filled, failed := f.readSums(base.With("missing features are replaced by 0", zero))
			if failed == nil {
				s, way, err = t, filled, nil
			}
		}
	}
	next := func(w dataset.Way) error { return f.try(w, p) }
	if done, failed := f.branch(way, err, next); done {
		return failed
	}
	f.add(way, s, nil)
	return nil
}

// readSums reads the file in a way or, if the error is about sums of labels, with labels divided by their sum as well.
func (f *readings) readSums(w dataset.Way) (*importer.Stats, dataset.Way, error) {
	s, err := f.read(w)
	if advises(err, "--normalize") {
		w = w.With("labels are divided by their sum", dataset.Flag{Name: "--normalize"})
		s, err = f.read(w)
	}
	return s, w, err
}

// advises reports whether err names a flag as its remedy.
func advises(err error, flag string) bool {
	return err != nil && !errors.Is(err, dataset.ErrAmbiguous) && strings.Contains(err.Error(), flag+" ")
}

// read reads the file as an import would.
func (f *readings) read(w dataset.Way) (*importer.Stats, error) {
	o, io, err := Apply(w, f.o, f.io)
	if err != nil {
		return nil, err
	}
	src, err := read.Open(f.path, o)
	if err != nil {
		return nil, err
	}
	if src.Info().Labels == 1 && src.Info().LabelType.Bounds == nil {
		return nil, fmt.Errorf("%s: a single label would be 1 in every sample: add another label", src.Info().File)
	}
	io.Warn, io.Note = nil, nil
	return importer.Measure(src, &io)
}

// setLabels sets the roles of the labels of the first reading; kind is what flags say of them.
func (p *profile) setLabels(labels []int, kind dataset.LabelKind, first []TriedReading) {
	role := RoleLabel
	switch kind {
	case dataset.Class:
		role = RoleClass
	case dataset.Age:
		role = RoleNumber
	}
	for _, r := range first {
		for _, f := range r.Flags {
			switch {
			case f.Name == "--labels" && f.Value == string(dataset.Class):
				role = RoleClass
			case f.Name == "--labels" && f.Value == string(dataset.Age):
				role = RoleNumber
			}
		}
	}
	for _, i := range labels {
		if i < len(p.columns) {
			p.columns[i].Role = role
		}
	}
}
