package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/coppice-ldl/coppice/algorithms/kit/network"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/job/spec"
	"github.com/coppice-ldl/coppice/protocol"
)

// specFlags say what to train. Flags stand above the spec file; all values are
// texts that go through the spec's own table, so both are checked alike.
type specFlags struct {
	Data         string   `group:"what" placeholder:"FILE" help:"Data file to train on: .mat, .npz, .npy, .csv, .tsv or .libsvm; - for stdin (see --data-format)."`
	Dataset      string   `group:"what" placeholder:"NAME" help:"Dataset of the cluster to train on."`
	Algorithm    string   `group:"what" placeholder:"NAME" help:"Algorithm (default: ldlf); \"coppice algorithm list\" lists all of them."`
	Spec         string   `group:"what" placeholder:"FILE" help:"Job spec, a YAML file; flags override its keys."`
	Set          []string `group:"what" sep:"none" placeholder:"NAME=VALUE" help:"A setting of the algorithm; may be repeated. \"coppice algorithm show NAME\" lists the settings."`
	Seed         string   `group:"what" placeholder:"N" help:"Seed of the random numbers (default: 1)."`
	Members      string   `group:"what" seldom:"" placeholder:"A,B" help:"Members of an ensemble, as for --set members=A,B. A member may have settings, such as structrf:trees=100."`
	Steps        string   `group:"what" seldom:"" placeholder:"N" help:"Maximum number of steps, as for --set steps=N; early stopping may end training sooner."`
	TestFraction string   `group:"test" placeholder:"F" help:"Fraction of the samples to hold out for testing."`
	Folds        string   `group:"test" placeholder:"K" help:"Cross-validate with K folds. groups: leave one group out at a time (see --groups)."`
	Split        string   `group:"test" placeholder:"FILE" help:"CSV file with columns row and fold: train once for each fold. Or a column row and, for each split, a column in which 1 marks the test samples."`
	InitFrom     string   `group:"what" seldom:"" placeholder:"FILE|MODEL" help:"Initial weights of a network, as for --set init_from=FILE: a model file, an .npz file, or the name or digest of a model of the cluster."`
	Measures     string   `group:"test" seldom:"" placeholder:"all" help:"all: also print Spearman, Jensen-Shannon, zero-one loss and error probability."`
	Clip         string   `group:"test" seldom:"" placeholder:"pyldl" help:"pyldl: clip probabilities at 2.2e-16 in the measures in which PyLDL clips them. Training is not affected."`
	Name         string   `group:"what" placeholder:"NAME" help:"Name of the job and its model."`
	Settings     bool     `group:"what" seldom:"" help:"Print the keys of a spec and the settings of the algorithm; train nothing."`
}

// read puts the spec file and the flags together.
func (s *specFlags) read() (*spec.File, error) {
	if s.Data != "" && s.Dataset != "" {
		return nil, usagef("--data and --dataset: give only one of them")
	}
	f := new(spec.File)
	if s.Spec != "" {
		b, err := dataset.ReadText(s.Spec)
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
	if s.Data != "" {
		f.Spec.Dataset = ""
	} else if f.Spec.Dataset == "" {
		return nil, usagef("want data to train on: give --data FILE or --dataset NAME")
	}
	return f, s.checkSplit(&f.Spec)
}

// apply sets what flags give, in the order of the table.
func (s *specFlags) apply(to *protocol.Spec) error {
	flags := []struct{ flag, key, value string }{
		{"--algorithm", "algorithm", s.Algorithm}, {"--dataset", "dataset", s.Dataset},
		{"--name", "name", s.Name}, {"--seed", "seed", s.Seed},
		{"--test-fraction", "test_fraction", s.TestFraction}, {"--measures", "measures", s.Measures}, {"--clip", "clip", s.Clip}, {"--folds", "folds", s.Folds},
	}
	if s.Folds == "groups" {
		flags[len(flags)-1].key, flags[len(flags)-1].value = "group_folds", "true"
	}
	given := make(map[string]string) // the flag that gave a key
	set := func(flag, key, value string) error {
		if first, ok := given[key]; ok {
			return usagef("%s is given twice, by %s and by %s; give it once", key, first, flag)
		}
		given[key] = flag
		return setFlag(to, flag, key, value)
	}
	for _, f := range flags {
		if f.value == "" {
			continue
		}
		if err := set(f.flag, f.key, f.value); err != nil {
			return err
		}
	}
	for _, pair := range s.Set {
		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			return usagef("--set %s: want key=value", pair)
		}
		if err := set("--set", key, value); err != nil {
			return err
		}
	}
	for _, f := range []struct{ flag, key, value string }{{"--steps", "steps", s.Steps}, {"--members", "members", s.Members}, {"--init-from", network.SettingInitFrom, s.InitFrom}} {
		if f.value == "" {
			continue
		}
		if err := set(f.flag, f.key, f.value); err != nil {
			return err
		}
	}
	return nil
}

// setFlag sets one key; an error names the flag instead of the key where these
// are the same.
func setFlag(to *protocol.Spec, flag, key, value string) error {
	err := spec.Set(to, key, value)
	if err == nil {
		return nil
	}
	var p *param.Error
	if flag != "--set" && errors.As(err, &p) {
		return usagef("%s: %s", flag, p.Reason)
	}
	return usagef("%s %w", flag, err)
}

func (s *specFlags) checkSplit(to *protocol.Spec) error {
	if s.Split == "" {
		return nil
	}
	if to.Folds != 0 || to.TestFraction != 0 || to.GroupFolds {
		return usagef("--split lists the test samples itself, so folds and a test fraction are not allowed with it")
	}
	if _, err := os.Stat(s.Split); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: no such file or folder", s.Split)
	}
	return nil
}
