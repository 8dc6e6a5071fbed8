package modelcmd

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/dataflags"
	"github.com/coppice-ldl/coppice/cmd/progress"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/dataset/read"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/job/predict"
)

// intervalFlags ask for intervals of predictions.
type intervalFlags struct {
	Interval  float64 `placeholder:"COVERAGE" help:"Also write an interval for each label that contains the true value with this probability, such as 0.9: split conformal prediction. It needs --calibrate."`
	Calibrate string  `placeholder:"FILE" help:"Data file with labels of samples that the model was not trained on, for --interval. If it is the file that the model was trained on, the samples that training held out for testing are used."`
}

// check refuses flags that contradict each other.
func (f *intervalFlags) check(a *cli.App, image string) error {
	given := a.Given("interval") || f.Interval != 0
	switch {
	case !given && f.Calibrate == "":
		return nil
	case image != "":
		return cli.Usagef("{interval} needs {data} and is not allowed with {image}")
	case !given:
		return cli.Usagef("{calibrate} needs {interval} with a coverage, such as {interval=0.9}")
	case f.Calibrate == "":
		return cli.Usagef("{interval} needs {calibrate=FILE}: labelled samples that the model was not trained on")
	case f.Calibrate == dataflags.Stdin:
		return cli.Usagef("{calibrate=-}: calibration samples cannot be read from stdin; give a file")
	}
	if err := predict.CheckCoverage(f.Interval); err != nil {
		return cli.Usage(err)
	}
	return nil
}

// intervals describes the intervals of predictions.
type intervals struct {
	*predict.Intervals
	Calibration string             `json:"calibration"` // the file
	From        calibrationSamples `json:"from"`
	Matched     *read.Matching     `json:"matched"`
	LeftOut     dataflags.LeftOut  `json:"left_out,omitempty"` // rows of the file
	Notes       []string           `json:"notes,omitempty"`    // how the file was read
}

// calibrationSamples says which samples of a file are used.
type calibrationSamples string

// The values of calibrationSamples.
const (
	// allSamples are all samples of a file with another digest than the training data. If some of them are training
	// samples, too, nothing shows it.
	allSamples calibrationSamples = "all"
	// heldOut are the samples of the training data that no round of the training used.
	heldOut calibrationSamples = "held_out"
)

// calibrate computes the intervals of a model from the calibration samples. Without --interval it returns nil. The
// flags about data apply to the calibration samples, too, except for --data-format.
func (c *intervalFlags) calibrate(a *cli.App, m *predict.Model, f dataflags.FileFlags,
	unseen dataflags.UnseenFlag) (*intervals, error) {
	if c.Calibrate == "" {
		return nil, nil
	}
	d := dataflags.DataFlags{FileFlags: f}
	d.DataFormat = ""
	o, checks, err := optionsFor(m, &d.FileFlags, &d)
	if err != nil {
		return nil, err
	}
	unseen.Count(&o)
	src, matched, err := read.OpenFor(c.Calibrate, o, m.Schema())
	if err != nil {
		return nil, cli.BadData(labelsError(m, o.Labels.Kind, err))
	}
	t, err := m.TypeOf(src.Info())
	if err != nil {
		return nil, cli.Usage(err)
	}
	conformal, err := m.NewConformal(t)
	if err != nil {
		return nil, cli.Usage(err)
	}
	progress := progress.New(a)
	defer progress.Clear()
	r := &intervals{Calibration: c.Calibrate, From: allSamples, Matched: matched}
	if read.IsNamedArrays(c.Calibrate) {
		r.Calibration = read.NamedArrays
	}
	held, err := c.heldOut(progress.Reading(a.Ctx, "calibrating", checks), m, src, &f)
	if err != nil {
		return nil, err
	}
	if held != nil {
		r.From = heldOut
	}
	reading := progress.Reading(a.Ctx, "calibrating", checks)
	reading.LeftOut = r.LeftOut.Add
	err = m.PredictAll(src, reading, func(p *predict.Block) error {
		for i := range p.Rows.N {
			if held != nil && !held[p.Rows.Row[i]] {
				continue
			}
			if err := conformal.Add(p, i); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if r.Intervals, err = conformal.Intervals(c.Interval); err != nil {
		return nil, fmt.Errorf("%s: %w", r.Calibration, err)
	}
	r.Notes = errtext.Strings(src.Info().Said())
	m.Intervals = r.Intervals
	return r, nil
}

// heldOut returns nil if src is not the data that the model was trained on. Otherwise it returns, for each row of the
// file, whether no round of the training used it: the test samples, and samples outside of the job. Validation samples
// are not among them, because they decide the number of steps, and most algorithms are trained with them at the end.
func (c *intervalFlags) heldOut(o importer.Options, m *predict.Model, src dataset.Source,
	f *dataflags.FileFlags) ([]bool, error) {
	p := m.Provenance
	split := p.Job.Split
	d := dataflags.DataFlags{FileFlags: dataflags.FileFlags{Names: f.Names, Images: f.Images, Missing: p.Missing,
		Header: "auto"}}
	kind, err := read.FormatOf(c.Calibrate, read.OpenOptions{})
	d.AsRead(&p.Reading, err == nil && kind == p.Reading.Kind)
	options, checks, err := d.Options()
	if err != nil {
		return nil, nil // the model does not say how its file was read
	}
	options.Libsvm.CountedFrom = p.CountedFrom
	as, err := read.Open(c.Calibrate, options)
	if err != nil {
		return nil, nil // the file that the model was trained on can be read so
	}
	if split.TrainFraction == 0 && split.Inner == 0 || split.ValidationFrom > 0 {
		rows, err := importer.CountRows(as) // not of src, whose --missing may differ
		if own := p.Rows.Validation; split.ValidationFrom > 0 && err == nil {
			if rows == split.ValidationFrom || rows == own {
				return nil, errtext.Errorf(errtext.WrongRequest, "%s: the model was trained on a file with %s and a file with "+
					"%s for validation, and this may be one of them; give a file with another number of samples, which the "+
					"training did not use", src.Info().File, dataset.Counted(split.ValidationFrom, "sample"),
					dataset.Counted(own, "sample"))
			}
			return nil, nil
		}
		if err == nil && rows != p.Rows.Train+p.Rows.Validation+p.Rows.Test {
			return nil, nil
		}
	}
	var groups []uint16
	o.Checks, o.Warn, o.Note, o.Groups = checks, nil, nil, func(list []uint16) { groups = list }
	manifest, _, err := importer.Build(as, o)
	if o.Context.Err() != nil {
		return nil, err
	}
	if err != nil || manifest.Digest() != p.Job.Dataset {
		return nil, nil
	}
	if of := split.Assigned; of != "" && (manifest.Groups == nil || manifest.Groups.Digest != of) {
		return nil, errtext.Errorf(errtext.WrongRequest, "%s: the model was trained on these samples, and a split file "+
			"decided which of them were held out; give a file with the held-out samples alone",
			src.Info().File)
	}
	roles, err := split.AssignGrouped(manifest.Rows, groups, groups)
	if err != nil {
		return nil, err
	}
	rows, held := manifest.FileRow(), make([]bool, manifest.FileRows())
	for i, role := range roles {
		at := i
		if rows != nil {
			at = rows[i]
		}
		held[at] = role == dataset.Test || role == dataset.Outside
	}
	if !slices.Contains(held, true) {
		return nil, errtext.Errorf(errtext.WrongRequest, "%s: the model was trained on these samples, and none of them "+
			"were held out for testing; calibration needs samples that the model was not trained on: others, or samples that "+
			"{test-fraction=0.2} holds out", src.Info().File)
	}
	return held, nil
}

// text describes the intervals in a few lines.
func (r *intervals) text(w io.Writer) {
	if r == nil {
		return
	}
	of := "all samples of " + r.Calibration
	if r.From == heldOut {
		of = "the samples of " + r.Calibration + " that training held out"
	}
	fmt.Fprintf(w, "intervals: coverage %v of each label, by split conformal prediction with %s: %s\n", r.Coverage,
		units.Plural(r.Samples, "calibration sample"), of)
	var all []string
	for _, l := range r.Values[:min(mostWidths, len(r.Values))] {
		all = append(all, fmt.Sprintf("%s %s", l.Label, cli.Measure(l.HalfWidth)))
	}
	if len(r.Values) > mostWidths {
		all = append(all, "...")
	}
	fmt.Fprintf(w, "half of the width, before intervals are clipped: %s\n", strings.Join(all, ", "))
	var more strings.Builder
	writeMatching(&more, r.Matched)
	for line := range strings.Lines(more.String() + r.LeftOut.String()) {
		fmt.Fprintf(w, "%s: %s\n", r.Calibration, strings.TrimSpace(line))
	}
}

// mostWidths is the number of labels whose half width the text has.
const mostWidths = 12
