package jobcmd

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/results"
	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/experiment/plots"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/protocol"
)

type curveCmd struct {
	jobArg
	Plot string `placeholder:"FILE" help:"Draw the curve to FILE: .svg, .png or .pdf."`
}

func (*curveCmd) Outputs() []string { return []string{cli.CSV} }

// Run implements `coppice job curve`.
func (c *curveCmd) Run(a *cli.App) error {
	var plot *results.FigureFile
	if c.Plot != "" {
		var err error
		if plot, err = results.CreateFigure("--plot", c.Plot); err != nil {
			return err
		}
		defer plot.Discard()
	}
	cl, err := c.Connect(a)
	if err != nil {
		return err
	}
	line, err := cl.Jobs().Curve(a.Ctx, c.Job)
	if err != nil {
		return err
	}
	if plot != nil {
		f, err := plots.Curve("job "+line.Name, line.Points, line.Folds)
		if err != nil {
			return err
		}
		if err := plot.Draw(f); err != nil {
			return err
		}
	}
	if a.Output == cli.CSV {
		return WriteCurve(a.Data, line.Points, line.Folds)
	}
	return a.Print(line, func(w io.Writer) { showCurve(w, line) })
}

// WriteCurve writes a curve as CSV with the columns fold (if there are folds), step, training_loss, validation_loss and
// seconds. A value that is not known is empty.
func WriteCurve(w io.Writer, points []curve.Point, folds [][]curve.Point) error {
	out := csv.NewWriter(w)
	header := []string{"step", "training_loss", "validation_loss", "seconds"}
	if len(folds) > 0 {
		header = append([]string{"fold"}, header...)
	}
	out.Write(header) // Error returns the error of each Write
	for i := range points {
		if len(folds) == 0 {
			out.Write(curveRecord(nil, &points[i]))
		}
	}
	for fold, points := range folds {
		for i := range points {
			out.Write(curveRecord([]string{strconv.Itoa(fold)}, &points[i]))
		}
	}
	out.Flush()
	return out.Error()
}

// curveRecord appends the fields of a point.
func curveRecord(record []string, p *curve.Point) []string {
	seconds, known := p.Seconds()
	if !known {
		seconds = math.NaN()
	}
	record = append(record, strconv.FormatUint(p.Step, 10))
	for _, v := range []float64{p.Training, p.Validation, seconds} {
		text := ""
		if !math.IsNaN(v) {
			text = strconv.FormatFloat(v, 'g', -1, 64)
		}
		record = append(record, text)
	}
	return record
}

// curveRows is the approximate number of points that the text of a curve shows.
const curveRows = 20

// showCurve writes a curve for people.
func showCurve(w io.Writer, c *protocol.JobCurve) {
	lines := [][2]string{{"job", c.Name}, {"state", string(c.State)}}
	switch {
	case len(c.Folds) > 0:
		cli.WritePairs(w, lines)
		for fold, points := range c.Folds {
			fmt.Fprintf(w, "\nfold %d\n", fold)
			if len(points) == 0 {
				fmt.Fprintln(w, noPoints(c.State))
			}
			cli.WritePairs(w, lossLines(points))
		}
		return
	case len(c.Points) == 0:
		cli.WritePairs(w, append(lines, [2]string{"points", noPoints(c.State)}))
		return
	}
	cli.WritePairs(w, append(append(lines, [2]string{"points", units.Count(len(c.Points)) +
		" (-o csv and -o json list all steps)"}), lossLines(c.Points)...))
	fmt.Fprintln(w)
	cli.WriteTable(w, []string{"step", "training loss", "validation loss", "time"}, tabled(c.Points),
		func(p curve.Point) []string {
			time := "-"
			if s, known := p.Seconds(); known {
				time = units.Duration(s)
			}
			return []string{units.Count(p.Step), cli.Measure(p.Training), cli.Measure(p.Validation), time}
		}, 1, 2, 3, 4)
}

// tabled returns points for a table, at equal distances and with the last one. If some have a validation loss, it
// returns only such points.
func tabled(points []curve.Point) (some []curve.Point) {
	without := func(p curve.Point) bool { return math.IsNaN(p.Validation) }
	if validated := slices.DeleteFunc(slices.Clone(points), without); len(validated) > 0 {
		points = validated
	}
	every := (len(points) + curveRows - 1) / curveRows
	for i, p := range points {
		if i%every == 0 || i == len(points)-1 {
			some = append(some, p)
		}
	}
	return some
}

func noPoints(s protocol.JobState) string {
	if s.Final() {
		return "none"
	}
	return "none yet"
}

// lossLines describes the losses of a curve.
func lossLines(points []curve.Point) (lines [][2]string) {
	if text := lossSummary(points, validation); text != "" {
		lines = append(lines, [2]string{"validation loss", text})
	}
	if text := lossSummary(points, training); text != "" {
		lines = append(lines, [2]string{"training loss", text})
	}
	return lines
}

// lossSummary tells the first, the least and the last value of a loss. It returns an empty text if there is none.
func lossSummary(points []curve.Point, of func(*curve.Point) float64) string {
	var first, least, last *curve.Point
	for i := range points {
		p := &points[i]
		if math.IsNaN(of(p)) {
			continue
		}
		if first == nil {
			first, least = p, p
		}
		if of(p) < of(least) {
			least = p
		}
		last = p
	}
	if first == nil {
		return ""
	}
	tell := func(what string, p *curve.Point) string {
		return fmt.Sprintf("%s %s at step %s", what, cli.Measure(of(p)), units.Count(p.Step))
	}
	if first == last {
		return tell("K-L", first)
	}
	return tell("first", first) + ", " + tell("least", least) + ", " + tell("last", last)
}

// training and validation return a loss of a point.
func training(p *curve.Point) float64 { return p.Training }

func validation(p *curve.Point) float64 { return p.Validation }
