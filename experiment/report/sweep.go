package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/algorithms/measures"
	"github.com/coppice-ldl/coppice/experiment/figure"
	"github.com/coppice-ldl/coppice/experiment/result"
)

// mostFigures bounds the figures of settings in a page.
const mostFigures = 60

// leastSweep is how many values of a setting make a sweep; beyond wideSweep times the least value
// the axis of the greatest is logarithmic.
const (
	leastSweep = 3
	wideSweep  = 20
)

// sweep is rows of one algorithm that differ in the number of one setting alone.
type sweep struct {
	algorithm, setting string
	others             string // the settings that are the same, as text
	points             []point
}

// point is a row of a sweep: the number of the setting.
type point struct {
	row   int
	value float64
}

// sweepsOf finds the sweeps among rows: by algorithm, preset and the other settings, in the order
// of their first rows. A value that stands twice is no sweep.
func sweepsOf(rows []result.Row) (all []sweep) {
	at := make(map[string]int)
	for i := range rows {
		for _, setting := range slices.Sorted(maps.Keys(rows[i].Settings)) {
			value, err := strconv.ParseFloat(rows[i].Settings[setting], 64)
			if err != nil || math.IsNaN(value) || math.IsInf(value, 0) {
				continue
			}
			others := othersOf(&rows[i], setting)
			key := strings.Join([]string{rows[i].Algorithm, setting, others}, "\x00")
			if _, ok := at[key]; !ok {
				at[key] = len(all)
				all = append(all, sweep{algorithm: rows[i].Algorithm, setting: setting, others: others})
			}
			s := &all[at[key]]
			s.points = append(s.points, point{i, value})
		}
	}
	return slices.DeleteFunc(all, func(s sweep) bool { return !s.valid() })
}

// othersOf lists the preset and the settings of a row without one, in the order of their names.
func othersOf(r *result.Row, but string) string {
	var list []string
	if r.Preset != "" {
		list = append(list, "preset="+r.Preset)
	}
	for _, key := range slices.Sorted(maps.Keys(r.Settings)) {
		if key != but {
			list = append(list, key+"="+r.Settings[key])
		}
	}
	return strings.Join(list, " ")
}

// valid sorts the points, and reports whether there are enough of them, all different.
func (s *sweep) valid() bool {
	slices.SortStableFunc(s.points, func(a, b point) int { return cmp.Compare(a.value, b.value) })
	for i := 1; i < len(s.points); i++ {
		if s.points[i].value == s.points[i-1].value {
			return false
		}
	}
	return len(s.points) >= leastSweep
}

// log reports whether the axis is logarithmic.
func (s *sweep) log() bool {
	least, greatest := s.points[0].value, s.points[len(s.points)-1].value
	return least > 0 && greatest > wideSweep*least
}

// title names the algorithm and what is the same in all rows.
func (s *sweep) title() string {
	if s.others == "" {
		return s.algorithm
	}
	return s.algorithm + ", " + s.others
}

// figures draws a sweep by a measure, a dataset each: their figures have scales of their own.
func (s *sweep) figures(of *Summary, m int) (all []picture, err error) {
	measure, _ := measures.Find(of.Measures[m])
	for d := range of.Datasets {
		r := of.at(d, m)
		line, mean := figure.Series{Name: s.algorithm}, figure.Series{Name: "mean predictor"}
		for _, p := range s.points {
			l := &r.Lines[p.row]
			if !l.Complete() || math.IsNaN(float64(l.Deviation)) {
				continue
			}
			line.X, line.Y = append(line.X, p.value), append(line.Y, float64(l.Mean))
			line.Deviation = append(line.Deviation, float64(l.Deviation))
			mean.X, mean.Y = append(mean.X, p.value), append(mean.Y, float64(r.MeanPredictor.Mean))
		}
		if len(line.X) < leastSweep {
			continue
		}
		lines := figure.Lines{Title: r.Dataset, X: figure.Axis{Name: s.setting, Log: s.log()}, Y: figure.Axis{Name: measure.Title}, Series: []figure.Series{line}}
		if r.MeanPredictor.Folds > 0 {
			lines.Series = append(lines.Series, mean)
		}
		f, err := lines.Figure()
		if err != nil {
			return nil, err
		}
		svg, err := f.Element()
		if err != nil {
			return nil, err
		}
		all = append(all, picture{svg, fmt.Sprintf("%s on %s by %s (%s); bars are deviations over folds.", s.title(), r.Dataset, s.setting, measure.Title)})
	}
	return all, nil
}

// addSweeps adds figures of the settings whose numbers rows go through, at most mostFigures.
func (d *document) addSweeps(s *Summary) error {
	var all []picture
	for _, own := range sweepsOf(s.Rows) {
		for m := range s.Measures {
			if m > 0 && !s.allTests {
				break
			}
			pictures, err := own.figures(s, m)
			if err != nil {
				return err
			}
			all = append(all, pictures...)
		}
	}
	if len(all) == 0 {
		return nil
	}
	d.add(pictureHeading("Settings"))
	for _, p := range all[:min(len(all), mostFigures)] {
		d.add(p)
	}
	if more := len(all) - mostFigures; more > 0 {
		d.add(picture{caption: fmt.Sprintf("%d more figures are left out.", more)})
	}
	return nil
}
