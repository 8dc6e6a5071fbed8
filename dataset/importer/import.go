// Package importer makes datasets of sources: it checks each row, scatters rows over shards and writes the shards with
// their manifest. A source is read twice, so memory does not grow with its rows.
package importer

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/featurestats"
	"github.com/coppice-ldl/coppice/dataset/identity"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/files"
	"github.com/coppice-ldl/coppice/internal/units"
)

// Options says how Import, Build and Blocks check rows and report.
type Options struct {
	Checks
	// Progress, if set, is called repeatedly from the importing goroutine.
	Progress func(Progress)
	// Warn, if set, is called by Import and Build with a sentence for each kind of
	// fault that columns of the data seem to have.
	Warn func(errtext.Text)
	// Note, if set, gets a line for each decision about how the data is read, once all rows are checked.
	Note func(errtext.Text)
	// Groups, if set, is called by Import and Build with the group of each row, if rows have groups.
	Groups func([]uint16)
	// LeftOut, if set, is called by Blocks with the number in the file of each row
	// that is left out for missing values, in order.
	LeftOut func(row int)
	// leftOut, if set, is called with each row that is left out.
	leftOut func(*dataset.Row)
	// Context, if set, can end the work early: the error is its Err, and
	// no files remain.
	Context context.Context
}

// Progress says how far an import is, for display.
type Progress struct {
	Phase string  // "check", "inspect", "read", "sort", "store" or "write"
	Done  int     // rows, or shards for "store"
	Of    int     // -1 where unknown
	Part  float64 // share of the phase that is done, from 0 to 1; -1 where unknown
}

// ProgressRows is the number of rows between two reports of progress.
const ProgressRows = 1 << 8

// Report calls Progress and returns the error of Context. If the number of rows is unknown (of is -1), the share of
// file that was read says how far the phase is; file may be nil.
func (o *Options) Report(phase string, done, of int, file dataset.Measured) error {
	if o.Progress != nil {
		part := -1.0
		if of > 0 {
			part = float64(done) / float64(of)
		} else if file != nil {
			part = file.ReadShare()
		}
		o.Progress(Progress{Phase: phase, Done: done, Of: of, Part: part})
	}
	if o.Context != nil {
		return o.Context.Err()
	}
	return nil
}

// Import writes the shards of src, and the groups of its rows if they have some, into the folder dir, each in a file
// named by the SHA-256 of its bytes in hex, and returns the manifest. It reads src twice and has at most about three
// shards and 64 MiB in memory; its temporary files in dir are as large as the shards. Files are not synced to disk. On
// an error no file or folder that Import made remains; an error about the data names file, row and column.
func Import(src dataset.Source, dir string, o Options) (m *dataset.Manifest, err error) {
	first, err := Measure(src, &o)
	if err != nil {
		return nil, err
	}
	m = first.manifest()
	var made []string // folders, each before its parent
	for d := filepath.Clean(dir); ; d = filepath.Dir(d) {
		if _, err := os.Stat(d); err == nil || d == filepath.Dir(d) {
			break
		}
		made = append(made, d)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	defer func() {
		if err == nil {
			return
		}
		m = nil
		for _, d := range made {
			err = errors.Join(err, os.Remove(d))
		}
	}()
	// A spill file has 16 bytes more for each row than a shard, and is removed once the shard is written. Names do not
	// count, since they are not known yet.
	bytes := m.ContentBytes()
	if err := files.CheckSpace(dir, bytes+bytes/int64(len(m.Shards))+16*int64(m.Rows)); err != nil {
		return nil, err
	}
	work, err := os.MkdirTemp(dir, ".import-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	if err := first.writeShards(src, m, work, &o); err != nil {
		return nil, err
	}
	return m, moveShards(m, work, dir)
}

// writeShards is the second pass of an import: rows to spill files, then shard by shard, and the groups, into files of
// work.
func (s *Stats) writeShards(src dataset.Source, m *dataset.Manifest, work string, o *Options) error {
	spilled := newSpill(m, work)
	groups, err := s.sortRows(src, m, o, spilled.add)
	if err != nil {
		return err
	}
	if err := spilled.end(); err != nil {
		return err
	}
	if groups != nil {
		if err := os.WriteFile(filepath.Join(work, m.Groups.Digest), groups, 0o666); err != nil {
			return err
		}
	}
	for i := range m.Shards {
		rows, names, err := spilled.build(i)
		if err != nil {
			return err
		}
		b, ref := encodeShard(rows, names)
		if err := os.WriteFile(filepath.Join(work, ref.Digest), b, 0o666); err != nil {
			return err
		}
		m.Shards[i] = ref
		if err := o.Report("store", i+1, len(m.Shards), nil); err != nil {
			return err
		}
	}
	return nil
}

// moveShards moves the files of shards and groups from work to dir, or takes back those moved.
func moveShards(m *dataset.Manifest, work, dir string) (err error) {
	var digests, moved []string
	defer func() {
		if err == nil {
			return
		}
		for _, path := range moved {
			err = errors.Join(err, os.Remove(path))
		}
	}()
	for _, s := range m.Shards {
		digests = append(digests, s.Digest)
	}
	if m.Groups != nil {
		digests = append(digests, m.Groups.Digest)
	}
	for _, digest := range digests {
		to := filepath.Join(dir, digest)
		if _, err := os.Stat(to); err == nil {
			continue // the same bytes, from an earlier import
		}
		if err := os.Rename(filepath.Join(work, digest), to); err != nil {
			return err
		}
		moved = append(moved, to)
	}
	return nil
}

// Build reads src into memory, cut into shards as Import would cut it, and
// returns the same manifest as Import.
func Build(src dataset.Source, o Options) (*dataset.Manifest, []*dataset.Rows, error) {
	first, err := Measure(src, &o)
	if err != nil {
		return nil, nil, err
	}
	m := first.manifest()
	builders := make([]*builder, len(m.Shards))
	for i := range builders {
		builders[i] = newBuilder(m, i)
	}
	_, err = first.sortRows(src, m, &o, func(shard int, r *storedRow) error {
		builders[shard].add(r)
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	shards := make([]*dataset.Rows, len(builders))
	for i, b := range builders {
		rows, names, err := b.finish()
		if err != nil {
			return nil, nil, err
		}
		rows.SetNames(names)
		shards[i], builders[i] = rows, nil
		_, m.Shards[i] = encodeShard(rows, names)
		if err := o.Report("store", i+1, len(shards), nil); err != nil {
			return nil, nil, err
		}
	}
	return m, shards, nil
}

// Stats is what the first pass over a source computes.
type Stats struct {
	Info      dataset.Info
	Rows      int
	NonZeros  int64
	meanLabel []float64       // of the degrees that are not missing, divided by its sum if some are
	observed  []int           // degrees of each label that are not missing
	missing   int64           // degrees
	repaired  int             // rows with one missing degree
	groups    *dataset.Groups // without their rows; nil: there are none
	own       dataset.OwnValidation
	weighted  bool // rows have weights that are not all 1
	leftOut   dataset.LeftOut
	lastOut   int // the last row in leftOut; -1: none
	rescaled  int // rows whose labels sum to 1 within the tolerance only
	rounded   *featurestats.RoundedFeatures
	lacks     [dataset.LacksDegrees + 1]int
	turned    int // images
}

// Measure scans src and checks every row.
func Measure(src dataset.Source, o *Options) (*Stats, error) {
	s := &Stats{Info: src.Info(), lastOut: -1}
	s.Info.Reading.Normalize, s.Info.Reading.Tolerance = o.Normalize, o.Tolerance
	if err := s.Info.Check(); err != nil {
		return nil, err
	}
	s.meanLabel, s.observed = make([]float64, s.Info.Labels), make([]int, s.Info.Labels)
	var groups *identity.Groups
	if s.Info.HasGroups {
		groups = identity.NewGroups(s.Info.File)
	}
	watch, first := featurestats.New(s.Info), *o
	heavy := make(map[bool]bool, 2) // true if a validation row, or another row, has a weight above 0
	first.LeftOut, first.leftOut = nil, func(r *dataset.Row) {
		s.leftOut.Add(s.lastOut, r.Number)
		s.lastOut = r.Number
		s.lacks[r.Lack]++
		if r.Validation {
			s.own.FileRows++
		}
	}
	err := Scan(src, &first, "check", s.Info.Rows, func(r *dataset.Row, c *Checker) error {
		s.count(r, c)
		watch.Add(r)
		if r.Weight > 0 {
			heavy[r.Validation] = true
		}
		if groups != nil && !r.Validation {
			return groups.Add(r)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	switch {
	case len(s.leftOut) > dataset.MaxLeftOut:
		return nil, fmt.Errorf("%s%s samples would be left out for missing values, more than a dataset can list; remove "+
			"these samples from the file",
			dataset.Prefix(s.Info.File), units.Count(s.leftOut.Count()))
	case s.Info.Validation != nil && s.own.Rows == 0:
		return nil, dataset.Errorf(dataset.ErrFormat, "%sthe file has no samples, or all of them have missing values; want "+
			"at least one validation sample", dataset.Prefix(s.Info.Validation.File))
	case s.Info.Validation != nil && s.Info.HasWeights && !heavy[true]:
		return nil, dataset.Errorf(dataset.ErrFormat, "%sthe weights of all validation samples are zero",
			dataset.Prefix(s.Info.Validation.File))
	case s.Rows == s.own.Rows && len(s.leftOut) > 0:
		return nil, dataset.Errorf(dataset.ErrFormat, "%sall %s samples have missing values, so no sample is left",
			dataset.Prefix(s.Info.File), units.Count(s.leftOut.Count()))
	case s.Rows == s.own.Rows:
		return nil, dataset.Errorf(dataset.ErrFormat, "%sthe file has no samples", dataset.Prefix(s.Info.File))
	case s.Info.HasWeights && !heavy[false]:
		return nil, dataset.Errorf(dataset.ErrFormat, "%sthe weights of all samples are zero, so there is nothing to "+
			"learn from", dataset.Prefix(s.Info.File))
	}
	var notes []string
	if groups != nil {
		if s.groups, notes, err = groups.Sorted(); err != nil {
			return nil, err
		}
	}
	if err := s.endMean(); err != nil {
		return nil, err
	}
	if o.Note != nil {
		for _, note := range slices.Concat(s.Info.Said(), errtext.Literals(notes)) {
			o.Note(errtext.Sprintf("%s%s", dataset.Prefix(s.Info.File), note))
		}
		if s.repaired > 0 {
			o.Note(errtext.Sprintf("%sone label of %s is missing; it is 1 less the sum of the others",
				dataset.Prefix(s.Info.File), dataset.Counted(s.repaired, "sample")))
		}
	}
	if o.Warn != nil {
		s.warn(o.Warn)
		s.rounded = watch.Rounded()
	}
	return s, nil
}

// count adds a row that is not left out.
func (s *Stats) count(r *dataset.Row, c *Checker) {
	s.Rows++
	s.rescaled, s.repaired = c.rescaled, c.repaired
	s.missing += int64(c.Missing)
	s.NonZeros += int64(c.NonZeros)
	if r.Turned {
		s.turned++
	}
	s.weighted = s.weighted || s.Info.HasWeights && r.Weight != 1
	if r.Validation {
		s.own.Rows, s.own.FileRows = s.own.Rows+1, s.own.FileRows+1
		return
	}
	for i, d := range c.Labels {
		if d == d {
			s.meanLabel[i] += float64(d)
			s.observed[i]++
		}
	}
}

// endMean makes the sums of the labels their mean. It returns an error if a label has no degree in any row.
func (s *Stats) endMean() error {
	sum := 0.0
	for i, n := range s.observed {
		if n == 0 {
			return dataset.Errorf(dataset.ErrFormat, "%sthe label %s is missing in every sample, so nothing can be learned of "+
				"it; remove the label", dataset.Prefix(s.Info.File), cmp.Or(dataset.NameAt(s.Info.LabelNames, i), fmt.Sprint(i)))
		}
		s.meanLabel[i] /= float64(n)
		sum += s.meanLabel[i]
	}
	if s.missing == 0 || sum == 0 {
		return nil
	}
	for i := range s.meanLabel {
		s.meanLabel[i] /= sum
	}
	return nil
}

func (s *Stats) warn(tell func(errtext.Text)) {
	warn := func(text string) { tell(errtext.Sprintf("%s%s", dataset.Prefix(s.Info.File), text)) }
	if n := s.leftOut.Count(); n > 0 {
		var others []string // rows that lack something else than a value
		if n := s.lacks[dataset.LacksImage]; n > 0 {
			others = append(others, units.Count(n)+" without the name of an image")
		}
		if n := s.lacks[dataset.LacksDegrees]; n > 0 {
			others = append(others, units.Count(n)+" whose labels are all 0")
		}
		text := strings.Join(others, ", ")
		if text != "" {
			text = " (" + text + ")"
		}
		warn(fmt.Sprintf("%s of %s samples have missing values and are left out%s; other samples keep their row numbers",
			units.Count(n), units.Count(s.Rows+n), text))
	}
	if s.turned > 0 {
		warn(TurnedText(s.turned))
	}
	if s.rescaled > 0 {
		warn(RescaledNote(s.rescaled))
	}
}

// RescaledNote says that the labels of so many rows were rescaled.
func RescaledNote(rows int) string {
	return fmt.Sprintf("the labels of %s sum to 1 only within the tolerance, so they are divided by their sum",
		dataset.Counted(rows, "sample"))
}

// TurnedText says that so many images were turned.
func TurnedText(n int) string {
	return "images that are rotated by their EXIF orientation: " + units.Count(n)
}

// manifest returns the manifest without the digests of the shards.
func (s *Stats) manifest() *dataset.Manifest {
	m := &dataset.Manifest{
		Format: dataset.ManifestFormat, Rows: s.Rows, Features: s.Info.Features, Labels: s.Info.Labels,
		NonZeros: s.NonZeros, Sparse: dataset.SparseStorage(s.Rows, s.Info.Features, s.NonZeros),
		FeatureNames: s.Info.FeatureNames, LabelNames: s.Info.LabelNames,
		LabelType: s.Info.LabelType, HasValues: s.Info.HasValues, HasIntervals: s.Info.HasIntervals, Groups: s.groups,
		HasWeights: s.weighted,
		Shape:      s.Info.Shape, HasRowNames: s.Info.HasRowNames, LabelColumns: s.Info.LabelColumns, MeanLabel: s.meanLabel,
		Missing: s.Info.Missing.String(), LeftOut: s.leftOut, CountedFrom: s.Info.CountedFrom, Reading: s.Info.Reading,
	}
	if s.Info.Validation != nil {
		m.Validation = &s.own
	}
	// Without a missing degree, the dataset is complete, whatever the file was declared to be.
	m.LabelType.Incomplete = s.missing > 0
	m.Shards = make([]dataset.ShardRef, dataset.ShardCount(m.Rows, m.ContentBytes()))
	return m
}

// Scan scans src and calls f with each row that is not left out, and with the checker
// that has the row's values as float32.
func Scan(src dataset.Source, o *Options, phase string, of int, f func(*dataset.Row, *Checker) error) error {
	if o.Normalize && src.Info().LabelType.Incomplete {
		return dataset.OptionErrorf("{normalize} cannot be used with {labels=incomplete}: degrees that are known stay as " +
			"they are")
	}
	c, done := &Checker{info: src.Info(), normalize: o.Normalize, tolerance: cmp.Or(o.Tolerance, DefaultTolerance)}, 0
	return src.Scan(func(r *dataset.Row) error {
		if r.Number != done || done == dataset.MaxRows {
			return dataset.RowErrorf(c.info.File, r.Number,
				"the rows are not in order or too many: want row %d of at most %d rows here", done, dataset.MaxRows)
		}
		if done++; done%ProgressRows == 0 || c.info.Slow {
			if err := o.Report(phase, done, of, r.File); err != nil {
				return err
			}
		}
		if r.LeftOut {
			if o.LeftOut != nil {
				o.LeftOut(r.Number)
			}
			if o.leftOut != nil {
				o.leftOut(r)
			}
			return nil
		}
		if err := c.check(r); err != nil {
			return err
		}
		return f(r, c)
	})
}

// sortRows is the second pass over src: it calls put with each row and the number of its shard. The row is valid until
// put returns. The groups of the rows are returned as the blob that m names; nil: there are none.
func (s *Stats) sortRows(src dataset.Source, m *dataset.Manifest, o *Options,
	put func(shard int, r *storedRow) error) (blob []byte, err error) {
	var known *identity.Index
	var groups []uint16 // by row
	if m.Groups != nil {
		known, groups = identity.NewIndex("", "group", m.Groups.Names), make([]uint16, 0, m.Rows)
	}
	_, of := dataset.ImportOrder(m.Rows)
	file, row, rows, nonZeros := dataset.Prefix(s.Info.File), storedRow{}, 0, int64(0)
	err = Scan(src, o, "sort", m.Rows, func(r *dataset.Row, c *Checker) error {
		if s.rounded != nil {
			s.rounded.Add(r)
		}
		if rows >= m.Rows {
			return fmt.Errorf("%sthe file has more samples than the %d of the first pass: %w", file, m.Rows, dataset.ErrChanged)
		}
		if known != nil && r.Validation {
			if _, both, err := known.Find(r.Group, r); err != nil || both {
				return cmp.Or(err, dataset.RowErrorf(s.Info.File, r.Number, "the group %q of this validation sample has "+
					"training samples, too; the samples of a group must be in one of the two files", r.Group))
			}
		} else if known != nil {
			group, ok, err := known.Find(r.Group, r)
			if err != nil || !ok {
				return fmt.Errorf("%srow %d (counted from 0): the group %q did not occur in the first pass: %w", file, r.Number,
					r.Group, dataset.ErrChanged)
			}
			groups = append(groups, uint16(group))
		}
		position := int(of(uint64(rows)))
		row.position, row.number, row.labels, row.name = uint32(position), uint32(rows), c.Labels, r.Name
		row.columns, row.values = c.Stored(m.Sparse)
		row.numbers = row.numbers[:0]
		if m.HasValues {
			row.numbers = append(row.numbers, r.Value)
		}
		if m.HasIntervals {
			row.numbers = append(row.numbers, r.Interval[:]...)
		}
		if m.HasWeights {
			row.numbers = append(row.numbers, r.Weight)
		}
		rows++
		nonZeros += int64(c.NonZeros)
		return put(dataset.ShardOf(position, len(m.Shards), m.Rows), &row)
	})
	if err != nil {
		return nil, err
	}
	if rows != m.Rows || nonZeros != m.NonZeros {
		return nil, fmt.Errorf("dataset: the first pass found %d samples with %d non-zero values, the second pass %d with "+
			"%d: %w",
			m.Rows, m.NonZeros, rows, nonZeros, dataset.ErrChanged)
	}
	if known != nil {
		blob = dataset.EncodeFolds(groups)
		sum := sha256.Sum256(blob)
		m.Groups.Digest = hex.EncodeToString(sum[:])
		if o.Groups != nil {
			o.Groups(groups)
		}
	}
	if s.rounded != nil {
		for _, line := range s.rounded.Lines() {
			o.Warn(errtext.Sprintf("%s%s", file, line))
		}
	}
	return blob, nil
}

// CountRows returns the number of rows of src that are not left out. It scans src if
// Info.Rows is unknown.
func CountRows(src dataset.Source) (rows int, err error) {
	if n := src.Info().Rows; n >= 0 {
		return n, nil
	}
	err = src.Scan(func(r *dataset.Row) error {
		if !r.LeftOut {
			rows++
		}
		return nil
	})
	return rows, err
}
