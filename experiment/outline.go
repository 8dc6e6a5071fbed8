package experiment

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/job/spec"
)

// Outline is an experiment in short form: the table without runs, and the parts of the key of each run. A cluster keeps
// the outline of the last submission in a blob. A report then needs neither the spec nor the data.
type Outline struct {
	Table *result.Table `json:"table"` // without runs
	Sets  []Set         `json:"sets"`  // of the table's datasets
	// Skipped lists the datasets without a file.
	Skipped []string `json:"skipped,omitempty"`
	Clip    string   `json:"clip,omitempty"` // as in a Layout
	Record  Recorded `json:"record,omitzero"`
	Text    string   `json:"spec_text,omitempty"` // as in a Layout
}

// Set says of a dataset which runs each method has.
type Set struct {
	Repeats int `json:"repeats"`
	// Refused says, by the number of a method, why it does not go with the dataset.
	Refused map[int]string `json:"refused,omitempty"`
	// Job is the job of all runs; nil: no method goes with the dataset. Methods lists, for each method of
	// Job.Cells, its number in the table.
	Job     *round.Job `json:"job,omitempty"`
	Methods []int      `json:"rows,omitempty"`
	// Tested has the SHA-256 of the samples that each split of Job tests, if the splits overlap.
	Tested []string `json:"tested,omitempty"`
	// Only lists the folds of each repeat that are run; empty: all.
	Only []int `json:"only,omitempty"`
}

// NewOutline puts the plans of a spec together; skipped are the names of datasets without.
func NewOutline(s *Spec, plans []*Plan, skipped []string) *Outline {
	o := &Outline{
		Table:   &result.Table{Name: s.Name, Measures: s.Measures, Clip: s.Clip, Runs: []result.Run{}, Spec: s.identity()},
		Skipped: skipped, Clip: s.Clip, Record: s.Record, Text: s.Source,
	}
	for _, r := range s.Methods {
		method := result.Method{Name: r.Name, Algorithm: r.Algorithm, Candidates: r.Candidates,
			Preset: r.Settings[presetKey]}
		if r.Budget != nil {
			method.Budget = r.Budget.String()
		}
		settings := maps.Clone(r.Settings)
		if e := r.Enhance; e != nil {
			settings["enhance"], settings["normalise"] = e.Method, e.Normalise
			settings["binarise"] = strconv.FormatFloat(e.Binarise, 'g', -1, 64)
		}
		if delete(settings, presetKey); len(settings) > 0 {
			method.Settings = settings
		}
		o.Table.Methods = append(o.Table.Methods, method)
	}
	for _, p := range plans {
		m := p.Manifest
		var classes []string // nil: the labels are not classes, have no names, or are too many for a confusion matrix
		if m.LabelType.Classes && len(m.LabelNames) <= result.MaxConfusion {
			classes = m.LabelNames
		}
		enhanced := ""
		if p.Dataset.Enhance != nil {
			enhanced = p.Dataset.Enhance.String()
		}
		o.Table.Datasets = append(o.Table.Datasets, result.Dataset{
			Name: p.Dataset.Name, Rows: m.Divided().Rows, Features: m.Features, Labels: m.Labels, Folds: p.Folds,
			Digest: m.Digest(),
			Mask: p.Dataset.Mask.String(), WeightedMeasures: p.Dataset.WeightedMeasures,
			Divisions: p.Divisions, Axis: s.Record.axisOf(m), Classes: classes,
			Enhance: enhanced, Unvalidated: p.Unvalidated,
		})
		if m.Validation != nil {
			o.Table.Datasets[len(o.Table.Datasets)-1].Validation = m.Validation.Rows
		}
		o.Sets = append(o.Sets, Set{Repeats: p.Repeats, Refused: p.Refused, Job: p.Job, Methods: p.Methods, Tested: p.Tested,
			Only: p.OnlyFolds})
		for _, f := range s.Published {
			if f.Dataset == p.Dataset.Name {
				o.Table.Published = append(o.Table.Published, f.Published)
			}
		}
	}
	return o
}

// DecodeOutline reads an outline that was written as JSON.
func DecodeOutline(b []byte) (*Outline, error) {
	o := new(Outline)
	if err := json.Unmarshal(b, o); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFolder, err)
	}
	if o.Table == nil {
		return nil, fmt.Errorf("%w: the outline of the experiment has no table", ErrFolder)
	}
	return o, nil
}

// Layout returns the layout of the experiment.
func (o *Outline) Layout() (*Layout, error) {
	runs, err := o.Runs()
	if err != nil {
		return nil, err
	}
	t := *o.Table
	t.Runs = make([]result.Run, 0, runs)
	l := &Layout{Table: &t, Keys: make([]string, 0, runs), Skipped: o.Skipped, Clip: o.Clip, Record: o.Record,
		Numerics: round.Numerics, Text: o.Text}
	for d := range o.Sets {
		if err := l.addRuns(d, &o.Sets[d]); err != nil {
			return nil, fmt.Errorf("dataset %s: %w", t.Datasets[d].Name, err)
		}
	}
	all := make(completed)
	o.markSame(l, all)
	t.Hyperparameters = o.hyperparameters(all)
	return l, l.Table.Validate()
}

// Runs returns the greatest number of runs that the table may have, or an error if the outline has too many.
func (o *Outline) Runs() (runs int, err error) {
	t := o.Table
	if len(o.Sets) != len(t.Datasets) {
		return 0, fmt.Errorf("%w: the outline lists %d datasets, but has lists of runs for %d datasets", ErrFolder,
			len(t.Datasets), len(o.Sets))
	}
	for d, set := range o.Sets {
		if runs += max(0, set.Repeats) * max(0, t.Datasets[d].Folds) * len(t.Methods); set.Repeats > round.MaxCells ||
			t.Datasets[d].Folds > round.MaxCells || runs > round.MaxCells {
			return 0, fmt.Errorf("%w: the experiment has more than %d runs", ErrFolder, round.MaxCells)
		}
	}
	return runs, nil
}

// addRuns adds the runs of dataset d: by method, by repeat, then by fold.
func (l *Layout) addRuns(d int, set *Set) error {
	methods, folds := len(l.Table.Methods), max(0, l.Table.Datasets[d].Folds)
	keys := make(map[[3]int]string) // by method, repeat and fold
	if set.Job == nil && len(set.Methods) > 0 {
		return fmt.Errorf("%w: the outline lists methods of a dataset, but no job of it", ErrFolder)
	}
	for _, method := range set.Methods {
		if method < 0 || method >= methods {
			return fmt.Errorf("%w: there is no method %d, counted from 0: the table has %d methods", ErrFolder, method, methods)
		}
	}
	if set.Job != nil {
		runs, err := RunsOf(set.Job, set.Tested, set.Methods)
		if err != nil {
			return err
		}
		for _, c := range runs {
			keys[[3]int{c.Method, c.Repeat, c.Fold}] = c.Key
		}
		l.Numerics = set.Job.Numerics
	}
	for method := range methods {
		why, refused := set.Refused[method]
		for repeat := range max(0, set.Repeats) {
			for fold := range folds {
				if len(set.Only) > 0 && !slices.Contains(set.Only, fold) {
					continue
				}
				c := result.Run{Dataset: d, Method: method, Repeat: repeat, Fold: fold, State: result.Missing}
				if refused {
					c.State, c.Error = result.Failed, why
				}
				l.Table.Runs = append(l.Table.Runs, c)
				l.Keys = append(l.Keys, keys[[3]int{method, repeat, fold}])
			}
		}
	}
	return nil
}

// markSame marks methods and datasets in the table of the outline's layout: a method if an earlier method has the same
// settings on every dataset, and a dataset if the runs of an earlier dataset have the same keys.
func (o *Outline) markSame(l *Layout, all completed) {
	t := l.Table
	methods, sets := make(sums, len(t.Methods)), make(sums, len(t.Datasets))
	for d := range o.Sets {
		for i, method := range o.Sets[d].Methods {
			r := &o.Sets[d].Job.Cells.Rows[i]
			preset := map[string]string{presetKey: t.Methods[method].Preset}
			methods.add(method, strconv.Itoa(d)+" "+settingsOf(r, all.values(r.Algorithm, r.Params, preset)))
		}
	}
	for i := range t.Runs {
		if c := &t.Runs[i]; l.Keys[i] != "" {
			sets.add(c.Dataset, fmt.Sprint(c.Method, c.Repeat, c.Fold, l.Keys[i]))
		}
	}
	t.Methods, t.Datasets = slices.Clone(t.Methods), slices.Clone(t.Datasets)
	for i, first := range methods.firsts() {
		if first < i {
			t.Methods[i].Same = t.Methods[first].Name
		}
	}
	for i, first := range sets.firsts() {
		if first < i {
			t.Datasets[i].Same = t.Datasets[first].Name
		}
	}
}

// sums are SHA-256 sums of the texts that were added of each method, or of each dataset; zero: none.
type sums [][sha256.Size]byte

func (s sums) add(i int, text string) { s[i] = sha256.Sum256(append(s[i][:], text...)) }

// firsts returns for each sum the number of the first one that is the same. It is the own number if nothing was added.
func (s sums) firsts() []int {
	at, list := make(map[[sha256.Size]byte]int), make([]int, len(s))
	for i, sum := range s {
		first, ok := at[sum]
		if !ok || sum == [sha256.Size]byte{} {
			at[sum], first = i, i
		}
		list[i] = first
	}
	return list
}

// settingsOf returns the same text for methods that train the same models on a dataset: those with the same algorithm
// and the same value of each setting. The preset does not count, because values has all values that a preset sets.
// Numbers that are settings of several kinds, such as k of aa-knn, are written in one way, also in members.
func settingsOf(r *round.CellRow, values map[string]string) string {
	own := round.CellRow{Algorithm: r.Algorithm, Params: r.Params, ValidationFraction: r.ValidationFraction,
		ValidationMin: r.ValidationMin, TrainFraction: r.TrainFraction, External: r.External,
		Enhance: r.Enhance}
	if values != nil {
		settings := make(map[string]any)
		for key, value := range values {
			settings[key] = value
		}
		delete(settings, presetKey)
		if text, ok := values["members"]; ok {
			settings["members"] = plainMembers(text)
		}
		own.Params = marshalled(plainNumbers(settings))
	}
	return string(marshalled(&own))
}

// plainMembers returns the algorithm and the settings of each member, without its preset; text has all settings of
// each.
func plainMembers(text string) any {
	items, err := param.ParseItems(text)
	if err != nil {
		return text
	}
	var members []any
	for _, item := range items {
		settings := make(map[string]any)
		for _, p := range item.Set {
			settings[p.Key] = p.Value
		}
		delete(settings, presetKey)
		members = append(members, map[string]any{item.Name: settings})
	}
	return members
}

// plainNumbers returns the value with texts that are numbers in one spelling.
func plainNumbers(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key := range v {
			v[key] = plainNumbers(v[key])
		}
	case []any:
		for i := range v {
			v[i] = plainNumbers(v[i])
		}
	case string:
		if number, err := parseNumber(v); err == nil {
			return number
		}
	}
	return value
}

// hyperparameters returns what result.Table.Hyperparameters has; nil: an algorithm is not known.
func (o *Outline) hyperparameters(all completed) (list []result.Hyperparameters) {
	byMethod := make([]map[int]*round.CellRow, len(o.Sets)) // by dataset
	for d := range o.Sets {
		set := &o.Sets[d]
		if set.Job == nil {
			continue
		}
		byMethod[d] = make(map[int]*round.CellRow)
		for i, method := range set.Methods {
			byMethod[d][method] = &set.Job.Cells.Rows[i]
		}
	}
	at := make(map[string]int) // in list, by algorithm
	for method := range o.Table.Methods {
		r, own := &o.Table.Methods[method], []result.MethodValues(nil)
		given := map[string]string{presetKey: r.Preset}
		maps.Copy(given, r.Settings)
		for d := range o.Sets {
			row := byMethod[d][method]
			if row == nil || len(row.External) > 0 {
				continue
			}
			values := all.values(r.Algorithm, row.Params, given)
			if values == nil {
				return nil
			}
			k := slices.IndexFunc(own, func(m result.MethodValues) bool { return maps.Equal(m.Values, values) })
			if k < 0 {
				k = len(own)
				own = append(own, result.MethodValues{Method: method, Values: values})
			}
			own[k].Datasets = append(own[k].Datasets, d)
		}
		a, err := spec.Choice(r.Algorithm)
		if len(own) == 0 || err != nil {
			continue
		}
		i, ok := at[r.Algorithm]
		if !ok {
			i = len(list)
			at[r.Algorithm] = i
			list = append(list, result.Hyperparameters{Algorithm: r.Algorithm, Names: settingNames(a.Params())})
		}
		list[i].Methods = append(list[i].Methods, own...)
	}
	return list
}

// completed has all hyperparameters of jobs, by algorithm, resolved settings and given settings. Many jobs have the
// same.
type completed map[[3]string]map[string]string

// values returns the value of each hyperparameter; nil: the algorithm is not known, or resolved is not a JSON object.
func (c completed) values(algorithm string, resolved []byte, given map[string]string) map[string]string {
	key := [3]string{algorithm, string(resolved), fmt.Sprint(given)}
	values, ok := c[key]
	if ok {
		return values
	}
	if a, err := spec.Choice(algorithm); err == nil {
		for _, p := range spec.Complete(a.Params(), resolved, given) {
			if values == nil {
				values = make(map[string]string)
			}
			values[p.Key] = p.Value
		}
	}
	c[key] = values
	return values
}

// NewLayout puts the plans of a spec together; skipped are the names of datasets without.
func NewLayout(s *Spec, plans []*Plan, skipped []string) (*Layout, error) {
	return NewOutline(s, plans, skipped).Layout()
}
