package modelcmd

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/connect"
	"github.com/coppice-ldl/coppice/cmd/dataflags"
	"github.com/coppice-ldl/coppice/cmd/progress"
	"github.com/coppice-ldl/coppice/cmd/results"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/dataset/read"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/job/predict"
	"github.com/coppice-ldl/coppice/job/spec"
)

type diffCmd struct {
	A        string `arg:"" placeholder:"A" help:"Model file, or model of the cluster: the name of its job, or job/fold."`
	B        string `arg:"" placeholder:"B" help:"The model to compare with A."`
	Data     string `placeholder:"FILE" help:"Also compare the predictions of the samples in FILE; labels in the file are ignored."`
	ExitCode bool   `help:"Exit with 1 if the models differ, as git diff --exit-code (default: with 0)."`

	cli.ThreadsFlag
	dataflags.UnseenFlag
	dataflags.FileFlags
	connect.ServerFlags
}

// Help implements kong's HelpProvider.
func (diffCmd) Help() string {
	return `The first table has what differs between the trainings: data, hyperparameters of one algorithm, seed and version. The
second table has the measures of both models. Two models are the same if their digests are equal. The exit code is 0 in
both cases; with --exit-code, it is 1 if the digests differ.`
}

// difference is something that differs between two models.
type difference struct {
	What string `json:"what"` // data, training or hyperparameter
	Name string `json:"name"`
	A    string `json:"a"`
	B    string `json:"b"`
}

// measureDifference is a measure of two models.
type measureDifference struct {
	Name           string   `json:"name"`
	Title          string   `json:"title"`
	A              *float64 `json:"a"` // null if the model does not have the measure
	B              *float64 `json:"b"`
	HigherIsBetter bool     `json:"higher_is_better"`
}

// predictionDifference compares the predictions of two models.
type predictionDifference struct {
	Data    string `json:"data"`
	Samples int    `json:"samples"`
	// Same is the number of samples whose predictions have the same bits.
	Same int `json:"same"`
	// Mean and Greatest are of the absolute differences of all predicted values.
	Mean     float64 `json:"mean_absolute"`
	Greatest float64 `json:"greatest_absolute"`
	Row      string  `json:"greatest_row,omitempty"` // the sample with the greatest difference
	// OtherLabel is the number of samples with another most probable label.
	OtherLabel int `json:"other_label"`
}

// modelDifference is what `coppice model diff` prints.
type modelDifference struct {
	A           comparedModel         `json:"a"`
	B           comparedModel         `json:"b"`
	Same        bool                  `json:"same"` // true if the digests are equal
	Differences []difference          `json:"differences"`
	Measures    []measureDifference   `json:"measures"`
	Predictions *predictionDifference `json:"predictions,omitempty"`
}

type comparedModel struct {
	Model       string `json:"model"`
	Digest      string `json:"digest"`
	Algorithm   string `json:"algorithm"`
	EvaluatedOn string `json:"evaluated_on"`
}

// Run implements `coppice model diff`.
func (c *diffCmd) Run(a *cli.App) error {
	if err := c.ThreadsFlag.Check(); err != nil {
		return err
	}
	if given := c.FileFlags.Given(); c.Data == "" && len(given) > 0 {
		return cli.Usagef("%s says how to read a data file: it needs {data}", cli.FlagText(given[0].Name))
	}
	var of [2]*predict.Model
	var shown [2]*modelShown
	for i, name := range []string{c.A, c.B} {
		m, dataset, err := loadModel(a, name, &c.ServerFlags)
		if err != nil {
			return err
		}
		m.Threads = c.ThreadsFlag.Number()
		of[i], shown[i] = m, newModelShown(m, name, dataset)
	}
	d := &modelDifference{A: comparedOf(shown[0]), B: comparedOf(shown[1]), Same: of[0].File.Digest == of[1].File.Digest,
		Differences: differences(shown[0], shown[1]), Measures: measuresOf(shown[0], shown[1])}
	if c.Data != "" {
		var err error
		if d.Predictions, err = c.predictions(a, of[0], of[1]); err != nil {
			return err
		}
	}
	if err := a.Print(d, d.text); err != nil || !c.ExitCode || d.Same {
		return err
	}
	return errors.New("the models differ")
}

func comparedOf(s *modelShown) comparedModel {
	return comparedModel{Model: s.Name, Digest: s.Digest, Algorithm: s.Job.Algorithm, EvaluatedOn: s.EvaluatedOn}
}

// differences lists what differs between the trainings of two models. Hyperparameters of different algorithms are not
// compared.
func differences(x, y *modelShown) []difference {
	all := []difference{}
	put := func(what, name, a, b string) {
		if a != b {
			all = append(all, difference{What: what, Name: name, A: cmp.Or(a, "-"), B: cmp.Or(b, "-")})
		}
	}
	names := func(list []string) string {
		var quoted []string
		for _, name := range list {
			quoted = append(quoted, cli.NameList([]string{name}))
		}
		return strings.Join(quoted, ", ")
	}
	samples := func(s *modelShown) string {
		return fmt.Sprintf("%d, %d, %d", s.Rows.Train, s.Rows.Validation, s.Rows.Test)
	}
	put("data", "digest", x.Job.Dataset, y.Job.Dataset)
	put("data", "features", fmt.Sprint(x.Features), fmt.Sprint(y.Features))
	put("data", "labels", fmt.Sprint(x.Labels), fmt.Sprint(y.Labels))
	put("data", "feature names", names(x.FeatureNames), names(y.FeatureNames))
	put("data", "label names", names(x.LabelNames), names(y.LabelNames))
	put("data", "labels are", x.labelsAre(), y.labelsAre())
	put("data", "read with", dataflags.ReadingFlags(&x.Reading), dataflags.ReadingFlags(&y.Reading))
	put("data", "missing values", x.Missing, y.Missing)
	put("data", "samples for training, validation, testing", samples(x), samples(y))
	put("training", "algorithm", x.Job.Algorithm, y.Job.Algorithm)
	put("training", "seed", fmt.Sprint(x.Job.Seed), fmt.Sprint(y.Job.Seed))
	put("training", "split", results.Split(x.Job, x.Group), results.Split(y.Job, y.Group))
	put("training", "hidden degrees", x.Job.Split.Mask.String(), y.Job.Split.Mask.String())
	put("training", "label enhancement", enhanceText(x.Job.Enhance), enhanceText(y.Job.Enhance))
	put("training", "initial weights", x.Job.Weights, y.Job.Weights)
	put("training", "steps", results.Steps(x.Steps, x.BestStep, x.RefitSteps), results.Steps(y.Steps, y.BestStep,
		y.RefitSteps))
	put("training", "Coppice", x.Version, y.Version)
	put("training", "arithmetic version", fmt.Sprint(x.Job.Numerics), fmt.Sprint(y.Job.Numerics))
	if x.Job.Algorithm != y.Job.Algorithm { // their hyperparameters mean different things
		return all
	}
	mine, others := spec.Settings(x.Job.Params), spec.Settings(y.Job.Params)
	value := make(map[string]string)
	for _, s := range others {
		value[s.Key] = s.Value
	}
	for _, s := range mine {
		put("hyperparameter", s.Key, s.Value, value[s.Key])
		delete(value, s.Key)
	}
	for _, s := range others {
		put("hyperparameter", s.Key, "", value[s.Key])
	}
	return all
}

// measuresOf lists the measures of two models.
func measuresOf(x, y *modelShown) []measureDifference {
	all := []measureDifference{}
	finite := func(v float64) *float64 {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil
		}
		return &v
	}
	_, mine := pipeline.Compare(x.Measures, x.MeanPredictor, x.Added)
	_, others := pipeline.Compare(y.Measures, y.MeanPredictor, y.Added)
	for _, m := range mine {
		all = append(all, measureDifference{Name: m.Name, Title: m.Title, A: finite(m.Model.Mean),
			HigherIsBetter: m.HigherIsBetter})
	}
	for _, m := range others {
		i := slices.IndexFunc(all, func(d measureDifference) bool { return d.Name == m.Name })
		if i < 0 {
			i = len(all)
			all = append(all, measureDifference{Name: m.Name, Title: m.Title, HigherIsBetter: m.HigherIsBetter})
		}
		all[i].B = finite(m.Model.Mean)
	}
	return all
}

// allPredictions are the predictions of a model.
type allPredictions struct {
	width  int
	names  []string
	values []float32
}

// predictions compares the predictions of the samples of a file.
func (c *diffCmd) predictions(a *cli.App, x, y *predict.Model) (*predictionDifference, error) {
	if !slices.Equal(x.Labels(), y.Labels()) || x.Output() != y.Output() {
		return nil, cli.Usagef("{data}: the models predict different labels, so that their predictions cannot be compared")
	}
	if c.Data == dataflags.Stdin {
		return nil, cli.Usagef("{data=-}: the file is read once for each model; give the name of a file")
	}
	mine, err := c.predict(a, x)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.A, err)
	}
	others, err := c.predict(a, y)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.B, err)
	}
	if !slices.Equal(mine.names, others.names) {
		return nil, fmt.Errorf("%s: the models leave out different samples because of missing values; give {missing}", c.Data)
	}
	d := &predictionDifference{Data: c.Data, Samples: len(mine.names)}
	if read.IsNamedArrays(c.Data) {
		d.Data = read.NamedArrays
	}
	for i, name := range mine.names {
		p, q := mine.values[i*mine.width:][:mine.width], others.values[i*mine.width:][:mine.width]
		if slices.Equal(p, q) {
			d.Same++
		}
		if dataset.Greatest(p) != dataset.Greatest(q) {
			d.OtherLabel++
		}
		for k := range p {
			by := math.Abs(float64(p[k]) - float64(q[k]))
			if d.Mean += by; by > d.Greatest {
				d.Greatest, d.Row = by, name
			}
		}
	}
	if n := len(mine.values); n > 0 {
		d.Mean /= float64(n)
	}
	return d, nil
}

// predict predicts the samples of the data file.
func (c *diffCmd) predict(a *cli.App, m *predict.Model) (*allPredictions, error) {
	flags := c.FileFlags // optionsFor changes them
	o, _, err := optionsFor(m, &flags, nil)
	if err != nil {
		return nil, err
	}
	c.UnseenFlag.Count(&o)
	src, _, err := read.OpenFor(c.Data, o, m.Schema())
	if err != nil {
		return nil, cli.BadData(err)
	}
	progress := progress.New(a)
	defer progress.Clear()
	p := new(allPredictions)
	err = m.PredictAll(src, progress.Reading(a.Ctx, "predicting", importer.Checks{}), func(b *predict.Block) error {
		for i := range b.Rows.N {
			p.width = len(b.Row(i))
			p.names, p.values = append(p.names, b.Name(i)), append(p.values, b.Row(i)...)
		}
		return nil
	})
	return p, err
}

func (d *modelDifference) text(w io.Writer) {
	lines := [][2]string{
		{"A", fmt.Sprintf("%s (%s, digest %s)", d.A.Model, d.A.Algorithm, cli.ShortDigest(d.A.Digest))},
		{"B", fmt.Sprintf("%s (%s, digest %s)", d.B.Model, d.B.Algorithm, cli.ShortDigest(d.B.Digest))},
	}
	verdict := "the models differ"
	if d.Same {
		verdict = "the models are the same: their digests are equal"
	}
	cli.WritePairs(w, append(lines, [2]string{"verdict", verdict}))
	if len(d.Differences) > 0 {
		fmt.Fprintln(w)
		cli.WriteTable(w, []string{"", "", "A", "B"}, d.Differences, func(x difference) []string {
			return []string{x.What, x.Name, shortened(x.A), shortened(x.B)}
		})
	}
	fmt.Fprintf(w, "\nMeasures of A on its %s, of B on its %s\n", d.A.EvaluatedOn, d.B.EvaluatedOn)
	cli.WriteTable(w, []string{"", "A", "B", "B - A", "better is"}, d.Measures, func(m measureDifference) []string {
		better := "lower"
		if m.HigherIsBetter {
			better = "higher"
		}
		by := math.NaN()
		if m.A != nil && m.B != nil {
			by = *m.B - *m.A
		}
		return []string{m.Title, measureText(m.A), measureText(m.B), cli.Measure(by), better}
	}, 2, 3, 4)
	if p := d.Predictions; p != nil {
		fmt.Fprintf(w, "\nPredictions of %s\n", p.Data)
		greatest := cli.Measure(p.Greatest)
		if p.Row != "" {
			greatest += ", in row " + p.Row
		}
		cli.WritePairs(w, [][2]string{
			{"samples", units.Count(p.Samples)}, {"with the same predictions", units.Count(p.Same)},
			{"with another most probable label", units.Count(p.OtherLabel)},
			{"mean absolute difference", cli.Measure(p.Mean)}, {"greatest difference", greatest},
		})
	}
}

func measureText(v *float64) string {
	if v == nil {
		return "-"
	}
	return cli.Measure(*v)
}

// shortened returns a text that fits into a table. -o json has the whole text.
func shortened(s string) string {
	const most = 40
	if r := []rune(s); len(r) > most {
		return string(r[:most-3]) + "..."
	}
	return s
}
