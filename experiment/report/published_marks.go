package report

import (
	"cmp"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/experiment/figure"
)

// mostPapers bounds the series of published figures in one figure of a sweep.
const mostPapers = 12

// papers are the published figures of the methods that a sweep goes through, and of others that are named as
// these are but for the number: a series of marks for each source, with the colour of the sweep's line.
func (s *sweep) papers(of *Summary, r *Result, axis figure.Axis, line int, name string) (list []figure.Series) {
	for i := range of.Published {
		p := &of.Published[i]
		if p.Dataset != r.Dataset || p.Measure != r.Measure {
			continue
		}
		x, ok := s.numberOfMethod(of, p.Method)
		if !ok || !axis.Has(x) {
			continue
		}
		title := "published"
		if p.Source != "" {
			title += ": " + p.Source
		}
		if name != "" {
			title += ", " + name
		}
		at := slices.IndexFunc(list, func(own figure.Series) bool { return own.Name == title })
		if at < 0 {
			at, list = len(list), append(list, figure.Series{Name: title, Marks: true, Line: line})
		}
		own := &list[at]
		own.X, own.Y, own.Deviation = append(own.X, x), append(own.Y, p.Value), append(own.Deviation, p.Deviation)
	}
	for i := range list {
		if !slices.ContainsFunc(list[i].Deviation, func(v float64) bool { return v > 0 }) {
			list[i].Deviation = nil // no source prints one
		}
	}
	return list
}

// numberOfMethod returns the number of the sweep's setting that a method with a name has: a method of the sweep, or
// one that only papers have. ok: it has one.
func (s *sweep) numberOfMethod(of *Summary, name string) (x float64, ok bool) {
	for _, p := range s.points {
		if of.Methods[p.method].Name == name {
			return p.value, true
		}
	}
	before, after, ok := s.names(of)
	if !ok || of.hasMethod(name) || !strings.HasPrefix(name, before) || !strings.HasSuffix(name, after) || len(name) <= len(before)+len(after) {
		return 0, false
	}
	return numberOf(name[len(before) : len(name)-len(after)])
}

// names returns what stands before and behind the number in the names of the sweep's methods; ok: it is the
// same in all of them.
func (s *sweep) names(of *Summary) (before, after string, ok bool) {
	for i, p := range s.points {
		name, value := of.Methods[p.method].Name, of.Methods[p.method].Settings[s.setting]
		if i == 0 {
			at := strings.LastIndex(name, value)
			if at < 0 {
				return "", "", false
			}
			before, after = name[:at], name[at+len(value):]
		}
		if name != before+value+after {
			return "", "", false
		}
	}
	return before, after, true
}

// addPapers adds published figures to the lines of sweeps, as far as there is room; drawn are the sweeps
// by the numbers of their lines. It returns what a caption says of them.
func (f family) addPapers(of *Summary, r *Result, lines *figure.Lines, drawn []int) string {
	var all []figure.Series
	for line, i := range drawn {
		name := ""
		if len(drawn) > 1 {
			name = f.lineName(&f[i])
		}
		all = append(all, f[i].papers(of, r, lines.X, line, name)...)
	}
	slices.SortStableFunc(all, func(a, b figure.Series) int { return cmp.Compare(a.Line, b.Line) })
	if all = all[:min(len(all), mostPapers)]; len(all) == 0 {
		return ""
	}
	lines.Series = append(lines.Series, all...)
	return " Diamonds are values printed in papers."
}
