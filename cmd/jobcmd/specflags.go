package jobcmd

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/algorithms/kit/network"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/connect"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/read"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/experiment/folds"
	"github.com/coppice-ldl/coppice/internal/digests"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/job/spec"
	"github.com/coppice-ldl/coppice/protocol"
)

// SpecFlags say what to train, and override the spec file. All values are texts, so that flags and file are checked by
// the same table.
type SpecFlags struct {
	Data             string   `group:"what" placeholder:"FILE" help:"Data file to train on: .csv, .tsv, .libsvm, .arff, .parquet, .mat, .npz or .npy; - for stdin (see --data-format); or a JSON object with the .npy file of each array."`
	Dataset          string   `group:"what" placeholder:"NAME" help:"Dataset of the cluster to train on."`
	Algorithm        string   `group:"what" algorithms:"" placeholder:"NAME" help:"Algorithm (default: ldlf); \"coppice algorithm list\" lists all of them. best: the best of several, by validation."`
	Spec             string   `group:"what" placeholder:"FILE" help:"Job spec, a YAML file; flags override its keys."`
	Set              []string `group:"what" sep:"none" placeholder:"NAME=VALUE" help:"A setting of the algorithm; may be repeated. \"coppice algorithm show NAME\" lists the settings."`
	Seed             string   `group:"what" placeholder:"N" help:"Seed of the random numbers (default: 1)."`
	Members          string   `group:"what" seldom:"" placeholder:"A,B" help:"Members of an ensemble, as for --set members=A,B. A member may have settings, such as structrf:trees=100."`
	Budget           string   `group:"what" seldom:"" placeholder:"N" help:"With --algorithm best: work of all trainings in billions of multiply-additions, as for --set budget=N (default: 500)."`
	Steps            string   `group:"what" seldom:"" placeholder:"N" help:"Maximum number of steps, as for --set steps=N; early stopping may end training sooner."`
	TestFraction     string   `group:"test" placeholder:"F" help:"Fraction of the samples to hold out for testing."`
	TrainFraction    string   `group:"test" seldom:"" placeholder:"F" help:"Fraction of the samples for training and validation that is used (default: 1)."`
	Folds            string   `group:"test" placeholder:"K" help:"Cross-validate with K folds. groups: leave one group out at a time (see --groups). sklearn:K: as scikit-learn; see docs/reference/job-spec.md."`
	FoldSeed         string   `group:"test" seldom:"" placeholder:"N" help:"Seed that draws the folds of --folds (default: --seed)."`
	Fold             string   `group:"test" seldom:"" placeholder:"N" help:"Train only fold N of --folds or --split, counted from 0."`
	Split            string   `group:"test" placeholder:"FILE" help:"CSV or Parquet file with columns row and fold: train once for each fold. Or a column row and, for each split, a column in which 1 marks the test samples."`
	InitFrom         string   `group:"what" seldom:"" placeholder:"FILE|MODEL" help:"Initial weights of a network, as for --set init_from=FILE: a model file, an .npz file, or the name or digest of a model of the cluster."`
	Measures         string   `group:"test" seldom:"" placeholder:"all" help:"all: also print Spearman, Jensen-Shannon, zero-one loss and error probability."`
	Clip             string   `group:"test" seldom:"" placeholder:"pyldl" help:"pyldl: clip probabilities at 2.2e-16 in the measures in which PyLDL clips them. Training is not affected."`
	WeightedMeasures bool     `group:"test" seldom:"" help:"Weight measures by the weights of the samples (see --weights)."`
	Enhance          string   `group:"what" seldom:"" placeholder:"METHOD" help:"Label enhancement: train on distributions that are made of logical labels by lp, km, glle or logical. Test samples keep their labels; see docs/guides/enhance-labels.md."`
	Normalise        string   `group:"what" seldom:"" placeholder:"HOW" help:"With --enhance: how distributions are made of scores: softmax or sum (default: softmax)."`
	Binarise         string   `group:"what" seldom:"" placeholder:"T" help:"With --enhance: make logical labels of distributions: labels by falling probability until their sum exceeds T. Papers use 0.5 (default: the labels of the data are logical)."`
	Mask             string   `group:"test" seldom:"" placeholder:"F" help:"Hide degrees of the training samples, for experiments with incomplete labels: each with probability F, golden:F for the same degrees whatever the seed, unlabelled:F for all degrees of a sample. Measures are of whole labels."`
	Name             string   `group:"what" placeholder:"NAME" help:"Name of the job and its model."`
}

// Read combines the spec file and the flags.
func (s *SpecFlags) Read() (*spec.File, error) {
	if s.Data != "" && s.Dataset != "" {
		return nil, cli.Usagef("{data} and {dataset}: give only one of them")
	}
	f := new(spec.File)
	if s.Spec != "" {
		b, err := read.ReadText(s.Spec)
		if err != nil {
			return nil, err
		}
		if f, err = spec.Parse(s.Spec, b, s.Algorithm); err != nil {
			return nil, err
		}
	}
	if err := s.apply(&f.Spec); err != nil {
		return nil, err
	}
	if s.draws() && f.Spec.Folds == 0 {
		return nil, cli.Usagef("{fold-seed} and {folds=%sK} draw folds: want their number, such as {folds=10}", sklearnFolds)
	}
	if _, err := strconv.ParseUint(s.FoldSeed, 10, 64); err != nil && s.FoldSeed != "" {
		return nil, cli.Usagef("{fold-seed=%s}: want a whole number from 0 to %d", s.FoldSeed, uint64(math.MaxUint64))
	}
	if s.Data != "" {
		f.Spec.Dataset = ""
	} else if f.Spec.Dataset == "" {
		return nil, cli.Usagef("want data to train on: give {data=FILE} or {dataset=NAME}")
	}
	if s.Split == "" {
		return f, nil
	}
	if f.Folds != 0 || f.TestFraction != 0 || f.GroupFolds {
		return nil, cli.Usagef("{split} lists the test samples itself, so folds and a test fraction are not allowed with it")
	}
	if _, err := os.Stat(s.Split); errors.Is(err, fs.ErrNotExist) {
		return nil, cli.NotFound(fmt.Errorf("%s: no such file or folder", s.Split))
	}
	return f, nil
}

// apply sets what flags give, in the order of the table. An error names the flag instead of the key if both have the
// same name.
func (s *SpecFlags) apply(to *protocol.Spec) error {
	type setting struct{ flag, key, value string }
	division := setting{"--folds", "folds", strings.TrimPrefix(s.Folds, sklearnFolds)}
	if s.Folds == "groups" {
		division.key, division.value = "group_folds", "true"
	}
	if s.Folds != "" { // --folds replaces both keys of the file
		to.Folds, to.GroupFolds = 0, false
	}
	all := []setting{
		{"--algorithm", "algorithm", s.Algorithm}, {"--dataset", "dataset", s.Dataset},
		{"--name", "name", s.Name}, {"--seed", "seed", s.Seed},
		{"--test-fraction", "test_fraction", s.TestFraction},
		{"--train-fraction", spec.TrainFraction, s.TrainFraction}, {"--measures", "measures", s.Measures},
		{"--clip", "clip", s.Clip}, {"--mask", "mask", s.Mask}, division, {"--fold", "fold", s.Fold},
		{"--enhance", "enhance", s.Enhance}, {"--normalise", "normalise", s.Normalise},
		{"--binarise", "binarise", s.Binarise},
	}
	if s.WeightedMeasures {
		all = append(all, setting{"--weighted-measures", "weighted_measures", "true"})
	}
	for _, pair := range s.Set {
		all = append(all, setting{flag: "--set", value: pair})
	}
	all = append(all, setting{"--steps", "steps", s.Steps}, setting{"--members", "members", s.Members},
		setting{"--budget", "budget", s.Budget},
		setting{"--init-from", network.SettingInitFrom, s.InitFrom})
	given := make(map[string]string) // the flag that gave a key
	for _, f := range all {
		if f.flag == "--set" {
			var ok bool
			if f.key, f.value, ok = strings.Cut(f.value, "="); !ok {
				return cli.Usagef("{set=%s}: want key=value", f.key)
			}
		} else if f.value == "" {
			continue
		}
		if first, ok := given[f.key]; ok {
			return cli.Usagef("%s is given twice, by %s and by %s; give it once", f.key, cli.FlagText(first),
				cli.FlagText(f.flag))
		}
		given[f.key] = f.flag
		err := spec.Set(to, f.key, f.value)
		var p *param.Error
		switch {
		case err != nil && f.flag != "--set" && errors.As(err, &p):
			return cli.Usagef("%s: %s", cli.FlagText(f.flag), p.Reason)
		case err != nil && f.flag == "--set" && errors.As(err, &p):
			return cli.Usage(errtext.Errorf(errtext.WrongSetting, "{set=%s}: %s", p.Name, p.Reason))
		case err != nil:
			return cli.Usagef("%s %w", cli.FlagText(f.flag), err)
		}
	}
	return nil
}

// ResolvedJob is the job of a spec, with the contents of the files that the spec names by their digests.
type ResolvedJob struct {
	*round.Job
	Assigned []uint16 // the folds of --split; nil without it
	folds    []byte   // assigned, encoded
	Weights  []byte   // of init_from; nil if it names none
}

// Resolve makes the job of a spec on a dataset, so that errors name lines of the spec. It reads the folds of --split
// and the weights of init_from, and has the spec name them by their digests. cl is nil if there is no cluster.
func (s *SpecFlags) Resolve(a *cli.App, cl *client.Client, file *spec.File, m *dataset.Manifest) (*ResolvedJob, error) {
	r := new(ResolvedJob)
	if s.Split != "" || s.draws() {
		list, err := s.splitList(a, file, m)
		if err != nil {
			return nil, err
		}
		r.Assigned, r.folds = list.Assigned, dataset.EncodeFolds(list.Assigned)
		sum := sha256.Sum256(r.folds)
		file.Spec.Assigned, file.Spec.Folds, file.Spec.Overlap = hex.EncodeToString(sum[:]), list.Folds, list.Overlap
	}
	from := InitFrom(file)
	if from != "" {
		w, err := findWeights(a, cl, from)
		if err != nil {
			located := file.Locate(param.Errorf(network.SettingInitFrom, "%s: %v", from, err))
			if _, asked := errors.AsType[*unread](err); asked {
				return nil, cli.Formed(err, located) // the value may be right
			}
			return nil, located
		}
		file.Spec.Set[network.SettingInitFrom], r.Weights = w.Digest, w.File
	}
	var err error
	if r.Job, err = spec.Resolve(file.Spec, m); err != nil {
		return nil, file.Locate(err)
	}
	if from == "" {
		return r, nil
	}
	with, err := r.WithWeights(r.Weights)
	if err == nil {
		err = pipeline.FitsWeights(with, m)
	}
	return r, file.Locate(err)
}

// sklearnFolds begins the value of --folds that means the folds of scikit-learn.
const sklearnFolds = "sklearn:"

// draws reports whether the flags draw folds that the seed of the job does not draw.
func (s *SpecFlags) draws() bool { return s.FoldSeed != "" || strings.HasPrefix(s.Folds, sklearnFolds) }

// splitList returns the folds of --split, --folds sklearn:K or --fold-seed.
func (s *SpecFlags) splitList(a *cli.App, file *spec.File, m *dataset.Manifest) (*dataset.SplitList, error) {
	if s.Split != "" {
		return readFolds(a, s.Split, m)
	}
	rows := m.Divided().Rows
	scheme := folds.Scheme{Way: folds.Seeded, Folds: file.Spec.Folds, Seed: spec.DefaultSeed, Repeats: 1}
	if strings.HasPrefix(s.Folds, sklearnFolds) {
		scheme.Way = folds.ScikitLearn
	}
	if file.Spec.Seed != nil {
		scheme.Seed = *file.Spec.Seed
	}
	if s.FoldSeed != "" {
		scheme.Seed, _ = strconv.ParseUint(s.FoldSeed, 10, 64) // checked
	}
	list, err := scheme.Divide(&folds.Rows{Count: rows}, 0)
	if err != nil {
		return nil, cli.Usagef("{folds}: %w", err)
	}
	return folds.Joined([]*dataset.SplitList{list}, rows), nil
}

// readFolds reads the file of --split.
func readFolds(a *cli.App, path string, m *dataset.Manifest) (*dataset.SplitList, error) {
	list, err := read.SplitFor(m.Divided(), path)
	if err != nil {
		return nil, err
	}
	if list.Folds < 2 && !list.Overlap {
		return nil, fmt.Errorf("%s: want at least two folds, got one", path)
	}
	if m.HasRowNames {
		a.Note("%s: the column row is read as positions in the data file, counted from 0, and not as names of samples", path)
	}
	return list, nil
}

// InitFrom returns the value of init_from; empty if the spec has none.
func InitFrom(file *spec.File) string {
	if from := file.Spec.Set[network.SettingInitFrom]; from != "none" {
		return from
	}
	return ""
}

// unread is the error of weights that could not be read from a file or from the cluster.
type unread struct{ error }

func (u *unread) Unwrap() error { return u.error }

// findWeights reads the weights of a file, or else of a model of the cluster, or else of a blob that was sent before.
// The error is of type *unread if the file or the model does not exist, or could not be read.
func findWeights(a *cli.App, cl *client.Client, from string) (*network.Weights, error) {
	b, err := os.ReadFile(from)
	switch {
	case err == nil:
		return network.ReadWeights(b)
	case !errors.Is(err, fs.ErrNotExist):
		if of, ok := errors.AsType[*fs.PathError](err); ok {
			err = of.Err // the text has the path already
		}
		return nil, &unread{err}
	case cl == nil:
		if _, ok := digests.Parse(from); ok {
			return nil, errors.New("no such file; only a cluster finds weights by a digest")
		}
		return nil, &unread{cli.Reworded(err, "no such file")}
	}
	b, err = cl.Models().Get(a.Ctx, from)
	switch {
	case err == nil:
		return network.ReadWeights(b)
	case !client.IsNotFound(err):
		return nil, &unread{err}
	}
	if b, sent := cl.Blobs().Get(a.Ctx, from); sent == nil {
		return network.DecodeWeights(b)
	}
	return nil, &unread{fmt.Errorf("there is no such file, and no such model of the cluster: %w", err)}
}

// auditRate is a fraction from 0 to 1.
type auditRate float64

// UnmarshalText implements encoding.TextUnmarshaler.
func (r *auditRate) UnmarshalText(text []byte) error {
	v, err := units.ParseFloat(string(text))
	if err != nil || !(v >= 0 && v <= 1) {
		return fmt.Errorf("%q is not a fraction from 0 to 1", text)
	}
	*r = auditRate(v)
	return nil
}

// jobArg names one job.
type jobArg struct {
	Job string `arg:"" help:"Number or name of the job."`

	connect.ServerFlags
}
