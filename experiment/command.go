package experiment

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/dataset/read"
	"github.com/coppice-ldl/coppice/experiment/folds"
	"github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/internal/shellword"
	"github.com/coppice-ldl/coppice/job/spec"
)

// Sources says how a command names the data of an experiment.
type Sources struct {
	// Sets has the name on the cluster of each dataset of the table; empty if the cluster does not have its samples.
	// It is nil if the datasets are files.
	Sets []string
	// Flags come after the name of a dataset, such as --server.
	Flags []string
	// File returns the path of a file of the spec, or an empty text if it is not known or does not exist.
	File func(path string) string
}

// Commands writes the commands that train one run of an experiment alone, to the same model. The file of validation
// samples that a method does not use changes the order of the training samples. So a method whose model depends on
// this order, such as sa-bfgs without validation, has another digest without the file.
type Commands struct {
	spec  *Spec
	table *result.Table
	at    Sources
}

// NewCommands returns the commands of the runs of a layout.
func NewCommands(l *Layout, at Sources) (*Commands, error) {
	s, err := SpecOf(l)
	if err != nil {
		return nil, err
	}
	if !slices.EqualFunc(s.Methods, l.Table.Methods, func(a Method, b result.Method) bool { return a.Name == b.Name }) {
		return nil, fmt.Errorf("%w: the table has other methods than the spec", ErrFolder)
	}
	return &Commands{s, l.Table, at}, nil
}

// AddCommands sets Command, or NoCommand, of the failed runs of a table of the layout.
func (l *Layout) AddCommands(t *result.Table, at Sources) {
	var commands *Commands
	var err error
	for i := range t.Runs {
		c := &t.Runs[i]
		if c.State != result.Failed {
			continue
		}
		if commands == nil && err == nil {
			commands, err = NewCommands(l, at)
		}
		own := err
		if err == nil {
			c.Command, own = commands.Alone(c)
		}
		if own != nil {
			c.NoCommand = own.Error()
		}
	}
}

// Alone returns the command of a run. An error says why there is none.
func (c *Commands) Alone(run *result.Run) (string, error) {
	name := c.table.Datasets[run.Dataset].Name
	i := slices.IndexFunc(c.spec.Datasets, func(d Dataset) bool { return d.Name == name })
	if i < 0 {
		return "", fmt.Errorf("the spec has no dataset %s", name)
	}
	d, row, repeat := &c.spec.Datasets[i], &c.spec.Methods[run.Method], uint64(run.Repeat)
	if row.External != "" {
		return "", errors.New("another program made the predictions of this run")
	}
	unvalidated := slices.Contains(c.table.Datasets[run.Dataset].Unvalidated, run.Method)
	words := []string{"coppice", "train", "--local"}
	flag := func(key, value string) {
		if name := "--" + strings.ReplaceAll(key, "_", "-"); value == "" || value[0] == '-' {
			words = append(words, name+"="+value) // a value that is empty, or looks like a flag
		} else {
			words = append(words, name, value)
		}
	}
	file := func(path string) (string, error) {
		if at := c.at.File(path); at != "" {
			return at, nil
		}
		return "", fmt.Errorf("the command needs the file %s of the spec, which is not known here. Name the spec where the "+
			"experiment was submitted. Without this file, an experiment of the dataset %s and the method %s repeats the run, "+
			"with this fold in the key only of folds", filepath.Base(path), name, row.Name)
	}
	if c.at.Sets != nil {
		set := c.at.Sets[run.Dataset]
		if set == "" {
			return "", fmt.Errorf("no dataset of the cluster is known to have the samples of %s", name)
		}
		if unvalidated {
			return "", fmt.Errorf("the dataset %s has validation samples, which %s does not use: train refuses both together",
				set, row.Name)
		}
		flag("dataset", set)
		words = append(words, c.at.Flags...)
	} else {
		path, err := file(d.File)
		if err != nil {
			return "", err
		}
		flag("data", path)
		for _, o := range d.Options {
			if o.Key == validationKey && unvalidated { // train refuses it
				continue
			}
			if slices.Contains(ReadingFiles, o.Key) {
				if o.Value, err = file(o.Value); err != nil {
					return "", err
				}
			}
			words = append(words, "--"+strings.ReplaceAll(o.Key, "_", "-")+"="+o.Value) // yes may be of a flag without one
		}
	}
	flag("algorithm", row.Algorithm)
	var settings []string
	for key, value := range row.Settings {
		if key == spec.TrainFraction {
			flag(key, value)
			continue
		}
		settings = append(settings, key+"="+value)
	}
	slices.Sort(settings)
	for _, s := range settings {
		flag("set", s)
	}
	if err := c.divide(&d.Folds, repeat, flag, file); err != nil {
		return "", err
	}
	flag("fold", strconv.Itoa(run.Fold))
	flag("seed", strconv.FormatUint(c.spec.Seed+repeat, 10))
	for _, o := range [][2]string{{"measures", c.spec.more()}, {"clip", c.spec.Clip}, {"mask", d.Mask.String()}} {
		if o[1] != "" {
			flag(o[0], o[1])
		}
	}
	if d.WeightedMeasures {
		words = append(words, "--weighted-measures")
	}
	words = append(words, cmp.Or(row.Enhance, d.Enhance).Flags()...)
	return shellword.Line(words), nil
}

// divide gives the flags of the folds of a repeat. file returns the path of a file of the spec.
func (c *Commands) divide(f *Folds, repeat uint64, flag func(key, value string),
	file func(string) (string, error)) error {
	switch f.Way {
	case folds.Groups:
		flag("folds", "groups")
	case folds.File:
		path, err := file(f.File)
		if err != nil {
			return err
		}
		flag("split", path)
	case folds.ScikitLearn:
		flag("folds", "sklearn:"+strconv.Itoa(f.Scheme.Folds))
		flag("fold_seed", strconv.FormatUint(f.Seed+repeat, 10))
	default:
		flag("folds", strconv.Itoa(f.Scheme.Folds))
		if c.spec.overlapping(f) {
			flag("fold_seed", strconv.FormatUint(f.Seed+repeat, 10))
		}
	}
	return nil
}

// FileIn returns Sources.File for relative paths in a folder. If folder is empty, only absolute paths are known.
func FileIn(folder string) func(path string) string {
	return func(path string) string {
		if !filepath.IsAbs(path) {
			if folder == "" {
				return ""
			}
			path = filepath.Join(folder, path)
		}
		_, err := os.Stat(path)
		if read.IsPattern(path) && len(read.FilesOf(path)) > 0 {
			err = nil
		}
		if err != nil { // it was an array of a library, or has another name now
			return ""
		}
		whole, err := filepath.Abs(path)
		if err != nil {
			return path
		}
		if here, err := os.Getwd(); err == nil {
			if short, err := filepath.Rel(here, whole); err == nil && filepath.IsLocal(short) {
				return short
			}
		}
		return whole
	}
}
