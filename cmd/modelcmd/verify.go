package modelcmd

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/external"
	"github.com/coppice-ldl/coppice/algorithms/kit/network"
	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/connect"
	"github.com/coppice-ldl/coppice/cmd/dataflags"
	"github.com/coppice-ldl/coppice/cmd/jobcmd"
	"github.com/coppice-ldl/coppice/cmd/progress"
	"github.com/coppice-ldl/coppice/cmd/results"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/dataset/read"
	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/experiment/folds"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/garbage"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/internal/version"
	"github.com/coppice-ldl/coppice/job/local"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/job/predict"
	"github.com/coppice-ldl/coppice/job/spec"
	"github.com/coppice-ldl/coppice/protocol"
)

type verifyCmd struct {
	Model    string `arg:"" placeholder:"FILE|NAME" help:"Model file, or model of the cluster: the name of its job, or job/fold."`
	Data     string `required:"" placeholder:"FILE" help:"Data file that the model was trained on; - for stdin (see --data-format); or a JSON object with the .npy file of each array."`
	OnlyData bool   `help:"Compare only the digests of the data, and do not train."`
	Local    bool   `group:"cluster" help:"Train in this process, even if a context names a cluster."`
	Split    string `seldom:"" placeholder:"FILE" help:"CSV file with the folds of the model, as for train --split."`
	FoldSeed string `seldom:"" placeholder:"N" help:"Seed that drew the folds of the model, as for train --fold-seed."`
	InitFrom string `seldom:"" placeholder:"FILE" help:"File with the initial weights of the model, as for train --init-from."`

	cli.ThreadsFlag
	connect.ChangeFlags
	dataflags.DataFlags
	dataflags.ValidationFlag
}

// Help implements kong's HelpProvider.
func (verifyCmd) Help() string {
	return `A model depends only on the data, the hyperparameters and the seed, whatever the machine and the number of threads. This
command reads the data as for the training, trains again as the model file says, and compares the digests of the data and
of the models, and the measures. It trains on the cluster that --server or a context names, and otherwise in this process.

The exit code is 0 if everything is the same. It is 1 if something differs, or if the model cannot be verified; the output
says why.`
}

// The verdicts of a verification.
const (
	verdictVerified = "verified"       // the training gave the same model
	verdictSameData = "same data"      // with --only-data
	verdictData     = "other data"     // the digests of the data differ
	verdictModel    = "other model"    // the digests of the models differ
	verdictMeasures = "other measures" // the models are the same, but not the measures in the file
	verdictText     = "other text"     // the models are the same, but names or replacements of missing features differ
	verdictCannot   = "cannot verify"  // the model cannot be trained again
)

// verification is what `coppice model verify` prints.
type verification struct {
	Model     string       `json:"model"`
	Digest    string       `json:"digest"`
	Algorithm string       `json:"algorithm"`
	Version   string       `json:"version"`  // that trained the model
	Numerics  int          `json:"numerics"` // its arithmetic version
	Data      verifiedData `json:"data"`
	// Trained is the digest of the model that was trained again; empty: none was.
	Trained      string `json:"trained_digest,omitempty"`
	TrainedOn    string `json:"trained_on,omitempty"`    // "this machine" or "cluster"
	SameMeasures *bool  `json:"same_measures,omitempty"` // true if training gave the measures of the model file
	Verdict      string `json:"verdict"`
	Reason       string `json:"reason,omitempty"` // why the verdict is not "verified" or "same data"
}

// verifiedData compares the data file with the data of the model.
type verifiedData struct {
	File     string `json:"file"`
	ReadWith string `json:"read_with,omitempty"` // flags
	Digest   string `json:"digest"`
	Model    string `json:"model_digest"` // of the data that the model was trained on
	Same     bool   `json:"same"`
	Samples  int    `json:"samples"`
	Features int    `json:"features"`
	Labels   int    `json:"labels"`
}

// Run implements `coppice model verify`.
func (c *verifyCmd) Run(a *cli.App) error {
	_, missing := os.Stat(c.Model) // the cluster has the model
	if err := cmp.Or(c.ThreadsFlag.Check(), connect.CheckNoCluster(a, errtext.Sprintf("{local}"), c.Local &&
		missing == nil)); err != nil {
		return err
	}
	here := c.Local || !connect.Chosen(&c.ServerFlags)
	if c.Data == dataflags.Stdin && !here {
		return cli.Usagef("{data=-}: the data are read twice to train on a cluster; give the name of a file, or {local}")
	}
	m, _, err := loadModel(a, c.Model, &c.ServerFlags)
	if err != nil {
		return err
	}
	p := m.Provenance
	v := &verification{Model: c.Model, Digest: m.File.Digest, Algorithm: m.File.Algorithm, Version: p.Version,
		Numerics: m.File.Numerics}
	v.Data.File, v.Data.Model = c.Data, p.Job.Dataset
	if read.IsNamedArrays(c.Data) {
		v.Data.File = read.NamedArrays
	}
	if reason := cannotTrain(m); reason != "" && !c.OnlyData {
		return v.end(a, verdictCannot, reason)
	}
	data, err := c.read(a, m, v)
	if err != nil {
		return err
	}
	if !v.Data.Same {
		return v.end(a, verdictData, otherData(m, data.Manifest, &p.Reading))
	}
	if c.OnlyData {
		return v.end(a, verdictSameData, "")
	}
	j, reason, err := c.job(a, p.Job, data)
	if err != nil {
		return err
	}
	if reason != "" {
		return v.end(a, verdictCannot, reason)
	}
	var o *pipeline.Outcome
	var file []byte // of the model that is trained again
	if here {
		v.TrainedOn = "this machine"
		if o, err = c.trainHere(a, j, data); err == nil {
			file = o.Model
		}
	} else {
		v.TrainedOn = "cluster"
		o, file, reason, err = c.trainThere(a, m.File.Digest, j, data)
	}
	if err != nil {
		return fmt.Errorf("the model cannot be trained again%s: %w", v.otherVersion(), err)
	}
	if reason != "" {
		return v.end(a, verdictCannot, reason)
	}
	again, err := predict.Decode(file)
	if err != nil {
		return err
	}
	same, now := sameMeasures(p, o), again.Provenance
	v.Trained, v.SameMeasures = o.ModelDigest, &same
	switch {
	case v.Trained != v.Digest:
		return v.end(a, verdictModel, errtext.Sprintf("training gave another model: its digest is %s%s",
			v.Trained, v.otherVersion()))
	case !same:
		return v.end(a, verdictMeasures, "training gave the same model, but the measures in the model file differ from its "+
			"measures")
	}
	if differs := otherText(p, now); differs != "" {
		return v.end(a, verdictText, errtext.Sprintf("training gave the same model, but the model file has other %s than "+
			"these data", differs))
	}
	return v.end(a, verdictVerified, "")
}

// end prints the verification. A reason is also its error.
func (v *verification) end(a *cli.App, verdict string, reason errtext.Text) error {
	v.Verdict, v.Reason = verdict, reason.String()
	if err := a.Print(v, v.text); err != nil || reason == "" {
		return err
	}
	return errtext.Errorf(errtext.WrongRequest, "%s: %s: %s", v.Model, verdict, reason)
}

func (v *verification) text(w io.Writer) {
	lines := [][2]string{
		{"model", v.Model}, {"digest", v.Digest},
		{"algorithm", fmt.Sprintf("%s (arithmetic version %d, Coppice %s)", v.Algorithm, v.Numerics, v.Version)},
	}
	if d := &v.Data; d.Digest != "" {
		same := "the same as"
		if !d.Same {
			same = "not the same as"
		}
		lines = append(lines, [2]string{"data", fmt.Sprintf("%s: %s, %s, %s", d.File, units.Plural(d.Samples, "sample"),
			units.Plural(d.Features, "feature"), units.Plural(d.Labels, "label"))})
		if d.ReadWith != "" {
			lines = append(lines, [2]string{"read with", d.ReadWith})
		}
		lines = append(lines, [2]string{"data digest", fmt.Sprintf("%s, %s of the model's data", d.Digest, same)})
	}
	if v.Trained != "" {
		lines = append(lines, [2]string{"trained again", fmt.Sprintf("on %s: digest %s", strings.Replace(v.TrainedOn,
			"cluster", "the cluster", 1), v.Trained)})
	}
	cli.WritePairs(w, append(lines, [2]string{"verdict", v.Verdict}))
}

// otherVersion says which version trained the model, if it is another one.
func (v *verification) otherVersion() string {
	if v.Version == version.String {
		return ""
	}
	return fmt.Sprintf(" (the model was trained by Coppice %s, this is %s: verify with that version)", v.Version,
		version.String)
}

// cannotTrain says why no data file is enough to train a model again; empty: it may be.
func cannotTrain(m *predict.Model) errtext.Text {
	j := m.Provenance.Job
	switch {
	case m.File.Algorithm == external.Name:
		return "another program made its predictions, so there is no training to repeat"
	case m.File.Numerics != round.Numerics || j.Numerics != round.Numerics:
		return errtext.Sprintf("it was trained by Coppice %s with arithmetic version %d, but this is Coppice %s with "+
			"arithmetic version %d; verify with Coppice %[1]s, or compare the data alone with {only-data}",
			m.Provenance.Version, m.File.Numerics, version.String, round.Numerics)
	case m.File.Algorithm != j.Algorithm:
		return errtext.Sprintf("the file has a model of %s, but names a training of %.40q", m.File.Algorithm, j.Algorithm)
	}
	return ""
}

// read reads the data as for the training.
func (c *verifyCmd) read(a *cli.App, m *predict.Model, v *verification) (*local.Data, error) {
	r := &m.Provenance.Reading
	like := c.Data == dataflags.Stdin && c.DataFormat != "" // otherwise the name says the kind
	if kind, err := read.FormatOf(c.Data, read.OpenOptions{Format: c.DataFormat}); err == nil {
		like = kind == r.Kind
	}
	c.DataFlags.AsRead(r, like)
	for _, f := range [][3]string{{"labels_file", c.LabelsFile, "labels-file"}, {"images", c.Images, "images"}} {
		for _, need := range r.Files {
			if like && need == f[0] && f[1] == "" {
				return nil, cli.Usagef("the data of the model was read with {%s}: give it", f[2])
			}
		}
	}
	switch own := m.Provenance.Job.Split.ValidationFrom > 0; {
	case own && c.Validation == "":
		return nil, cli.Usagef("the model was trained with validation samples of a file: give it with {validation}")
	case !own && c.Validation != "":
		return nil, cli.Usagef("{validation=%s}: the model was trained without a file of validation samples", c.Validation)
	}
	src, checks, err := c.OpenWith(a, c.Data, c.ValidationFlag)
	if err != nil {
		return nil, err
	}
	meter := progress.New(a)
	meter.Quiet = a.JSON
	defer meter.Clear()
	data := new(local.Data)
	options := meter.Reading(a.Ctx, "reading data", checks)
	options.Groups = func(groups []uint16) { data.Groups = groups }
	if data.Manifest, data.Shards, err = importer.Build(src, options); err != nil {
		return nil, err
	}
	d := &v.Data
	d.ReadWith = dataflags.ReadingFlags(&data.Manifest.Reading)
	d.Digest, d.Samples, d.Features, d.Labels = data.Manifest.Digest(), data.Manifest.Rows, data.Manifest.Features,
		data.Manifest.Labels
	d.Same = d.Digest == d.Model
	return data, nil
}

// otherData says how data differ from the data of a model, if the model file says enough.
func otherData(m *predict.Model, of *dataset.Manifest, r *dataset.Reading) errtext.Text {
	features, labels := m.Shape()
	p := m.Provenance
	switch n := p.Rows.Train + p.Rows.Validation + p.Rows.Test; {
	case of.Features != features || of.Labels != labels:
		return errtext.Sprintf("the data have %s and %s, the model's data %s and %s", units.Plural(of.Features, "feature"),
			units.Plural(of.Labels, "label"), units.Count(features), units.Count(labels))
	case !p.Job.Split.Overlap && p.Job.Split.TrainFraction == 0 && n != of.Rows:
		return errtext.Sprintf("the data have %s, but the model's data %s", units.Plural(of.Rows, "sample"), units.Count(n))
	case len(r.Files) > 0:
		return errtext.Sprintf("the data have as many samples, features and labels as the model's data, but other values or "+
			"names of samples; the model's data were also read with %s", errtext.Option(strings.ReplaceAll(r.Files[0], "_",
			"-"), ""))
	}
	return "the data have other values, or the samples have another order or other names"
}

// job returns the job that trains the model again, and adds folds and weights to data. reason says why they are
// missing.
func (c *verifyCmd) job(a *cli.App, of *round.Job, data *local.Data) (j *round.Job, reason errtext.Text, err error) {
	again := *of
	again.Predictions, again.PredictedRows, again.LinearSamples, again.NoModel, again.Screen = 0, 0, 0, false, false
	if reason, err = c.folds(a, &again.Split, data); reason != "" || err != nil || of.Weights == "" {
		return &again, reason, err
	}
	if c.InitFrom == "" {
		return nil, errtext.Sprintf("its training began from weights with the digest %s: give their file with {init-from}",
			of.Weights), nil
	}
	b, err := os.ReadFile(c.InitFrom)
	if err != nil {
		return nil, "", err
	}
	w, err := network.ReadWeights(b)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", c.InitFrom, err)
	}
	if w.Digest != of.Weights {
		return nil, errtext.Sprintf("%s has weights with the digest %s, but its training began from %s", c.InitFrom, w.Digest,
			of.Weights), nil
	}
	data.Weights = w.File
	return &again, "", nil
}

// folds sets data.Assigned to the list of folds that a split names: the groups of the data, the file of --split, or
// folds that a seed draws.
func (c *verifyCmd) folds(a *cli.App, s *dataset.Split, data *local.Data) (reason errtext.Text,
	err error) {
	m := data.Manifest
	if of := s.Groups; of != "" && (m.Groups == nil || m.Groups.Digest != of) {
		return errtext.Sprintf("its validation samples are whole groups, in a list with the digest %s: read the data with "+
			"the same {groups}", of), nil
	}
	if g := m.Groups; s.Assigned == "" || g != nil && g.Digest == s.Assigned {
		return "", nil
	}
	if c.Split != "" {
		list, err := read.SplitFor(m.Divided(), c.Split)
		if err != nil {
			return "", err
		}
		if data.Assigned = list.Assigned; foldsDigest(list.Assigned) != s.Assigned {
			return errtext.Sprintf("%s has folds with the digest %s, but its folds have the digest %s", c.Split,
				foldsDigest(list.Assigned), s.Assigned), nil
		}
		return "", nil
	}
	for k := 2; k <= s.Folds; k++ {
		if s.Folds%k != 0 {
			continue
		}
		seed := s.Seed - uint64(s.Fold/k) // each repeat takes the next seed
		if c.FoldSeed != "" {
			if _, err := fmt.Sscan(c.FoldSeed, &seed); err != nil {
				return "", cli.Usagef("{fold-seed=%s}: want a whole number", c.FoldSeed)
			}
		}
		for _, way := range []string{folds.ScikitLearn, folds.Seeded} {
			if list := drawn(way, k, s, seed, m.Divided().Rows); foldsDigest(list) == s.Assigned {
				data.Assigned = list
				return "", nil
			}
		}
	}
	return errtext.Sprintf("its folds are from a list with the digest %s: give the file with {split}, or the seed that "+
		"drew them with {fold-seed}", s.Assigned), nil
}

// drawn returns the folds that a seed draws, with repeats of k folds; nil if there are none.
func drawn(way string, k int, s *dataset.Split, seed uint64, rows int) []uint16 {
	scheme := folds.Scheme{Way: way, Folds: k, Seed: seed, Repeats: s.Folds / k}
	var lists []*dataset.SplitList
	for repeat := range scheme.Repeats {
		list, err := scheme.Divide(&folds.Rows{Count: rows}, repeat)
		if err != nil {
			return nil
		}
		lists = append(lists, list)
	}
	if !s.Overlap {
		return lists[0].Assigned
	}
	return folds.Joined(lists, rows).Assigned
}

// trainHere trains in this process.
func (c *verifyCmd) trainHere(a *cli.App, j *round.Job, data *local.Data) (*pipeline.Outcome, error) {
	defer garbage.Frugal.Begin()()
	m := progress.New(a)
	m.Quiet = a.JSON
	defer m.Clear()
	shown := progress.StartPulse(m)
	defer shown.Stop()
	return local.Run(a.Ctx, j, data, local.Options{Lanes: c.ThreadsFlag.Number(), Progress: shown.Training})
}

// trainThere trains on a cluster as the job says, and deletes the job. The dataset stays there. reason says why the
// cluster would train another model.
func (c *verifyCmd) trainThere(a *cli.App, digest string, j *round.Job, data *local.Data) (o *pipeline.Outcome,
	file []byte, reason errtext.Text, err error) {
	s := specOf(j, data.Manifest)
	resolved, err := spec.Resolve(s, data.Manifest)
	if err != nil {
		return nil, nil, "", err
	}
	if key := otherKey(j, resolved); key != "" {
		return nil, nil, errtext.Sprintf("a job on a cluster would differ from its job in %q; give {local}", key), nil
	}
	cl, err := c.Connect(a)
	if err != nil {
		return nil, nil, "", err
	}
	if s.Dataset, err = c.imported(a, cl); err != nil {
		return nil, nil, "", err
	}
	if s.Name, err = freeName(a, cl, "verify-"+digest[:12]); err != nil {
		return nil, nil, "", err
	}
	var sent [][]byte
	if s.Assigned != "" {
		sent = append(sent, dataset.EncodeFolds(data.Assigned))
	}
	if len(data.Weights) > 0 {
		sent = append(sent, data.Weights)
	}
	var submitted *protocol.JobInfo
	err = cl.Blobs().Sending(a.Ctx, sent, func() error {
		submitted, err = cl.Jobs().SubmitRequest(a.Ctx, protocol.SubmitRequest{Spec: s})
		return err
	})
	if errors.Is(err, context.Canceled) {
		return nil, nil, "", cli.Interrupted("interrupted; the job may have been submitted: see coppice job list")
	}
	if err != nil {
		return nil, nil, "", err
	}
	cl.Faithful = true // the cluster keeps the job, however long it is away
	job, err := jobcmd.Watch(a, cl, submitted)
	if errors.Is(err, context.Canceled) {
		err = jobcmd.Withdraw(a, cl, submitted, c.Wait)
	}
	if err != nil {
		return nil, nil, "", err
	}
	if _, o, err = results.Finished(job); err != nil {
		return nil, nil, "", err
	}
	jobcmd.WarnSuspect(a, job)
	if file, err = cl.Models().Get(a.Ctx, job.Name); err != nil {
		return nil, nil, "", err
	}
	_, err = cl.Jobs().Delete(a.Ctx, strconv.FormatUint(job.ID, 10))
	return o, file, "", err
}

// imported imports the data file, or finds its dataset on the cluster, and returns the name.
func (c *verifyCmd) imported(a *cli.App, cl *client.Client) (string, error) {
	src, checks, err := c.OpenWith(a, c.Data, c.ValidationFlag)
	if err != nil {
		return "", err
	}
	m := progress.New(a)
	m.Quiet = a.JSON
	defer m.Clear()
	set, err := cl.Datasets().ImportFree(a.Ctx, protocol.DatasetPut{Name: dataflags.DatasetName(c.Data)}, src,
		m.Reading(a.Ctx, "importing data", checks))
	if err != nil {
		return "", err
	}
	return set.Name, nil
}

// freeName returns a name that no job has.
func freeName(a *cli.App, cl *client.Client, name string) (string, error) {
	for n := 1; ; n++ {
		free := name
		if n > 1 {
			free = fmt.Sprintf("%s-%d", name, n)
		}
		switch _, err := cl.Jobs().Get(a.Ctx, free); {
		case client.IsNotFound(err):
			return free, nil
		case err != nil:
			return "", err
		}
	}
}

// specOf returns the spec whose job is j, without the name of the dataset.
func specOf(j *round.Job, m *dataset.Manifest) protocol.Spec {
	seed, none := j.Seed, int64(0)
	s := protocol.Spec{
		Algorithm: j.Algorithm, Seed: &seed, TestFraction: j.Split.TestFraction, TrainFraction: j.Split.TrainFraction,
		Folds: j.Split.Folds, Assigned: j.Split.Assigned, Overlap: j.Split.Overlap, KeepPredictions: &none,
		Measures: j.Measures, Clip: j.Clip, WeightedMeasures: j.WeightedMeasures, Mask: j.Split.Mask.String(),
		Set: make(map[string]string),
	}
	if s.Measures == pipeline.EveryMeasures { // of a run of an experiment: all measures that models have
		s.Measures = pipeline.AllMeasures
		if registry.Output(j.Algorithm) == algorithms.Number {
			s.Measures = pipeline.TenMeasures
		}
	}
	if s.Folds > 0 {
		s.Fold = &j.Split.Fold
	}
	if g := m.Groups; g != nil && s.Assigned == g.Digest && !s.Overlap {
		s.Assigned, s.Folds, s.GroupFolds = "", 0, true
	}
	if e := j.Enhance; e != nil {
		s.Enhance, s.Normalise, s.Binarise = e.Method, e.Normalise, &e.Binarise
	}
	for _, p := range spec.Settings(j.Params) {
		s.Set[p.Key] = p.Value
	}
	return s
}

// otherKey returns the first key of a job's JSON that decides the model and differs between two jobs; empty: none.
func otherKey(a, b *round.Job) string {
	var keys [2]map[string]json.RawMessage
	for i, j := range []*round.Job{a, b} {
		of := *j
		of.Predictions, of.PredictedRows, of.LinearSamples, of.NoModel, of.Measures, of.Clip = 0, 0, 0, false, "", ""
		of.Screen, of.WeightedMeasures = false, false
		text, err := json.Marshal(&of)
		if err != nil || json.Unmarshal(text, &keys[i]) != nil {
			return "settings"
		}
	}
	for _, key := range []string{"algorithm", "seed", "dataset", "split", "folds", "fill", "enhance", "bounds", "settings",
		"weights", "numerics", "runs", "cells"} {
		if string(keys[0][key]) != string(keys[1][key]) {
			return key
		}
	}
	return ""
}

// sameMeasures reports whether a training gave the measures in the provenance of a model. Another version may have
// other measures besides the ten.
func sameMeasures(p *pipeline.Provenance, o *pipeline.Outcome) bool {
	type told struct {
		Steps, Best     uint64
		On              string
		Rows            pipeline.Counts
		Model, Baseline measures.Report
		Added           *pipeline.Added
	}
	inFile := told{Steps: p.Steps, Best: p.BestStep, On: p.EvaluatedOn, Rows: p.Rows, Model: p.Measures,
		Baseline: p.MeanPredictor, Added: p.Added}
	now := told{Steps: o.Steps, Best: o.BestStep, On: o.EvaluatedOn, Rows: o.Rows, Model: o.Measures,
		Baseline: o.MeanPredictor, Added: o.Added}
	if p.Version != version.String {
		inFile.Added, now.Added = nil, nil
	}
	a, err := json.Marshal(inFile)
	b, failed := json.Marshal(now)
	return err == nil && failed == nil && bytes.Equal(a, b)
}

// otherText returns what a model file says otherwise than the file of the same training: what predictions read besides
// the model, and no digest has. Names, levels and shapes are compared if both files have them.
func otherText(in, now *pipeline.Provenance) string {
	type pair struct {
		name string
		a, b any
	}
	none := func(v any) bool { return reflect.ValueOf(v).IsZero() }
	for _, l := range []pair{
		{"names of labels", in.LabelNames, now.LabelNames},
		{"names of features", in.FeatureNames, now.FeatureNames},
		{"levels of categories", levels(in), levels(now)},
		{"shapes of images", in.Shape, now.Shape},
	} {
		if !none(l.a) && !none(l.b) && !reflect.DeepEqual(l.a, l.b) {
			return l.name
		}
	}
	for _, l := range []pair{
		{"types of labels", in.LabelType, now.LabelType},
		{"replacements of missing features", in.Fill, now.Fill},
		{"mean labels", in.MeanLabel, now.MeanLabel},
		{"medians", in.Median, now.Median},
	} {
		if !reflect.DeepEqual(l.a, l.b) {
			return l.name
		}
	}
	return ""
}

// levels returns the levels of categories. Their columns may have other places in another file.
func levels(p *pipeline.Provenance) (all [][]string) {
	for _, k := range p.Reading.Categories {
		all = append(all, k.Levels)
	}
	return all
}

// foldsDigest returns the digest by which a split names a list of folds.
func foldsDigest(list []uint16) string {
	sum := sha256.Sum256(dataset.EncodeFolds(list))
	return hex.EncodeToString(sum[:])
}
