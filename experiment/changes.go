package experiment

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/internal/yamltree"
	"github.com/coppice-ldl/coppice/protocol"
)

// Kinship says how a spec goes with the results that a layout describes.
type Kinship int

const (
	SameSpec   Kinship = iota // the results are of this spec, or of another with the same meaning
	EditedSpec                // they are of an earlier text of this spec
	OtherSpec                 // they are of another spec of the same name
)

// SpecOf returns the spec that the results of a layout are of.
func SpecOf(l *Layout) (*Spec, error) {
	name := ""
	if l.Table.Spec != nil {
		name = l.Table.Spec.File
	}
	return Parse(context.Background(), name, []byte(l.Text)) // Parse accepted the text before, so the call is short
}

// Compare says how the spec goes with the results of a layout, and lists what differs. A spec in a file of
// another name is another one, as is a spec that has no dataset or no algorithm of the layout.
func (s *Spec) Compare(of *Layout) (Kinship, []string) {
	kept, own := of.Table.Spec, s.identity()
	if kept == nil || own == nil || kept.Digest == own.Digest {
		return SameSpec, nil
	}
	before, err := SpecOf(of)
	if err != nil {
		return EditedSpec, []string{"the spec that the results keep: this version of Coppice cannot read it"}
	}
	changes := s.changesFrom(before)
	switch {
	case len(changes) == 0:
		return SameSpec, nil
	case kept.File != own.File,
		!common(s.Datasets, before.Datasets, func(d Dataset) string { return d.Name }),
		!common(s.Methods, before.Methods, func(r Method) string { return r.trained }):
		return OtherSpec, changes
	}
	return EditedSpec, changes
}

// common reports whether two lists have an item of one name.
func common[T any](a, b []T, name func(T) string) bool {
	names := make(map[string]bool)
	for _, x := range a {
		names[name(x)] = true
	}
	return slices.ContainsFunc(b, func(x T) bool { return names[name(x)] })
}

// changesFrom lists what a spec says otherwise than an earlier one: names of datasets and methods, and keys.
func (s *Spec) changesFrom(before *Spec) (list []string) {
	list = append(list, changed("dataset", s.Datasets, before.Datasets, func(d Dataset) string {
		return d.Name
	}, func(d Dataset) any {
		d.At, d.Folds.At = yamltree.Place{}, yamltree.Place{}
		return d
	})...)
	list = append(list, changed("method", s.Methods, before.Methods, func(r Method) string {
		return r.Name
	}, func(r Method) any {
		r.At, r.Budget = yamltree.Place{}, nil // a budget decides which runs are run, and none of their results
		return r
	})...)
	for _, key := range []struct {
		name string
		same bool
	}{
		{"seed", s.Seed == before.Seed},
		{"measures", slices.Equal(s.Measures, before.Measures)},
		{"clip", s.Clip == before.Clip},
		{"missing", s.SkipMissing == before.SkipMissing},
		{"published", slices.EqualFunc(s.Published, before.Published, func(a, b Published) bool {
			return a.Published == b.Published
		})},
		{"record", s.Record.Curve == before.Record.Curve && s.Record.Predictions == before.Record.Predictions},
	} {
		if !key.same {
			list = append(list, "the key "+key.name)
		}
	}
	return list
}

// changed says which items are new, are missing or differ.
func changed[T any](what string, now, before []T, name func(T) string, plain func(T) any) (list []string) {
	old := make(map[string]T)
	for _, x := range before {
		old[name(x)] = x
	}
	var added, removed, other []string
	for _, x := range now {
		was, ok := old[name(x)]
		switch {
		case !ok:
			added = append(added, name(x))
		case !reflect.DeepEqual(plain(x), plain(was)):
			other = append(other, name(x))
		}
		delete(old, name(x))
	}
	for _, x := range before {
		if _, left := old[name(x)]; left {
			removed = append(removed, name(x))
		}
	}
	for _, c := range []struct {
		how   string
		names []string
	}{{"that have no results", added}, {"that are only in the results", removed}, {"with other settings", other}} {
		if len(c.names) > 0 {
			list = append(list, fmt.Sprintf("%ss %s: %s", what, c.how, SomeOf(c.names, ", ")))
		}
	}
	return list
}

// Known says which runs a place has, by their keys.
type Known struct {
	Place   string          // a folder, or an experiment on a cluster
	Kept    map[string]bool // true if the run has a result, or will have one, and is not repeated
	Again   map[string]bool // true if the run has ended and is repeated
	Lacking map[string]bool // true if the run is kept and has ended without the data that the spec records
	// Names has the keys of runs that have ended, by name. Numerics is the arithmetic version that computed them; 0: not
	// known.
	Names    map[result.Name]string
	Numerics int
}

// NewKnown returns a place without runs.
func NewKnown(place string) *Known {
	return &Known{Place: place, Kept: make(map[string]bool), Again: make(map[string]bool), Lacking: make(map[string]bool)}
}

// Plan says what a spec with the layout adds to a place, without its new runs. before is the layout of the last run or
// submission, or nil.
func (l *Layout) Plan(s *Spec, before *Layout, known *Known) *protocol.ExperimentPlan {
	p := &protocol.ExperimentPlan{Name: s.Name, Jobs: []protocol.JobInfo{}}
	keeps := l.Has()
	for key := range keeps {
		if known.Kept[key] {
			p.Kept++
		}
	}
	type pair struct{ dataset, method int }
	refused := make(map[pair]bool)
	lacking := 0
	var again []string // runs that have ended under another key, because their data, settings, folds or seed are others
	for i := range l.Table.Runs {
		c, key, name := &l.Table.Runs[i], l.Keys[i], l.Table.NameOf(&l.Table.Runs[i])
		if at := (pair{c.Dataset, c.Method}); c.State == result.Failed && !refused[at] {
			refused[at] = true
			p.Refused = append(p.Refused, fmt.Sprintf("%s, %s: %s", name.Dataset, name.Method, c.Error))
		}
		if key != "" && known.Lacking[key] {
			lacking++
		}
		if was, ok := known.Names[name]; ok && key != "" && was != key && !known.Kept[key] {
			again = append(again, name.String())
		}
	}
	if before != nil {
		var kinship Kinship
		if kinship, p.Changes = s.Compare(before); kinship == OtherSpec {
			p.Notes = append(p.Notes, fmt.Sprintf("%s had results of another spec with the same name, %s. Reports now use "+
				"this spec. The results of the other spec are kept, and used if it is run again", known.Place,
				before.Table.Spec.File))
		}
		p.Orphaned, p.Orphans = before.orphans(func(key string) bool {
			return !keeps[key] && (known.Kept[key] || known.Again[key])
		})
	}
	p.Notes = append(p.Notes, l.Table.Notes()...)
	if lacking > 0 {
		p.Notes = append(p.Notes, units.Plural(lacking, "run")+
			" ended without the data that are recorded now; --record-again repeats them")
	}
	if len(again) > 0 {
		why := "their data, settings, folds or seed have changed"
		if known.Numerics != 0 && known.Numerics != round.Numerics {
			why = fmt.Sprintf("they were computed by arithmetic version %d, and this program has arithmetic version %d",
				known.Numerics, round.Numerics)
		}
		p.Notes = append(p.Notes, fmt.Sprintf("%s repeated, because %s: %s", runsAre(len(again)), why, SomeOf(again, "; ")))
	}
	return p
}

// maxOrphans bounds the lines that list orphans.
const maxOrphans = 1000

// orphans counts the runs that a new layout does not have although they have results, or will have them, and lists them
// by dataset and method.
func (l *Layout) orphans(is func(key string) bool) (count int, list []string) {
	counts, order := make(map[result.Name]int), []result.Name(nil) // by dataset and method
	for i, key := range l.Keys {
		if key == "" || !is(key) {
			continue
		}
		count++
		of := l.Table.NameOf(&l.Table.Runs[i])
		of.Repeat, of.Fold = 0, 0
		if counts[of]++; counts[of] == 1 {
			order = append(order, of)
		}
	}
	for i, of := range order {
		if i == maxOrphans {
			list = append(list, fmt.Sprintf("%s more methods", units.Count(len(order)-i)))
			break
		}
		list = append(list, fmt.Sprintf("%s, %s: %s", of.Dataset, of.Method, units.Plural(counts[of], "run")))
	}
	return count, list
}

// UnmeasuredNotes names the methods that have none of the measures of a table, such as methods that predict numbers if
// all measures are of distributions.
func UnmeasuredNotes(t *result.Table) (list []string) {
	ended, measured := make([]bool, len(t.Methods)), make([]bool, len(t.Methods))
	for _, c := range t.Runs {
		ended[c.Method] = ended[c.Method] || len(c.Values) > 0
		measured[c.Method] = measured[c.Method] || slices.ContainsFunc(c.Values, func(v float64) bool {
			return !math.IsNaN(v)
		})
	}
	for i := range t.Methods {
		if ended[i] && !measured[i] {
			list = append(list, fmt.Sprintf("the method %s has none of the measures %s; the key measures of the spec names "+
				"others, such as mae for predicted numbers, and mae_observed for labels with missing degrees",
				t.Methods[i].Name, strings.Join(t.Measures, ", ")))
		}
	}
	return list
}

// LeftOutNote names the runs that have ended and are not in a report.
func LeftOutNote(list []result.Name) []string {
	if len(list) == 0 {
		return nil
	}
	var names []string
	for _, name := range list {
		names = append(names, name.String())
	}
	return []string{fmt.Sprintf("%s left out, because the last submission of the experiment does not contain them: %s",
		runsAre(len(list)), SomeOf(names, "; "))}
}

// runsAre counts runs at the beginning of a sentence.
func runsAre(n int) string {
	if n == 1 {
		return "1 run is"
	}
	return units.Count(n) + " runs are"
}

// maxNamed bounds the texts that a note lists.
const maxNamed = 10

// SomeOf joins the first texts of a list, and counts the others.
func SomeOf(texts []string, separator string) string {
	if n := len(texts) - maxNamed; n > 0 {
		texts = append(texts[:maxNamed:maxNamed], fmt.Sprintf("and %s more", units.Count(n)))
	}
	return strings.Join(texts, separator)
}
