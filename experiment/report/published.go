package report

import (
	"slices"

	"github.com/coppice-ldl/coppice/experiment/result"
)

// publishedLine are the published figures of one method from one source.
type publishedLine struct {
	method, source string
	line           line
}

// publishedLines are the lines of published figures of a measure on some datasets, by method and
// source in the order of the table.
func (s *Summary) publishedLines(m, from, to int) (lines []publishedLine) {
	for i := range s.Published {
		p := &s.Published[i]
		column := slices.IndexFunc(s.Datasets[from:to], func(d result.Dataset) bool { return d.Name == p.Dataset })
		if p.Measure != s.Measures[m] || column < 0 {
			continue
		}
		at := slices.IndexFunc(lines, func(l publishedLine) bool { return l.method == p.Method && l.source == p.Source })
		if at < 0 {
			at = len(lines)
			lines = append(lines, publishedLine{p.Method, p.Source, line{cells: plain(publishedName(p))}})
			for range to - from {
				lines[at].line.cells = append(lines[at].line.cells, cell{text: none})
			}
		}
		f := Figure{Mean: number(p.Value), Deviation: number(p.Deviation), Folds: 1}
		text := f.text(s.at(from+column, m).format())
		if p.Deviation == 0 { // the source prints none
			text = s.at(from+column, m).format().text(f.Mean)
		}
		lines[at].line.cells[1+column].text = text
	}
	return lines
}

// publishedName names the method and the source.
func publishedName(p *result.Published) string {
	if p.Source == "" {
		return p.Method + " (published)"
	}
	return p.Method + " (published: " + p.Source + ")"
}
