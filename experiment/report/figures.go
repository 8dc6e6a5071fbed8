package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/experiment/figure"
	"github.com/coppice-ldl/coppice/experiment/result"
)

// mostFigures bounds the figures of a report.
const mostFigures = 60

// Picture is a picture of a report.
type Picture struct {
	// Name is that of a file, without its ending: letters, digits, dots, underscores and hyphens.
	Name    string
	Caption string

	draw func() (*figure.Figure, error)
}

// Draw makes the picture.
func (f *Picture) Draw() (*figure.Figure, error) { return f.draw() }

// Figures lists the pictures of a report, at most 60, in the order of its page. Errors are those
// of Write.
func Figures(t *result.Table, o Options) ([]Picture, error) {
	s, err := Summarize(t, o)
	if err != nil {
		return nil, err
	}
	var all []Picture
	for _, b := range s.layout().blocks {
		if f, ok := b.(picture); ok && f.Picture != nil {
			all = append(all, *f.Picture)
		}
	}
	return all, nil
}

// addFigures adds the figures of a section below a heading of its own; of a report no more than
// mostFigures.
func (d *document) addFigures(title string, figures []Picture) {
	if len(figures) == 0 {
		return
	}
	d.add(pictureHeading(title))
	for i := range figures {
		if d.figures == mostFigures {
			d.add(picture{caption: fmt.Sprintf("%s not shown: a report has at most %d figures.", count(len(figures)-i, "more figure is", "more figures are"), mostFigures)})
			return
		}
		d.addFigure(&figures[i])
	}
}

// addFigure adds a figure, whose name begins with its number.
func (d *document) addFigure(f *Picture) {
	d.figures++
	f.Name = fmt.Sprintf("%02d-%s", d.figures, fileName(f.Name))
	d.add(picture{Picture: f})
}

// pictureText is a picture, or the heading of pictures, in a format that shows those of a folder; false: the
// block is none of these. Without a folder the text is empty.
func pictureText(folder string, b block, show func(folder string, f *Picture) string, heading, plain func(string) string) (text string, is bool) {
	switch b := b.(type) {
	case pictureHeading:
		text = heading(string(b))
	case picture:
		if text = "\n" + plain(b.caption) + "\n"; b.Picture != nil {
			text = show(folder, b.Picture)
		}
	default:
		return "", false
	}
	if folder == "" {
		return "", true
	}
	return text, true
}

// fileName makes a part of a file's name of a text.
func fileName(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
			return r
		}
		return '-'
	}, text)
	return text[:min(len(text), 80)]
}

// drawing makes the figures of a report.
type drawing struct{ *Summary }

// sweepFigures are those of the settings whose numbers methods go through: one for each family,
// measure and dataset, whose scales differ.
func (s drawing) sweepFigures(families []family) (all []Picture) {
	for _, f := range families {
		for m := range s.Measures {
			if m > 0 && !s.options.AllTests {
				break
			}
			for d := range s.Datasets {
				if own, ok := f.figure(s.Summary, families, m, d); ok {
					all = append(all, own)
				}
			}
		}
	}
	return all
}

// figure draws a family by a measure on a dataset; false: no sweep has enough methods with all folds.
func (f family) figure(of *Summary, among []family, m, d int) (Picture, bool) {
	measure, _ := measures.Find(of.Measures[m])
	r := of.at(d, m)
	lines := figure.Lines{
		Title: r.Dataset + ": " + f.title(among),
		X:     f.axis(), Y: figure.Axis{Name: measure.Title, Unit: unitOf(of.Measures[m])},
	}
	var mean figure.Series
	var drawn []int
	for i := range f {
		line := f[i].line(r)
		if len(line.X) < leastSweep {
			continue
		}
		line.Name = f.lineName(&f[i])
		lines.Series, drawn = append(lines.Series, line), append(drawn, i)
		mean.X = append(mean.X, line.X...)
	}
	if len(lines.Series) == 0 {
		return Picture{}, false
	}
	if r.MeanPredictor.Folds > 0 {
		lines.Series = append(lines.Series, level("mean baseline", mean.X, float64(r.MeanPredictor.Mean)))
	}
	bars := ""
	if slices.ContainsFunc(lines.Series, func(s figure.Series) bool { return s.Deviation != nil }) {
		bars = "; bars are standard deviations over folds"
	}
	papers := f.addPapers(of, r, &lines, drawn)
	return Picture{
		Name:    r.Dataset + "-" + f.title(among) + "-" + of.Measures[m],
		Caption: fmt.Sprintf("%s on %s by %s%s.%s%s", measure.Title, r.Dataset, f[0].setting, bars, papers, f.same()),
		draw:    lines.Figure,
	}, true
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

// level is a line of one height, as wide as the values of x.
func level(name string, x []float64, height float64) figure.Series {
	from, to := x[0], x[0]
	for _, v := range x {
		from, to = min(from, v), max(to, v)
	}
	return figure.Series{Name: name, X: []float64{from, to}, Y: []float64{height, height}}
}
