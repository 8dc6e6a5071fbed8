package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/experiment"
	"github.com/coppice-ldl/coppice/experiment/folds"
	tables "github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/experiment/shipped"
	"github.com/coppice-ldl/coppice/job/local"
	"github.com/coppice-ldl/coppice/protocol"
)

// specArg names the spec of an experiment and where its data is.
type specArg struct {
	Spec string `arg:"" placeholder:"SPEC" help:"Spec of the experiment: a YAML file, or the name of a shipped spec (see experiment list --shipped); docs/reference/experiment-spec.md has the keys."`
	Data string `placeholder:"DIR" help:"Folder with the data files of the spec (default: the folder of the spec; of a shipped spec, this folder)."`

	NoBudget bool `help:"Ignore the budgets of the spec and do all runs."`
}

// read reads the spec. If it has mistakes, their error comes with what could be read.
func (s *specArg) read() (*experiment.Spec, error) {
	text, err := s.specText()
	if err != nil {
		return nil, err
	}
	of, err := experiment.Parse(s.Spec, text)
	if of.Data = s.Data; s.NoBudget {
		of.NoBudgets()
	}
	return of, err
}

// specText returns the text of the spec. A file comes before a shipped spec of the same name.
func (s *specArg) specText() ([]byte, error) {
	info, err := os.Stat(s.Spec)
	if err != nil || info.IsDir() {
		if ships, ok := shipped.Find(s.Spec); ok {
			return ships.Text, nil
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist) && protocol.CheckName(s.Spec) == nil && !namedAsSpec(s.Spec):
		return nil, fmt.Errorf("%s: there is neither a file nor a shipped spec of this name; coppice experiment list --shipped lists the shipped specs", s.Spec)
	case err != nil:
		return nil, err
	case info.Size() > experiment.MaxBytes:
		return nil, usagef("%s: %s bytes; a spec of an experiment has at most %s", s.Spec, count(info.Size()), count(experiment.MaxBytes))
	}
	return dataset.ReadText(s.Spec)
}

// path returns where a file of the spec is.
func (s *specArg) path(file string) string {
	switch {
	case filepath.IsAbs(file):
		return file
	case s.Data != "":
		return filepath.Join(s.Data, file)
	}
	return filepath.Join(filepath.Dir(s.Spec), file)
}

// folderOf is the default folder of an experiment.
func folderOf(specFile, name string) string {
	return filepath.Join(filepath.Dir(specFile), name+".experiment")
}

// namedAsSpec reports whether a word ends as the file of a spec does.
func namedAsSpec(word string) bool {
	return slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(word))
}

// reading makes the flags of a dataset of the spec, which are those of train.
func (s *specArg) reading(of *experiment.Spec, d *experiment.Dataset) (*dataFlags, error) {
	var flags struct{ dataFlags }
	parser, err := kong.New(&flags, kong.Name("dataset"), kong.Exit(func(int) {}), groups)
	if err != nil {
		return nil, err
	}
	var args []string
	for _, o := range d.Options {
		value := o.Value
		if slices.Contains(experiment.ReadingFiles, o.Key) {
			value = s.path(value)
		}
		args = append(args, "--"+strings.ReplaceAll(o.Key, "_", "-")+"="+value)
	}
	if _, err := parser.Parse(args); err != nil {
		return nil, of.Error(d.At, "dataset %s: %v", d.Name, err)
	}
	return &flags.dataFlags, nil
}

// source opens the file of a dataset.
func (s *specArg) source(a *app, of *experiment.Spec, d *experiment.Dataset) (dataset.Source, dataset.Checks, error) {
	flags, err := s.reading(of, d)
	if err != nil {
		return nil, dataset.Checks{}, err
	}
	src, checks, err := flags.open(a, s.path(d.File))
	return src, checks, located(of, d, err)
}

// located adds to an error about the file of a dataset where the spec names the dataset.
func located(of *experiment.Spec, d *experiment.Dataset, err error) error {
	if err == nil {
		return nil
	}
	return of.Located(d.At, fmt.Errorf("dataset %s: %w", d.Name, &keysError{err}))
}

// keysError is an error about a dataset of a spec, which names keys of the spec in the place of flags.
type keysError struct{ error }

var (
	readingFlag  = regexp.MustCompile(`--[a-z]+(?:-[a-z]+)*`)
	readingValue = regexp.MustCompile(`(--(?:thousands|decimal|delimiter)) ([.,;|']|" ")(\s|$)`)
	readingWord  = regexp.MustCompile(`(--(?:header|labels|missing)) (yes|no|auto|drop|mean|median|class|age|counts|\d+)\b`)
)

// Error writes the error with keys: thousands: "," for --thousands , and label_columns for --label-columns.
func (e *keysError) Error() string {
	text := readingValue.ReplaceAllStringFunc(e.error.Error(), func(match string) string {
		m := readingValue.FindStringSubmatch(match)
		return fmt.Sprintf("%s: %q%s", m[1], strings.Trim(m[2], `"`), m[3])
	})
	text = readingWord.ReplaceAllString(text, "$1: $2")
	return readingFlag.ReplaceAllStringFunc(text, func(flag string) string {
		if key := strings.ReplaceAll(flag[2:], "-", "_"); slices.Contains(experiment.ReadingKeys, key) {
			return key
		}
		return flag
	})
}

// Unwrap returns the error with flags.
func (e *keysError) Unwrap() error { return e.error }

// isThere reports whether the file of a dataset is there; where it is not, the spec may have
// datasets skipped.
func (s *specArg) isThere(of *experiment.Spec, d *experiment.Dataset) (bool, error) {
	_, err := os.Stat(s.path(d.File))
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, fs.ErrNotExist) && of.SkipMissing:
		return false, nil
	case errors.Is(err, fs.ErrNotExist):
		return false, of.Error(d.At, "dataset %s: %s: no such file; name another folder with --data, or skip missing files with \"missing: skip\" in the spec", d.Name, s.path(d.File))
	}
	return false, located(of, d, err)
}

// splits reads the file of folds of a dataset, if it has one. What is wrong with it is an error
// about its place in the spec.
func (s *specArg) splits(of *experiment.Spec, d *experiment.Dataset, m *dataset.Manifest) (*dataset.SplitList, error) {
	if d.Folds.Way != folds.File {
		return nil, nil
	}
	list, err := m.SplitFile(s.path(d.Folds.File))
	if err != nil {
		return nil, of.Error(d.Folds.At, "the folds of dataset %s: %s", d.Name, message(err))
	}
	return list, nil
}

// files describes the files of a dataset: the data, the side files of its options, and the folds.
func (s *specArg) files(d *experiment.Dataset) (list []experiment.File, err error) {
	paths := []string{d.File}
	for _, o := range d.Options {
		if slices.Contains(experiment.ReadingFiles, o.Key) {
			paths = append(paths, o.Value)
		}
	}
	if d.Folds.Way == folds.File {
		paths = append(paths, d.Folds.File)
	}
	for _, path := range paths {
		info, err := os.Stat(s.path(path))
		if err != nil {
			return nil, err
		}
		list = append(list, experiment.File{Path: path, Bytes: info.Size(), Modified: info.ModTime().UTC()})
	}
	return list, nil
}

// inputs describes the files of all datasets.
func (s *specArg) inputs(sets []*loaded) (*experiment.Inputs, error) {
	in := new(experiment.Inputs)
	for _, l := range sets {
		in.Sets = append(in.Sets, experiment.NewInput(l.plan, l.files))
	}
	var err error
	if in.Spec, err = filepath.Abs(filepath.Dir(s.Spec)); err == nil && s.Data != "" {
		in.Data, err = filepath.Abs(s.Data)
	}
	return in, err
}

// changes says which datasets of a layout have other files than when it was made. A file that was not written since is
// not read. A missing file is ignored.
func (s *specArg) changes(a *app, l *experiment.Layout) (list []string) {
	of, err := experiment.SpecOf(l)
	if err != nil || l.Inputs == nil || len(l.Inputs.Sets) != len(l.Table.Datasets) {
		return nil
	}
	s.Data = l.Inputs.Data
	quiet := &app{ctx: a.ctx, stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard, data: io.Discard}
	for i := range of.Datasets {
		d := &of.Datasets[i]
		at := slices.IndexFunc(l.Table.Datasets, func(x tables.Dataset) bool { return x.Name == d.Name })
		if at < 0 {
			continue
		}
		before := &l.Inputs.Sets[at]
		files, err := s.files(d)
		if err != nil || !before.Written(files) {
			continue
		}
		a.note("dataset %s is read again, because the size or time of a file has changed since the run", d.Name)
		now, err := s.loadOne(quiet, newMeter(io.Discard), of, d)
		switch {
		case err != nil:
			list = append(list, fmt.Sprintf("the files of %s cannot be read now (%s)", d.Name, message(err)))
		case now.data.Manifest.Digest() != l.Table.Datasets[at].Digest:
			list = append(list, "the samples of "+d.Name)
		case experiment.NewInput(now.plan, files).Division != before.Division:
			list = append(list, "the folds or the kind of labels of "+d.Name)
		}
	}
	return list
}

// collect adds an error about the spec or its data to the mistakes that a command tells together. It reports false if
// the command must end at once: it was interrupted, or no coordinator answers.
func (a *app) collect(mistakes *experiment.Errors, err error) bool {
	return a.ctx.Err() == nil && !errors.Is(err, client.ErrUnavailable) && mistakes.Add(err)
}

// maxChecked bounds the file of a dataset that is read only to find mistakes, in bytes.
const maxChecked = 256 << 20

// withData adds to the mistakes in a spec what is wrong with the datasets that could be read from it.
func (s *specArg) withData(a *app, of *experiment.Spec, err error, local bool) error {
	var mistakes experiment.Errors
	if !a.collect(&mistakes, err) {
		return err
	}
	m := newMeter(a.stderr)
	defer m.clear()
	for i := range of.Datasets {
		d := &of.Datasets[i]
		if d.On != "" {
			if local {
				mistakes.Add(of.Error(d.At, "dataset %s is on a cluster; with --local, every dataset must be a file", d.Name))
			}
			continue
		}
		if err := s.checkFile(a, m, of, d); err != nil && !a.collect(&mistakes, err) {
			return err
		}
	}
	return mistakes.Sorted()
}

// checkFile returns what is wrong with the file of a dataset, if it is found without much work.
func (s *specArg) checkFile(a *app, m *meter, of *experiment.Spec, d *experiment.Dataset) error {
	there, err := s.isThere(of, d)
	if info, _ := os.Stat(s.path(d.File)); err == nil && there && info != nil && info.Size() <= maxChecked {
		_, err = s.loadOne(a, m, of, d)
	}
	return err
}

// loaded is a dataset in memory and what is planned on it.
type loaded struct {
	plan   *experiment.Plan
	files  []experiment.File // before they were read
	data   *local.Data
	groups []uint16 // by row; nil: there are none
}

// load reads the datasets into memory and plans their cells; skipped are the names of those
// that are not there.
func (s *specArg) load(a *app, of *experiment.Spec) (sets []*loaded, skipped []string, err error) {
	m := newMeter(a.stderr)
	defer m.clear()
	var mistakes experiment.Errors
	for i := range of.Datasets {
		d := &of.Datasets[i]
		if d.On != "" {
			mistakes.Add(of.Error(d.At, "dataset %s is on a cluster; with --local, every dataset must be a file", d.Name))
			continue
		}
		if len(mistakes) > 0 { // nothing is run
			if err := s.checkFile(a, m, of, d); err != nil && !a.collect(&mistakes, err) {
				return nil, nil, err
			}
			continue
		}
		there, err := s.isThere(of, d)
		if err == nil && !there {
			a.note("skipped: dataset %s, because %s does not exist", d.Name, s.path(d.File))
			skipped = append(skipped, d.Name)
			continue
		}
		var l *loaded
		if err == nil {
			l, err = s.loadOne(a, m, of, d)
		}
		if err != nil && !a.collect(&mistakes, err) {
			return nil, nil, err
		}
		sets = append(sets, l)
	}
	if err := mistakes.Sorted(); err != nil {
		return nil, nil, err
	}
	if len(sets) == 0 {
		return nil, nil, fmt.Errorf("%s: the files of all datasets are missing", s.Spec)
	}
	return sets, skipped, nil
}

func (s *specArg) loadOne(a *app, m *meter, of *experiment.Spec, d *experiment.Dataset) (*loaded, error) {
	src, checks, err := s.source(a, of, d)
	if err != nil {
		return nil, err
	}
	l := &loaded{data: new(local.Data)}
	l.files, _ = s.files(d) // the error of a file that is not there comes from its reader
	options := readingFor(a.ctx, "reading data", checks, m)
	options.Groups = func(g []uint16) { l.groups = g }
	if l.data.Manifest, l.data.Shards, err = dataset.Build(src, options); err != nil {
		return nil, located(of, d, err)
	}
	splits, err := s.splits(of, d, l.data.Manifest)
	if err != nil {
		return nil, err
	}
	l.plan, err = experiment.NewPlan(of, d, &experiment.Data{Manifest: l.data.Manifest, Groups: l.groups, Splits: splits})
	if err != nil {
		return nil, err
	}
	l.data.Assigned = l.plan.Assigned
	return l, nil
}
