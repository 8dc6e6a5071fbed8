package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/experiment/figure"
	"github.com/coppice-ldl/coppice/experiment/result"
)

// leastSweep is how many values of a setting make a sweep; beyond wideSweep times the least value above
// 0 the axis of the greatest is logarithmic.
const (
	leastSweep = 3
	wideSweep  = 20
)

// sweep is methods of one algorithm that differ in the number of one setting alone.
type sweep struct {
	algorithm, setting string
	others             map[string]string // the preset and the settings that are the same in all methods
	points             []point
}

// point is a method of a sweep: the number of the setting.
type point struct {
	method int
	value  float64
}

// sweepsOf finds the sweeps among methods: by algorithm, preset and the other settings, in the order of their first
// methods. A sweep has at least leastSweep different values. A value that stands twice, in methods that are not the
// same, is no sweep.
func sweepsOf(methods []result.Method) (all []sweep) {
	at := make(map[string]int)
	for i := range methods {
		for _, setting := range slices.Sorted(maps.Keys(methods[i].Settings)) {
			value, ok := numberOf(methods[i].Settings[setting])
			if !ok {
				continue
			}
			others := maps.Clone(methods[i].Settings)
			delete(others, setting)
			if preset := methods[i].Preset; preset != "" {
				others["preset"] = preset
			}
			key := strings.Join([]string{methods[i].Algorithm, setting, settingsText(others)}, "\x00")
			if _, ok := at[key]; !ok {
				at[key] = len(all)
				all = append(all, sweep{algorithm: methods[i].Algorithm, setting: setting, others: others})
			}
			s := &all[at[key]]
			s.points = append(s.points, point{i, value})
		}
	}
	var valid []sweep
	for _, s := range all {
		slices.SortStableFunc(s.points, func(a, b point) int { return cmp.Compare(a.value, b.value) })
		s.points = slices.CompactFunc(s.points, func(a, b point) bool {
			return a.value == b.value && methods[a.method].Same+methods[b.method].Same != ""
		})
		different := slices.CompactFunc(slices.Clone(s.points), func(a, b point) bool { return a.value == b.value })
		if len(s.points) >= leastSweep && len(different) == len(s.points) {
			valid = append(valid, s)
		}
	}
	return valid
}

// settingsText lists the preset and then the settings by name.
func settingsText(settings map[string]string) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if name != "preset" {
			list = append(list, name+"="+settings[name])
		}
	}
	if preset, ok := settings["preset"]; ok {
		list = append([]string{"preset=" + preset}, list...)
	}
	return strings.Join(list, " ")
}

// familiesOf puts sweeps into families, in the order of the sweeps.
func familiesOf(all []sweep) (list []family) {
	for _, s := range all {
		at := slices.IndexFunc(list, func(f family) bool { return f.takes(&s) })
		if at < 0 {
			at = len(list)
			list = append(list, nil)
		}
		list[at] = append(list[at], s)
	}
	return list
}

// family is sweeps by one setting that stand in one figure: they differ in one other setting with numbers at most, and
// in settings without. They are of one algorithm, unless the setting is trainFraction.
type family []sweep

// takes reports whether a sweep goes with the sweeps of the family.
func (f family) takes(s *sweep) bool {
	if len(f) >= mostLines || f[0].setting != s.setting || f[0].algorithm != s.algorithm && s.setting != trainFraction {
		return false
	}
	numbers := 0
	all := append(slices.Clone(f), *s)
	for _, name := range differing(all) {
		if slices.ContainsFunc(all, func(s sweep) bool { _, ok := numberOf(s.others[name]); return ok }) {
			numbers++
		}
	}
	return numbers <= 1
}

// lineName names a sweep of the family by the settings that differ there.
func (f family) lineName(s *sweep) string {
	text := settingsText(only(s.others, differing(f)))
	switch {
	case len(f) == 1:
		return s.algorithm
	case f.several():
		return strings.TrimSpace(s.algorithm + " " + text)
	case text != "":
		return text
	}
	return "default"
}

// several reports whether the sweeps are of several algorithms.
func (f family) several() bool {
	return slices.ContainsFunc(f, func(s sweep) bool { return s.algorithm != f[0].algorithm })
}

// title names the algorithm and the setting. If other families have the same algorithm and setting, it also has the
// settings that differ.
func (f family) title(among []family) string {
	if f.several() {
		return "methods by " + f[0].setting
	}
	text := f[0].algorithm + " by " + f[0].setting
	var alike []sweep
	for _, other := range among {
		if other[0].algorithm == f[0].algorithm && other[0].setting == f[0].setting {
			alike = append(alike, other...)
		}
	}
	own := differing(f)
	names := slices.DeleteFunc(differing(alike), func(name string) bool { return slices.Contains(own, name) })
	if apart := settingsText(only(f[0].others, names)); apart != "" {
		text += ", " + apart
	}
	return text
}

// same are the settings that all sweeps of the family have, as text.
func (f family) same() string {
	own, names := differing(f), slices.Collect(maps.Keys(f[0].others))
	text := settingsText(only(f[0].others, slices.DeleteFunc(names, func(name string) bool {
		return slices.Contains(own, name)
	})))
	if text == "" {
		return ""
	}
	return " All runs have " + strings.ReplaceAll(text, " ", ", ") + "."
}

// axis is the axis of the setting. It is logarithmic if the values of a sweep are far apart. The value 0 has a place of
// its own.
func (f family) axis() figure.Axis {
	a := figure.Axis{Name: f[0].setting}
	for _, s := range f {
		if s.points[0].value < 0 {
			return figure.Axis{Name: a.Name}
		}
		first := slices.IndexFunc(s.points, func(p point) bool { return p.value > 0 })
		a.Zero = a.Zero || first > 0
		a.Log = a.Log || first >= 0 && s.points[len(s.points)-1].value > wideSweep*s.points[first].value
	}
	return a
}

// figure draws a family by a measure on a dataset; false: no sweep has enough methods with all folds.
func (f family) figure(of *Summary, among []family, m, d int) (Picture, bool) {
	measure, _ := measures.Find(of.Measures[m])
	r := of.at(d, m)
	lines := figure.Lines{
		Title: r.Dataset + ": " + f.title(among),
		X:     f.axis(), Y: figure.Axis{Name: measure.Title, Unit: unitOf[of.Measures[m]]},
	}
	var papers []figure.Series
	var x []float64
	for i := range f {
		line := f[i].line(r)
		if len(line.X) < leastSweep {
			continue
		}
		line.Name = f.lineName(&f[i])
		papers = append(papers, f[i].papers(of, r, lines.X, len(lines.Series), line.Name)...)
		lines.Series, x = append(lines.Series, line), append(x, line.X...)
	}
	if len(lines.Series) == 0 {
		return Picture{}, false
	}
	// With fewer samples the mean is another, so there is no line of a fraction of them.
	if mean := float64(r.MeanPredictor.Mean); r.MeanPredictor.Folds > 0 && f[0].setting != trainFraction {
		line := figure.Series{Name: "mean baseline", X: []float64{slices.Min(x), slices.Max(x)}, Y: []float64{mean, mean}}
		lines.Series = append(lines.Series, line)
	}
	bars := ""
	if slices.ContainsFunc(lines.Series, func(s figure.Series) bool { return s.Deviation != nil }) {
		bars = "; bars are standard deviations over folds"
	}
	published := ""
	if len(papers) > 0 {
		lines.Series, published = append(lines.Series, papers[:min(len(papers), mostPapers)]...),
			" Diamonds are values printed in papers."
	}
	return Picture{
		Name: r.Dataset + "-" + f.title(among) + "-" + of.Measures[m],
		Caption: fmt.Sprintf("%s on %s by %s%s.%s%s%s", measure.Title, r.Dataset, f[0].setting, bars, published, f.same(),
			of.weights(r.Dataset)),
		Draw: lines.Figure,
	}, true
}

// differing lists the settings, by name, that are not the same in all sweeps.
func differing(all []sweep) (names []string) {
	known := make(map[string]string)
	for i := range all {
		maps.Copy(known, all[i].others)
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if slices.ContainsFunc(all, func(s sweep) bool { v, ok := s.others[name]; return !ok || v != known[name] }) {
			names = append(names, name)
		}
	}
	return names
}

// only keeps settings of the given names.
func only(settings map[string]string, names []string) map[string]string {
	some := make(map[string]string)
	for _, name := range names {
		if v, ok := settings[name]; ok {
			some[name] = v
		}
	}
	return some
}

// sweepFigures draw the sweeps: one figure for each family, measure and dataset, because scales differ.
func (s *Summary) sweepFigures() (all []Picture) {
	families := familiesOf(sweepsOf(s.Methods))
	for _, f := range families {
		for m := range s.Measures {
			if m > 0 && !s.options.AllTests {
				break
			}
			for d := range s.Datasets {
				if own, ok := f.figure(s, families, m, d); ok {
					all = append(all, own)
				}
			}
		}
	}
	return all
}

// line is what the methods of a sweep that have all folds measure.
func (s *sweep) line(r *Result) (line figure.Series) {
	for _, p := range s.points {
		l := &r.Lines[p.method]
		if !l.Complete() || l.Mean.none() {
			continue
		}
		line.X, line.Y = append(line.X, p.value), append(line.Y, float64(l.Mean))
		if !l.Deviation.none() { // of one fold there is none
			line.Deviation = append(line.Deviation, float64(l.Deviation))
		}
	}
	return line
}

// mostPapers bounds the series of published figures in one figure of a sweep.
const mostPapers = 12

// papers are the published figures of the methods of a sweep: a series of marks for each source, with the colour of the
// sweep's line.
func (s *sweep) papers(of *Summary, r *Result, axis figure.Axis, line int, name string) (list []figure.Series) {
	for i := range of.Published {
		p := &of.Published[i]
		if p.Dataset != r.Dataset || p.Measure != r.Measure {
			continue
		}
		method := slices.IndexFunc(s.points, func(own point) bool { return of.Methods[own.method].Name == p.Method })
		if method < 0 || !axis.Has(s.points[method].value) {
			continue
		}
		title := "published: " + p.Source + ", " + name
		if p.Source == "" {
			title = "published: " + name
		}
		at := slices.IndexFunc(list, func(own figure.Series) bool { return own.Name == title })
		if at < 0 {
			at, list = len(list), append(list, figure.Series{Name: title, Marks: true, Line: line})
		}
		own := &list[at]
		own.X, own.Y, own.Deviation = append(own.X, s.points[method].value), append(own.Y, p.Value),
			append(own.Deviation, p.Deviation)
	}
	for i := range list {
		if !slices.ContainsFunc(list[i].Deviation, func(v float64) bool { return v > 0 }) {
			list[i].Deviation = nil // no source prints one
		}
	}
	return list
}
