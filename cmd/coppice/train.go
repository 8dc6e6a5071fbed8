package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/engine/outcome/predictions"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/job/local"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/job/spec"
	"github.com/coppice-ldl/coppice/protocol"
)

type trainCmd struct {
	specFlags
	auditFlag
	ModelOut       string `group:"write" placeholder:"FILE" help:"Write the model to FILE. Each fold has a file of its own: with m.model, m-fold0.model, m-fold1.model and so on."`
	PredictionsOut string `group:"write" placeholder:"FILE" help:"Write the predictions of the held-out samples to FILE: .csv, .csv.gz or .npz."`

	CurveOut string `group:"write" placeholder:"FILE.csv" help:"Write the loss of every step to FILE.csv."`
	Figures  string `group:"write" placeholder:"DIR" help:"Draw the learning curve and the held-out predictions to folder DIR, as .svg and .png."`

	Local      bool        `group:"cluster" help:"Train in this process, without a cluster."`
	Memory     units.Bytes `group:"cluster" seldom:"" placeholder:"SIZE" help:"With --local: maximum memory of a task on the whole dataset (an exact fit), such as 8GiB. A job that needs more is refused (default: no limit)."`
	KeptMemory units.Bytes `group:"cluster" seldom:"" default:"256MiB" placeholder:"SIZE" help:"With --local: memory for the routing probabilities that leaf updates of ldlf keep, such as 1GiB. With less memory they are computed again, and the results are the same to the bit."`
	threadsFlag

	changeFlags
	dataFlags
}

// Run implements `coppice train`.
func (c *trainCmd) Run(a *app) error {
	if c.Settings && a.output == outputJSONL {
		return usagef("--settings trains nothing and prints text or JSON: give -o text or -o json")
	}
	if c.Settings {
		return c.printSettings(a)
	}
	if c.Local && c.Audit > 0 {
		return usagef("--audit compares workers of a cluster and is not allowed with --local")
	}
	if err := cmp.Or(c.checkLocal(), a.apartFromCluster("--local and --data", c.Local && c.Data != "")); err != nil {
		return err
	}
	file, err := c.read()
	if err != nil {
		return err
	}
	if err := c.checkFiles(file); err != nil {
		return err
	}
	out, err := c.output()
	if err != nil {
		return err
	}
	defer out.discard()
	predicted, err := c.heldOutFile(file)
	if err != nil {
		return err
	}
	defer predicted.discard()
	line, err := createCurve(c.CurveOut)
	if err != nil {
		return err
	}
	defer line.discard()
	var r *result
	var o *pipeline.Outcome
	if c.Local {
		r, o, err = c.trainHere(a, file, out)
	} else {
		r, o, err = c.trainThere(a, file)
	}
	if err != nil {
		return err
	}
	r.Notes = a.said
	if err := out.write(o, r); err != nil {
		return err
	}
	if err := predicted.write(o, r); err != nil {
		return err
	}
	if err := line.write(r); err != nil {
		return err
	}
	return cmp.Or(a.printResult(r), drawResult(a, c.Figures, r, o)) // a figure that cannot be written takes no result away
}

// checkLocal refuses flags about this process where others train.
func (c *trainCmd) checkLocal() error {
	if !c.Local && (c.Threads != 0 || c.Memory != 0 || c.KeptMemory != engine.DerivedLimit) {
		return usagef("--threads, --memory and --kept-memory need --local; on a cluster, give --slots, --memory and --kept-memory to coppice worker")
	}
	return c.threadsFlag.check()
}

// checkFiles refuses flags about a data file where there is none, and outputs that are
// inputs as well.
func (c *trainCmd) checkFiles(file *spec.File) error {
	inputs := []string{c.Data, c.Split, c.Spec, c.LabelsFile, c.Names, initFrom(file)}
	distinct := apart(outputFlag{"--model-out", c.ModelOut}, outputFlag{"--predictions-out", c.PredictionsOut}, outputFlag{"--curve-out", c.CurveOut})
	return cmp.Or(distinct, c.belongTo(c.Data), checkFigures("--figures", c.Figures), notAnInput("--model-out", c.ModelOut, inputs...), notAnInput("--predictions-out", c.PredictionsOut, inputs...),
		notAnInput("--curve-out", c.CurveOut, inputs...))
}

// trainHere trains in this process.
func (c *trainCmd) trainHere(a *app, file *spec.File, out *modelOut) (*result, *pipeline.Outcome, error) {
	defer frugal()()
	m := newMeter(a.stderr)
	m.told, m.quiet = a.newProgressLines(), a.json
	defer m.clear()
	name, data, err := c.load(a, m, file)
	if err != nil {
		return nil, nil, err
	}
	j, err := c.resolve(a, file, data)
	if err != nil {
		return nil, nil, err
	}
	if c.PredictionsOut != "" {
		if err := keepable(j, data.Manifest, data.Assigned); err != nil {
			return nil, nil, err
		}
	}
	start, shown := time.Now(), newPulse(m)
	o, err := local.Run(a.ctx, j, data, local.Options{Lanes: c.threadsFlag.count(), Memory: int64(c.Memory), Kept: engine.NewDerivedMemory(int(c.KeptMemory)), Spend: true, Progress: shown.training, Model: out.stream(), Points: curve.JobPoints, Timed: true})
	shown.stop()
	if err != nil {
		return nil, nil, err
	}
	job := file.Name
	if job == "" {
		job = "local"
	}
	r := newResult(job, name, j, o, time.Since(start).Seconds())
	r.setPredictions(o, len(o.Predictions) > 0, "")
	r.Line, r.On = lineOf(o), []*dataset.Manifest{data.Manifest}
	return r, o, r.heldOut(j, data.Manifest, data.Assigned)
}

// load reads the data into memory, from a file or from a cluster, with the groups of its rows
// as the folds of a split by groups.
func (c *trainCmd) load(a *app, m *meter, file *spec.File) (string, *local.Data, error) {
	if c.Data == "" {
		return c.fetch(a, file.Dataset)
	}
	src, checks, err := c.open(a, c.Data)
	if err != nil {
		return "", nil, err
	}
	data := new(local.Data)
	options := importOptions(a.ctx, checks, m)
	options.Groups = func(groups []uint16) { data.Assigned = groups }
	data.Manifest, data.Shards, err = dataset.Build(src, options)
	a.said = m.said
	return datasetName(c.Data), data, err
}

// resolve makes the job and reads the folds that --split gives and the weights of init_from, where
// there are any.
func (c *trainCmd) resolve(a *app, file *spec.File, data *local.Data) (*round.Job, error) {
	if c.Split != "" {
		folds, err := readFolds(a, c.Split, data.Manifest)
		if err != nil {
			return nil, err
		}
		data.Assigned = folds.Assigned
		folds.into(&file.Spec)
	}
	w, err := readWeights(a, nil, file)
	if err != nil {
		return nil, err
	}
	j, err := spec.Resolve(file.Spec, data.Manifest)
	if err != nil {
		return nil, file.Locate(err)
	}
	if w != nil {
		data.Weights = w.File
	}
	return j, checkWeights(w, j, data.Manifest, file)
}

// modelOut is where --model-out writes; nil writes nothing.
type modelOut struct {
	path string
	file *outFile
}

func (c *trainCmd) output() (*modelOut, error) {
	if c.ModelOut == "" {
		return nil, nil
	}
	f, err := createFile(c.ModelOut)
	if err != nil {
		return nil, err
	}
	return &modelOut{c.ModelOut, f}, nil
}

func (m *modelOut) discard() {
	if m != nil {
		m.file.discard()
	}
}

// stream is where the model of a job that is not one of folds goes as it is made.
func (m *modelOut) stream() io.Writer {
	if m == nil {
		return io.Discard
	}
	return m.file
}

// write writes the model unless it was streamed, or one for each fold, and notes in r where.
func (m *modelOut) write(o *pipeline.Outcome, r *result) error {
	if m == nil {
		return nil
	}
	r.Model = m.path
	if len(o.Folds) == 0 {
		if _, err := m.file.Write(o.Model); err != nil {
			return err
		}
		return m.file.commit()
	}
	var paths []string
	for i, f := range o.Folds {
		path := foldPath(m.path, i)
		if err := writeFile(path, f.Model); err != nil {
			return errors.Join(err, removeAll(paths))
		}
		paths = append(paths, path)
	}
	r.Model = strings.Join(paths, ", ")
	return nil
}

// foldPath returns the name of one fold's file: model.ldl becomes model-fold3.ldl.
func foldPath(path string, fold int) string {
	ext := filepath.Ext(path)
	return fmt.Sprintf("%s-fold%d%s", strings.TrimSuffix(path, ext), fold, ext)
}

func removeAll(paths []string) (err error) {
	for _, p := range paths {
		err = errors.Join(err, os.Remove(p))
	}
	return err
}

// fetch reads a cluster's dataset into memory.
func (c *trainCmd) fetch(a *app, name string) (string, *local.Data, error) {
	reach := c.guess
	if a.given["wait"] {
		reach = c.connect
	}
	cl, err := reach(a)
	if err != nil {
		return "", nil, err
	}
	defer cl.Close()
	d, err := cl.Dataset(a.ctx, name)
	if err != nil {
		return "", nil, err
	}
	shards, err := cl.Shards(a.ctx, d.Manifest)
	data := &local.Data{Manifest: d.Manifest, Shards: shards}
	if g := d.Manifest.Groups; g != nil && err == nil {
		var b []byte
		if b, err = cl.Blob(a.ctx, g.Digest); err == nil {
			data.Assigned, err = dataset.DecodeFolds(b, d.Manifest.Rows)
		}
	}
	return name, data, err
}

// outputs implements printer.
func (*trainCmd) outputs() []string { return []string{outputJSONL} }

// printResult prints the result of a training.
func (a *app) printResult(r *result) error {
	if l := a.newProgressLines(); l != nil {
		return l.out.Encode(struct {
			Result *result `json:"result"`
		}{r})
	}
	return a.print(r, r.text)
}

// curveOut is where --curve-out writes; nil writes nothing.
type curveOut struct {
	file *outFile
	path string
}

// createCurve begins the file of a curve.
func createCurve(path string) (*curveOut, error) {
	if path == "" {
		return nil, nil
	}
	if path != stdoutName && !strings.HasSuffix(strings.ToLower(path), ".csv") && !isDevice(path) {
		return nil, usagef("--curve-out %s: a learning curve is written as CSV, so the name must end in .csv", path)
	}
	f, err := createFile(path)
	if err != nil {
		return nil, err
	}
	return &curveOut{f, path}, nil
}

func (c *curveOut) discard() {
	if c != nil {
		c.file.discard()
	}
}

// write writes the curve of a result and notes in it where.
func (c *curveOut) write(r *result) error {
	if c == nil {
		return nil
	}
	r.Curve = c.path
	if err := writeCurve(c.file, r.Line.Points, r.Line.Folds); err != nil {
		return err
	}
	return c.file.commit()
}

// lineOf is the curve of a job that ran in this process.
func lineOf(o *pipeline.Outcome) *protocol.JobCurve {
	line := &protocol.JobCurve{Points: []curve.Point{}}
	if o.Curve != nil {
		line.Points = o.Curve.Points()
	}
	for _, f := range o.Folds {
		points := []curve.Point{}
		if f.Curve != nil {
			points = f.Curve.Points()
		}
		line.Folds = append(line.Folds, points)
	}
	return line
}

// heldOutWriter is where --predictions-out writes; nil writes nothing.
type heldOutWriter struct {
	file   *outFile
	format dataset.Format
	path   string
}

// heldOutFile begins the file, where a job of the spec holds rows out.
func (c *trainCmd) heldOutFile(file *spec.File) (*heldOutWriter, error) {
	if c.PredictionsOut == "" {
		return nil, nil
	}
	if file.Folds == 0 && file.TestFraction == 0 && !file.GroupFolds && c.Split == "" {
		return nil, usagef("--predictions-out: no samples are held out for testing; give --test-fraction, --folds or --split")
	}
	format, err := new(formatFlag).of(c.PredictionsOut)
	if err != nil {
		return nil, err
	}
	f, err := createFile(c.PredictionsOut)
	return &heldOutWriter{f, format, c.PredictionsOut}, err
}

func (h *heldOutWriter) discard() {
	if h != nil {
		h.file.discard()
	}
}

// write writes the predictions of an outcome and notes in r where.
func (h *heldOutWriter) write(o *pipeline.Outcome, r *result) error {
	if h == nil {
		return nil
	}
	if len(o.Predictions) == 0 {
		return noPredictions("job "+r.Job, o)
	}
	set, err := predictions.Decode(o.Predictions)
	if err != nil {
		return err
	}
	r.Predictions = h.path
	if err := writeHeldOut(h.file, h.format, set); err != nil {
		return err
	}
	return h.file.commit()
}
