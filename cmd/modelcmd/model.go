package modelcmd

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"strings"

	"github.com/coppice-ldl/coppice/algorithms/kit/network"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/connect"
	"github.com/coppice-ldl/coppice/cmd/dataflags"
	"github.com/coppice-ldl/coppice/cmd/progress"
	"github.com/coppice-ldl/coppice/cmd/results"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/job/predict"
	"github.com/coppice-ldl/coppice/job/spec"
	"github.com/coppice-ldl/coppice/protocol"
)

type listCmd struct {
	Limit     int    `default:"100" placeholder:"N" help:"List only the N newest models; with --sort or --after, the first N. 0: all models."`
	Algorithm string `placeholder:"NAME" help:"List only models of this algorithm."`
	Dataset   string `placeholder:"NAME" help:"List only models of this dataset."`
	Sort      string `placeholder:"KEY" help:"Order of the list: submitted (the default), time, name, algorithm or dataset. A - before the word sorts in descending order."`
	After     string `placeholder:"NAME" help:"List only models that follow the model with this name in the order of the list."`

	connect.ChooseFlags
	connect.ServerFlags
}

// Run implements `coppice model list`.
func (c *listCmd) Run(a *cli.App) error {
	q := protocol.ModelQuery{Algorithm: c.Algorithm, Dataset: c.Dataset}
	list := connect.ListFlags{ChooseFlags: c.ChooseFlags, Limit: c.Limit, After: c.After}
	if err := list.Query(&q.ListQuery, q.Params(), c.Sort); err != nil {
		return err
	}
	newest := c.Sort == "" && c.After == "" && c.Limit > 0 && c.Limit < math.MaxInt
	if newest {
		q.Limit, q.Newest = 0, c.Limit+1 // one more than is listed tells that there are more
	}
	cl, err := c.Connect(a)
	if err != nil {
		return err
	}
	models, err := cl.Models().Choose(a.Ctx, q)
	if err != nil {
		return err
	}
	if newest && len(models) > c.Limit {
		models = models[len(models)-c.Limit:]
		defer a.Note("the newest %s; --limit 0 lists all", units.Plural(c.Limit, "model"))
	}
	if models == nil {
		models = []protocol.ModelInfo{}
	}
	return a.Print(models, func(w io.Writer) {
		cli.WriteTable(w, []string{"name", "job", "algorithm", "dataset", "size", "trained", "digest"}, models,
			func(m protocol.ModelInfo) []string {
				return []string{m.Name, fmt.Sprint(m.Job), m.Algorithm, m.Dataset, units.Format(int64(m.Bytes)), cli.Time(m.Time),
					cli.ShortDigest(m.Digest)}
			}, 2, 5)
	})
}

type showCmd struct {
	Model string `arg:"" placeholder:"FILE|NAME" help:"Model file, or model of the cluster: the name of its job, or job/fold."`
	Tree  *int   `placeholder:"N" help:"Print tree N of a forest of decision trees, counted from 0, instead of the description."`

	connect.ServerFlags
}

// forest is a model with decision trees that can be printed.
type forest interface {
	TreeText(n int, featureNames, labelNames []string) (string, error)
}

// tree prints one tree of a model.
func (c *showCmd) tree(a *cli.App, m *predict.Model) error {
	f, ok := m.Model.(forest)
	if !ok {
		return cli.Usagef("{tree}: a model of %s has no decision trees", m.File.Algorithm)
	}
	text, err := f.TreeText(*c.Tree, m.Provenance.FeatureNames, m.Provenance.LabelNames)
	if err != nil {
		return cli.Usage(err)
	}
	v := struct {
		Tree int    `json:"tree"`
		Text string `json:"text"`
	}{*c.Tree, text}
	return a.Print(v, func(w io.Writer) { io.WriteString(w, text) })
}

// Run implements `coppice model show`.
func (c *showCmd) Run(a *cli.App) error {
	if c.Tree != nil && *c.Tree < 0 {
		return cli.Usagef("{tree=%d}: trees are counted from 0", *c.Tree)
	}
	m, name, err := c.load(a)
	if err != nil {
		return err
	}
	if c.Tree != nil {
		return c.tree(a, m)
	}
	s := newModelShown(m, c.Model, name)
	return a.Print(s, s.text)
}

// load reads a model file or a model of the cluster. dataset is the name of its dataset on the cluster.
func (c *showCmd) load(a *cli.App) (m *predict.Model, dataset string, err error) {
	if _, err := os.Stat(c.Model); err == nil {
		m, err = predict.Open(c.Model)
		return m, "", err
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, "", err
	}
	cl, err := connect.Try(a, &c.ServerFlags)
	if err != nil {
		return nil, "", err
	}
	b, err := cl.Models().Get(a.Ctx, c.Model)
	if err != nil {
		return nil, "", fmt.Errorf("%s: there is no such file, and no such model of the cluster: %w", c.Model, err)
	}
	if m, err = predict.Decode(b); err != nil {
		return nil, "", err
	}
	name, _, _ := strings.Cut(c.Model, "/")
	j, err := cl.Jobs().Get(a.Ctx, name)
	if client.IsNotFound(err) { // the argument is a digest
		return m, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	return m, j.Dataset, nil
}

// loadModel reads a model file or a model of the cluster. dataset is the name of its dataset on the cluster.
func loadModel(a *cli.App, model string, s *connect.ServerFlags) (m *predict.Model, dataset string, err error) {
	return (&showCmd{Model: model, ServerFlags: *s}).load(a)
}

type downloadCmd struct {
	Name string `arg:"" help:"Name of the model: the name of its job, or job/fold."`
	Out  string `required:"" placeholder:"FILE" help:"File to write; - for stdout."`

	connect.ServerFlags
}

// Run implements `coppice model download`.
func (c *downloadCmd) Run(a *cli.App) error {
	cl, err := c.Connect(a)
	if err != nil {
		return err
	}
	out, err := a.CreateOutput(c.Out)
	if err != nil {
		return err
	}
	defer out.Discard()
	b, err := cl.Models().Get(a.Ctx, c.Name)
	if err != nil {
		return err
	}
	m, err := predict.Decode(b)
	if err != nil {
		return err
	}
	if _, err := out.Write(b); err != nil {
		return err
	}
	if err := out.Commit(); err != nil {
		return err
	}
	r := struct {
		Name   string `json:"name"`
		Digest string `json:"digest"`
		Bytes  int    `json:"bytes"`
		Out    string `json:"out"`
	}{c.Name, m.File.Digest, len(b), c.Out}
	return a.PrintBeside(c.Out, r, func(w io.Writer) {
		fmt.Fprintf(w, "model %s (%s, digest %s): %s\n", r.Name, units.Format(int64(r.Bytes)), cli.ShortDigest(r.Digest),
			cli.OutputName(r.Out))
	})
}

// modelShown is what `model show` prints.
type modelShown struct {
	Name     string `json:"name"`
	Digest   string `json:"digest"`
	Dataset  string `json:"dataset,omitempty"` // name, if a cluster knows it
	Features int    `json:"features"`
	Labels   int    `json:"labels"`
	Predicts string `json:"predicts"`
	*pipeline.Provenance
	Describe []described `json:"describe"`
	Repeat   string      `json:"repeat"`

	on []*dataset.Manifest // datasets that the model may have been trained on
}

type described struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

func newModelShown(m *predict.Model, name, of string) *modelShown {
	s := &modelShown{Name: name, Digest: m.File.Digest, Dataset: of, Predicts: m.Output().String(),
		Provenance: m.Provenance}
	s.Features, s.Labels = m.Shape()
	for _, d := range m.Describe() {
		s.Describe = append(s.Describe, described{d[0], d[1]})
	}
	s.on = s.datasets()
	s.Repeat = repeat(m.Provenance, of, spec.Settings(m.Provenance.Job.Params))
	return s
}

// datasets returns datasets with different defaults that the model may have been trained on. A model file does not say
// how many values were 0, nor whether samples had groups. It returns none if splits overlap, because then the number of
// samples is not known.
func (s *modelShown) datasets() []*dataset.Manifest {
	if s.Job.Split.Overlap {
		return nil
	}
	rows := s.Rows.Train + s.Rows.Validation + s.Rows.Test
	dense := dataset.Manifest{
		Rows: int(rows), Features: s.Features, Labels: s.Labels, NonZeros: int64(rows) * int64(s.Features),
		LabelType: s.LabelType, Shape: s.Provenance.Shape, HasValues: true, HasIntervals: true,
	}
	sparse, groups := dense, dense
	sparse.NonZeros, sparse.Sparse = max(1, dense.NonZeros/100), true
	groups.Groups = &dataset.Groups{Names: []string{"a", "b"}}
	if s.Job.Split.ValidationFrom > 0 {
		own := &dataset.OwnValidation{Rows: int(s.Rows.Validation), FileRows: int(s.Rows.Validation)}
		dense.Validation, sparse.Validation, groups.Validation = own, own, own
	}
	return []*dataset.Manifest{&dense, &sparse, &groups}
}

// repeat writes the command that trains the same model again. settings must decide all settings of the model.
func repeat(p *pipeline.Provenance, of string, settings []param.Pair) string {
	j := p.Job
	parts := []string{"coppice train"}
	if of != "" {
		parts = append(parts, "--dataset "+of)
	} else {
		parts = append(parts, "--local --data FILE")
		if j.Split.ValidationFrom > 0 {
			parts = append(parts, "--validation FILE2")
		}
		if flags := dataflags.ReadingFlags(&p.Reading); flags != "" {
			parts = append(parts, flags)
		}
	}
	parts = append(parts, "--algorithm "+j.Algorithm, fmt.Sprintf("--seed %d", j.Seed))
	switch {
	case j.Split.Overlap:
		parts = append(parts, "--split SPLITS.csv")
	case p.Group != "":
		parts = append(parts, "--folds groups")
	case j.Split.Assigned != "":
		parts = append(parts, "--split FOLDS.csv")
	case j.Split.Folds > 0:
		parts = append(parts, fmt.Sprintf("--folds %d", j.Split.Folds))
	case j.Split.TestFraction > 0:
		parts = append(parts, fmt.Sprintf("--test-fraction %v", j.Split.TestFraction))
	}
	if f := j.Split.TrainFraction; f > 0 {
		parts = append(parts, fmt.Sprintf("--train-fraction %v", f))
	}
	if j.Split.Folds > 0 {
		parts = append(parts, fmt.Sprintf("--fold %d", j.Split.Fold))
	}
	if mask := j.Split.Mask.String(); mask != "" {
		parts = append(parts, "--mask "+mask)
	}
	parts = append(parts, j.Enhance.Flags()...)
	for _, pair := range results.KeyValues(settings) {
		if j.Weights != "" && of == "" && pair == network.SettingInitFrom+"="+j.Weights {
			parts = append(parts, "--init-from WEIGHTS")
			continue
		}
		parts = append(parts, "--set "+pair)
	}
	return strings.Join(parts, " ")
}

// labelsAre says what the labels are. Bounds of targets have the names of the labels.
func (s *modelShown) labelsAre() string {
	b := s.LabelType.Bounds
	if b == nil || len(b.Low) != len(s.LabelNames) {
		return s.LabelType.String(s.Labels)
	}
	var all []string
	for i, low := range b.Low {
		all = append(all, fmt.Sprintf("%s %.6g to %.6g", s.LabelNames[i], low, b.High[i]))
	}
	return "targets in the bounds: " + cli.NameList(all)
}

func (s *modelShown) text(w io.Writer) {
	j := s.Job
	lines := [][2]string{
		{"model", s.Name},
		{"digest", s.Digest},
		{"algorithm", fmt.Sprintf("%s (arithmetic version %d, Coppice %s)", j.Algorithm, j.Numerics, s.Version)},
		{"dataset", strings.TrimSpace(s.Dataset + " " + j.Dataset)},
		{"shape", strings.TrimSuffix(fmt.Sprintf("%s, %s, images of %s", units.Plural(s.Features, "feature"),
			units.Plural(s.Labels, "label"), s.Shape), ", images of ")},
		{"feature names", cli.NameList(s.FeatureNames)},
		{"label names", cli.NameList(s.LabelNames)},
		{"labels are", s.labelsAre()},
		{"read with", cmp.Or(dataflags.ReadingFlags(&s.Reading), "no flags")},
		{"dropped", dataflags.Dropped(&s.Reading)},
		{"categories", dataflags.Categories(&s.Reading)},
		{"predicts", s.Predicts},
		{"seed", fmt.Sprint(j.Seed)},
		{"split", results.Split(j, s.Group)},
		{"samples", results.Samples(s.Rows, 0)},
		{"settings", results.ChangedSettings(j.Algorithm, j.Params, s.on...)},
		{"steps", results.Steps(s.Steps, s.BestStep, s.RefitSteps)},
		{"training loss", progress.LossOn(j, s.Loss)},
	}
	for _, d := range s.Describe {
		lines = append(lines, [2]string{d.Name, d.Value})
	}
	cli.WritePairs(w, lines)
	fmt.Fprintln(w)
	results.WriteMeasures(w, "Measures on the "+s.EvaluatedOn+": mean and standard deviation over samples"+
		results.HowText(j.Clip, j.WeightedMeasures), s.Measures, s.MeanPredictor, s.Added)
	results.WriteAgainst(w, j.Algorithm, s.EvaluatedOn, s.Against)
	results.WriteLinear(w, j.Algorithm, s.Linear, s.Rows, s.Measures)
	again := "To train the model again:"
	if s.Dataset == "" {
		again = "To train the model again, with the same data in FILE:"
	}
	fmt.Fprintf(w, "\n%s\n%s\n", again, repeat(s.Provenance, s.Dataset,
		spec.Changed(j.Algorithm, spec.Settings(j.Params), s.on...)))
}

type deleteCmd struct {
	Name string `arg:"" help:"Name or number of the model's job; the models of all folds are deleted together."`

	connect.ChangeFlags
}

// Run implements `coppice model delete`.
func (c *deleteCmd) Run(a *cli.App) error {
	return connect.Ask(a, c, func(cl *client.Client) (*protocol.JobInfo, error) {
		return cl.Models().Delete(a.Ctx, c.Name)
	}, func(w io.Writer, j *protocol.JobInfo) {
		fmt.Fprintf(w, "the model of job %s was deleted; the job is kept: see %s\n", j.Name, a.Command("job show "+j.Name))
		fmt.Fprintln(w, connect.FreedLater())
	})
}
