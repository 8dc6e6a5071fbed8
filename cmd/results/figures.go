package results

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/engine/outcome/predictions"
	figures "github.com/coppice-ldl/coppice/experiment/figure"
	"github.com/coppice-ldl/coppice/experiment/plots"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/job/pipeline"
)

// FigureFile is a file for a figure.
type FigureFile struct {
	cli.Output
	put func(f *figures.Figure, w io.Writer) error
}

// CreateFigure creates the file of a figure. The end of its name chooses SVG, PNG or PDF.
func CreateFigure(flag, path string) (*FigureFile, error) {
	var put func(*figures.Figure, io.Writer) error
	switch strings.ToLower(filepath.Ext(path)) {
	case ".svg":
		put = (*figures.Figure).SVG
	case ".png":
		put = (*figures.Figure).PNG
	case ".pdf":
		put = (*figures.Figure).PDF
	default:
		return nil, cli.Usagef("%s %s: the name of a figure's file must end in .svg, .png or .pdf", flag, path)
	}
	out, err := cli.Create(path)
	if err != nil {
		return nil, err
	}
	return &FigureFile{out, put}, nil
}

// Draw writes the figure and completes the file.
func (f *FigureFile) Draw(of *figures.Figure) error {
	if err := f.put(of, f); err != nil {
		return err
	}
	return f.Commit()
}

// CheckFigures refuses, before anything is computed, a folder for figures that is a file, has no parent folder, or
// cannot be written.
func CheckFigures(flag, dir string) error {
	if dir == "" {
		return nil
	}
	if info, err := os.Stat(dir); err == nil {
		if !info.IsDir() {
			return cli.Usagef("%s %s: is a file; give the name of a folder", flag, dir)
		}
		return cli.CheckWritable(filepath.Join(dir, "figure.svg"))
	}
	if _, err := os.Stat(filepath.Dir(dir)); err != nil {
		return cli.Usagef("%s %s: the parent folder does not exist", flag, dir)
	}
	return cli.CheckWritable(dir)
}

// WriteFigures writes each figure as SVG, PNG and PDF. All figures are drawn before the first is written.
func WriteFigures(a *cli.App, dir string, all []figures.Named) error {
	if len(all) == 0 {
		a.Note("%s: there is nothing to draw", dir)
		return nil
	}
	drawn := make(map[string][]byte)
	var names []string
	for _, f := range all {
		var svg, png, pdf bytes.Buffer
		if err := f.SVG(&svg); err != nil {
			return err
		}
		if err := f.PNG(&png); err != nil {
			return err
		}
		if err := f.PDF(&pdf); err != nil {
			return err
		}
		drawn[f.Name+".svg"], drawn[f.Name+".png"], drawn[f.Name+".pdf"] = svg.Bytes(), png.Bytes(), pdf.Bytes()
		names = append(names, f.Name+".svg", f.Name+".png", f.Name+".pdf")
	}
	if err := os.Mkdir(dir, 0o777); err != nil && !os.IsExist(err) {
		return fmt.Errorf("%s: cannot be made: %w", dir, err)
	}
	for _, name := range names {
		if err := cli.WriteFile(filepath.Join(dir, name), drawn[name]); err != nil {
			return err
		}
	}
	a.Note("%s in %s, each as .svg, .png and .pdf", units.Plural(len(all), "figure"), dir)
	return nil
}

// SetBeside sets the measures beyond the usual ten. a may be nil.
func SetBeside(e *plots.Evaluated, a *pipeline.Added) {
	if a == nil {
		return
	}
	e.Model, e.Baseline, e.BaselineName = a.Model, a.Baseline(), "mean baseline"
	if a.MeanPredictor == nil {
		e.BaselineName = "median baseline"
	}
}

// evaluatedOf returns what figures show of held-out samples. encoded is empty if their predictions were not kept.
func evaluatedOf(title string, added *pipeline.Added, encoded []byte) (*plots.Evaluated, error) {
	e := &plots.Evaluated{Title: title}
	SetBeside(e, added)
	if len(encoded) == 0 {
		return e, nil
	}
	set, err := predictions.Decode(encoded)
	if err != nil {
		return nil, err
	}
	e.Type, e.LabelNames = set.Type, set.LabelNames
	e.Rows.Labels = set.Labels
	if set.Number {
		return e, nil
	}
	for i, row := range set.Row {
		name := "row " + strconv.FormatUint(uint64(row), 10)
		if len(set.Names) > 0 {
			name = set.Names[i]
		}
		e.Rows.Add(name, set.TruthOf(i), set.PredictedOf(i))
	}
	return e, nil
}

// DrawResult draws the learning curve and the figures of the held-out samples. An empty dir draws nothing.
func DrawResult(a *cli.App, dir string, r *Result, o *pipeline.Outcome) error {
	if dir == "" {
		return nil
	}
	e, err := evaluatedOf(fmt.Sprintf("%s: %s, %s", r.Dataset, r.Algorithm, r.EvaluatedOn), r.Added, o.Predictions)
	if err != nil {
		return err
	}
	all, err := e.Figures()
	if err != nil {
		return err
	}
	if r.Line != nil && (len(r.Line.Points) > 0 || slices.ContainsFunc(r.Line.Folds, func(points []curve.Point) bool {
		return len(points) > 0
	})) {
		f, err := plots.Curve(r.Dataset+": "+r.Algorithm, r.Line.Points, r.Line.Folds)
		if err != nil {
			return err
		}
		all = append(all, figures.Named{Name: "learning-curve", Figure: f})
	}
	return WriteFigures(a, dir, all)
}
