// Package datasets reads the data files of a spec, to run an experiment in this process or to submit it to a cluster.
package datasets

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/dataset/read"
	"github.com/coppice-ldl/coppice/experiment"
	"github.com/coppice-ldl/coppice/experiment/folds"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/files"
	"github.com/coppice-ldl/coppice/job/local"
	"github.com/coppice-ldl/coppice/protocol"
)

// Reader reads the datasets of a spec.
type Reader struct {
	Spec *experiment.Spec
	// File is the file of the spec: the paths of data files are relative to its folder, unless the spec has another
	// folder.
	File string
	// Flags returns how a data file is opened. The keys of a dataset are given as flags of train, such as --labels=age.
	Flags func(flags []string) (Opener, error)
	// Options returns the options with which a file is read.
	Options func(importer.Checks) importer.Options
	// Note prints a line for the user.
	Note func(text string)
}

// Opener opens a data file.
type Opener func(path string) (dataset.Source, importer.Checks, error)

// Set is a dataset in memory, and what is planned on it.
type Set struct {
	Plan *experiment.Plan
	Data *local.Data

	groups []uint16 // by sample; nil: there are none
}

// Load reads all datasets into memory, plans their runs, and puts the plans together. A dataset without a file is
// skipped if the spec says so. If models is true, the runs keep their models. The error is experiment.Errors if the
// spec or its data have mistakes: all of them.
func (r *Reader) Load(ctx context.Context, models bool) ([]*Set, *experiment.Layout, error) {
	var sets []*Set
	skipped, err := r.each(ctx, nil, r.refuseCluster, func(d *experiment.Dataset) error {
		s, err := r.load(ctx, d)
		sets = append(sets, s)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	if len(sets) == 0 {
		return nil, nil, fmt.Errorf("%s: the files of all datasets are missing", r.File)
	}
	var plans []*experiment.Plan
	in := new(experiment.Inputs)
	for _, s := range sets {
		if s.Plan.Job != nil {
			s.Plan.Job.Cells.Models = models
		}
		plans = append(plans, s.Plan)
	}
	if err := r.Spec.CheckPlans(plans); err != nil {
		return nil, nil, err
	}
	l, err := experiment.NewLayout(r.Spec, plans, skipped)
	if err != nil {
		return nil, nil, err
	}
	if in.Spec, err = filepath.Abs(filepath.Dir(r.File)); err == nil && r.Spec.Data != "" {
		in.Data, err = filepath.Abs(r.Spec.Data)
	}
	l.Inputs = in
	return sets, l, err
}

// Send imports the files of all datasets into a cluster, with the lists of folds that they name, and returns by name
// what a request to run the spec says of them. If check is true, files are only read. If shared is true, all users may
// read what is imported. Errors are as for Load.
func (r *Reader) Send(ctx context.Context, cl *client.Client, check, shared bool) (map[string]protocol.ExperimentData,
	error) {
	sent := make(map[string]protocol.ExperimentData)
	isThere := func(d *experiment.Dataset) error {
		_, err := cl.Datasets().Get(ctx, d.On)
		if client.IsNotFound(err) { // a mistake here saves the imports of files
			err = r.Spec.Error(d.At, "the cluster has no dataset %q", d.On)
		}
		return err
	}
	skipped, err := r.each(ctx, nil, isThere, func(d *experiment.Dataset) (err error) {
		sent[d.Name], err = r.send(ctx, cl, d, check, shared)
		return err
	})
	for _, name := range skipped {
		sent[name] = protocol.ExperimentData{Missing: true}
	}
	return sent, err
}

// Folds calls take with each division of the data files of a spec into folds: of each dataset and repeat. The spec may
// name predictions that do not exist yet. Errors are as for Load.
func (r *Reader) Folds(ctx context.Context, take func(d *experiment.Dataset, m *dataset.Manifest, repeat int,
	list *dataset.SplitList) error) error {
	_, err := r.each(ctx, nil, r.refuseCluster, func(d *experiment.Dataset) error {
		src, checks, err := r.open(d)
		if err != nil {
			return err
		}
		o, rows := r.Options(checks), new(folds.Rows)
		o.Groups = func(g []uint16) { rows.Groups = g }
		m, _, err := importer.Build(src, o)
		if err != nil {
			return r.located(d, err)
		}
		m = m.Divided() // folds divide no validation samples
		rows.Count = m.Rows
		if rows.File, err = r.splits(d, m); err != nil {
			return err
		}
		for repeat := range d.Folds.Repeats {
			list, err := d.Folds.Divide(rows, min(repeat, max(1, d.Folds.Scheme.Repeats)-1))
			if err != nil {
				return r.Spec.Error(d.At, "dataset %s: %v", d.Name, err)
			}
			if err := take(d, m, repeat, list); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}

func (r *Reader) send(ctx context.Context, cl *client.Client, d *experiment.Dataset, check,
	shared bool) (sent protocol.ExperimentData, err error) {
	var m *dataset.Manifest
	if check {
		s, err := r.load(ctx, d)
		if err != nil {
			return sent, err
		}
		if s.groups != nil {
			if _, err := cl.Blobs().Put(ctx, dataset.EncodeFolds(s.groups)); err != nil {
				return sent, err
			}
		}
		m = s.Data.Manifest
		sent.Manifest = m
	} else {
		src, checks, err := r.open(d)
		if err != nil {
			return sent, err
		}
		set, err := cl.Datasets().ImportFree(ctx, protocol.DatasetPut{Name: d.Name, Shared: shared}, src, r.Options(checks))
		if client.IsConflict(err) {
			return sent, r.Spec.Error(d.At, "%v; give this experiment another name with the key name", err)
		}
		if err != nil {
			return sent, r.located(d, err)
		}
		m, sent.Dataset = set.Manifest, set.Name
	}
	var blob []byte
	if sent.External, blob, err = r.external(d, m); err == nil && sent.External != nil {
		_, err = cl.Blobs().Put(ctx, blob)
	}
	if err != nil {
		return sent, err
	}
	list, err := r.splits(d, m)
	if err != nil || list == nil {
		return sent, err
	}
	sent.Folds = &protocol.ExperimentFolds{Folds: list.Folds, Overlap: list.Overlap}
	sent.Folds.Digest, err = cl.Blobs().Put(ctx, dataset.EncodeFolds(list.Assigned))
	return sent, err
}

// WithMistakes adds to the mistakes in a spec the mistakes in the datasets that could be read from it. If here is true,
// the experiment would run in this process.
func (r *Reader) WithMistakes(ctx context.Context, err error, here bool) error {
	var mistakes experiment.Errors
	if !collect(ctx, &mistakes, err) {
		return err
	}
	onCluster := func(*experiment.Dataset) error { return nil }
	if here {
		onCluster = r.refuseCluster
	}
	_, err = r.each(ctx, mistakes, onCluster, nil)
	return err
}

func (r *Reader) refuseCluster(d *experiment.Dataset) error {
	return r.Spec.Error(d.At, "dataset %s is on a cluster; with {local}, every dataset must be a file", d.Name)
}

// maxChecked bounds the file of a dataset that is read only to find mistakes, in bytes.
const maxChecked = 256 << 20

// each calls onCluster for the datasets on a cluster, and take for the datasets with a file, and returns the names of
// the datasets that are skipped because their files are missing. Once there is a mistake, files are only checked, as
// nothing is run.
func (r *Reader) each(ctx context.Context, mistakes experiment.Errors, onCluster,
	take func(*experiment.Dataset) error) (skipped []string, err error) {
	for i := range r.Spec.Datasets {
		d := &r.Spec.Datasets[i]
		path := r.path(d.File)
		size, err := read.Size(path)
		switch {
		case d.On != "":
			err = onCluster(d)
		case errors.Is(err, fs.ErrNotExist) && r.Spec.SkipMissing:
			if err = nil; len(mistakes) == 0 {
				r.Note(fmt.Sprintf("skipped: dataset %s, because %s does not exist", d.Name, path))
			}
			skipped = append(skipped, d.Name)
		case errors.Is(err, fs.ErrNotExist):
			err = r.Spec.Error(d.At, "dataset %s: %s: no such file; name another folder with {data}, or skip missing files "+
				"with {key missing=skip} in the spec", d.Name, path)
		case err != nil:
			err = r.located(d, err)
		case len(mistakes) == 0:
			err = take(d)
		case size <= maxChecked:
			_, err = r.load(ctx, d)
		}
		if err != nil && !collect(ctx, &mistakes, err) {
			return nil, err
		}
	}
	return skipped, mistakes.Sorted()
}

// collect adds an error about the spec or its data to the mistakes that are told together. It reports false if the
// caller must end at once: it was interrupted, or no coordinator answers.
func collect(ctx context.Context, mistakes *experiment.Errors, err error) bool {
	return ctx.Err() == nil && !errors.Is(err, client.ErrUnavailable) && mistakes.Add(err)
}

// load reads a dataset into memory and plans its runs.
func (r *Reader) load(ctx context.Context, d *experiment.Dataset) (*Set, error) {
	src, checks, err := r.open(d)
	if err != nil {
		return nil, err
	}
	s := &Set{Data: new(local.Data)}
	o := r.Options(checks)
	o.Groups = func(g []uint16) { s.groups = g }
	if s.Data.Manifest, s.Data.Shards, err = importer.Build(src, o); err != nil {
		return nil, r.located(d, err)
	}
	splits, err := r.splits(d, s.Data.Manifest)
	if err != nil {
		return nil, err
	}
	data := &experiment.Data{Manifest: s.Data.Manifest, Groups: s.groups, Splits: splits}
	list, blob, err := r.external(d, s.Data.Manifest)
	if err == nil && list != nil {
		s.Data.Weights = blob
		data.External, err = experiment.NewExternal(list, blob)
	}
	if err != nil {
		return nil, err
	}
	if s.Plan, err = experiment.NewPlan(ctx, r.Spec, d, data); err != nil {
		return nil, err
	}
	s.Data.Assigned, s.Data.Groups = s.Plan.Assigned, s.groups
	return s, nil
}

// open opens the file of a dataset.
func (r *Reader) open(d *experiment.Dataset) (dataset.Source, importer.Checks, error) {
	var flags []string
	for _, o := range d.Options {
		if slices.Contains(experiment.ReadingFiles, o.Key) {
			o.Value = r.path(o.Value)
		}
		flags = append(flags, "--"+strings.ReplaceAll(o.Key, "_", "-")+"="+o.Value)
	}
	open, err := r.Flags(flags)
	if err != nil {
		return nil, importer.Checks{}, r.Spec.Error(d.At, "dataset %s: %v", d.Name, err)
	}
	src, checks, err := open(r.path(d.File))
	if err != nil {
		err = r.located(d, err)
	}
	return src, checks, err
}

// located adds the place of a dataset in the spec to an error about its file.
func (r *Reader) located(d *experiment.Dataset, err error) error {
	return r.Spec.Located(d.At, fmt.Errorf("dataset %s: %w", d.Name, &keysError{err}))
}

// external reads the predictions of other programs for a dataset; nil: there are none.
func (r *Reader) external(d *experiment.Dataset, m *dataset.Manifest) (*protocol.ExperimentExternal, []byte, error) {
	list, blob, about, err := readExternal(r.Spec, r.File, d, m.Divided())
	if err != nil {
		err = r.Spec.Error(about.At, "external: %s", files.Message(err))
	}
	return list, blob, err
}

// splits reads the file of folds of a dataset, if it has one. An error names the place of the file in the spec.
func (r *Reader) splits(d *experiment.Dataset, m *dataset.Manifest) (*dataset.SplitList, error) {
	if d.Folds.Way != folds.File {
		return nil, nil
	}
	list, err := read.SplitFor(m.Divided(), r.path(d.Folds.File))
	if err != nil {
		return nil, r.Spec.Error(d.Folds.At, "the folds of dataset %s: %s", d.Name, files.Message(err))
	}
	return list, nil
}

// path returns the path of a file of the spec.
func (r *Reader) path(file string) string {
	switch {
	case filepath.IsAbs(file):
		return file
	case r.Spec.Data != "":
		return filepath.Join(r.Spec.Data, file)
	}
	return filepath.Join(filepath.Dir(r.File), file)
}

// keysError is an error about a dataset of a spec. It names keys of the spec in the place of flags.
type keysError struct{ error }

// Formed implements errtext.Formed.
func (e *keysError) Formed() (errtext.Code, errtext.Text) {
	code := errtext.WrongData
	if f := errtext.Of(e.error.Error(), e.error); f != nil {
		code = f.Code
	}
	return code, errtext.Within(e.error.Error(), e.error).Keys(func(key string) bool {
		return slices.Contains(experiment.ReadingKeys, key)
	})
}

// readingFlag finds flags in texts that are not formed.
var readingFlag = regexp.MustCompile(`--[a-z]+(?:-[a-z]+)*`)

// Error writes the error with keys: thousands: "," for --thousands , and label_columns for --label-columns.
func (e *keysError) Error() string {
	_, formed := e.Formed()
	return readingFlag.ReplaceAllStringFunc(formed.String(), func(flag string) string {
		if key := strings.ReplaceAll(flag[2:], "-", "_"); slices.Contains(experiment.ReadingKeys, key) {
			return key
		}
		return flag
	})
}

// Unwrap returns the error with flags.
func (e *keysError) Unwrap() error { return e.error }
