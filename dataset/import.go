package dataset

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

	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/tempdir"
	"github.com/coppice-ldl/coppice/internal/units"
)

// ImportOptions says how Import, Build and Blocks check rows and report.
type ImportOptions struct {
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
	leftOut func(*Row)
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

const progressRows = 1 << 8 // rows between two reports

// Report calls Progress and returns the error of Context. If the number of rows is unknown (of is -1), the share of
// file that was read says how far the phase is; file may be nil.
func (o *ImportOptions) report(phase string, done, of int, file Measured) error {
	if o.Progress != nil {
		part := -1.0
		if of > 0 {
			part = float64(done) / float64(of)
		} else if file != nil {
			part = file.ReadShare()
		}
		o.Progress(Progress{phase, done, of, part})
	}
	if o.Context != nil {
		return o.Context.Err()
	}
	return nil
}

// Import writes the shards of src, and the groups of its rows if they have some, into the folder dir, each in a file named by
// the SHA-256 of its bytes in hex, and returns the manifest. It reads src twice and has at most about three shards and 64 MiB in
// memory; its temporary files in dir are as large as the shards. Files are not synced to disk. On an error no file or folder
// that Import made remains; an error about the data names file, row and column.
func Import(src Source, dir string, o ImportOptions) (m *Manifest, err error) {
	first, err := scanStats(src, &o)
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
	bytes := m.contentBytes()
	if err := tempdir.CheckSpace(dir, bytes+bytes/int64(len(m.Shards))+16*int64(m.Rows)); err != nil {
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

// writeShards is the second pass of an import: rows to spill files, then shard by shard, and the groups, into files of work.
func (s *sourceStats) writeShards(src Source, m *Manifest, work string, o *ImportOptions) error {
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
		if err := o.report("store", i+1, len(m.Shards), nil); err != nil {
			return err
		}
	}
	return nil
}

// moveShards moves the files of shards and groups from work to dir, or takes back those moved.
func moveShards(m *Manifest, work, dir string) (err error) {
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
func Build(src Source, o ImportOptions) (*Manifest, []*Rows, error) {
	first, err := scanStats(src, &o)
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
	shards := make([]*Rows, len(builders))
	for i, b := range builders {
		rows, names, err := b.finish()
		if err != nil {
			return nil, nil, err
		}
		rows.setNames(names)
		shards[i], builders[i] = rows, nil
		_, m.Shards[i] = encodeShard(rows, names)
		if err := o.report("store", i+1, len(shards), nil); err != nil {
			return nil, nil, err
		}
	}
	return m, shards, nil
}

// sourceStats is what the first pass over a source computes.
type sourceStats struct {
	info      Info
	rows      int
	nonZeros  int64
	meanLabel []float64
	groups    *Groups // without their rows; nil: there are none
	leftOut   LeftOut
	lastOut   int // the last row in leftOut; -1: none
	rescaled  int // rows whose labels sum to 1 within the tolerance only
	rounded   *roundedFeatures
	lacks     [lacksDegrees + 1]int
	turned    int // images
	totals    totalLabels
}

// scanStats scans src and checks every row.
func scanStats(src Source, o *ImportOptions) (*sourceStats, error) {
	s := &sourceStats{info: src.Info(), lastOut: -1}
	s.info.Reading.Normalize, s.info.Reading.Tolerance = o.Normalize, o.Tolerance
	if err := s.info.check(); err != nil {
		return nil, err
	}
	s.meanLabel = make([]float64, s.info.Labels)
	var groups *groupSet
	if s.info.HasGroups {
		groups = newGroupSet(s.info.File)
	}
	watch, first := newFeatureStats(s.info), *o
	first.LeftOut, first.leftOut = nil, func(r *Row) {
		s.leftOut.add(s.lastOut, r.Number)
		s.lastOut = r.Number
		s.lacks[r.lack]++
	}
	err := scanChecked(src, &first, "check", s.info.Rows, func(r *Row, c *checker) error {
		s.rows++
		addTotals(&s.totals, c.labels)
		s.rescaled = c.rescaled
		s.nonZeros += int64(c.nonZeros)
		for i, d := range c.labels {
			s.meanLabel[i] += float64(d)
		}
		if r.turned {
			s.turned++
		}
		watch.add(r)
		if groups != nil {
			return groups.add(r)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	switch {
	case len(s.leftOut) > maxLeftOut:
		return nil, fmt.Errorf("%s%s samples would be left out for missing values, more than a dataset can list; remove these samples from the file",
			prefix(s.info.File), units.Count(s.leftOut.count()))
	case s.rows == 0 && len(s.leftOut) > 0:
		return nil, kindErrorf(ErrFormat, "%sall %s samples have missing values, so no sample is left", prefix(s.info.File), units.Count(s.leftOut.count()))
	case s.rows == 0:
		return nil, kindErrorf(ErrFormat, "%sthe file has no samples", prefix(s.info.File))
	}
	var notes []string
	if groups != nil {
		if s.groups, notes, err = groups.sorted(); err != nil {
			return nil, err
		}
	}
	for i := range s.meanLabel {
		s.meanLabel[i] /= float64(s.rows)
	}
	if o.Note != nil {
		for _, note := range slices.Concat(s.info.Said(), errtext.Literals(notes)) {
			o.Note(errtext.Sprintf("%s%s", prefix(s.info.File), note))
		}
	}
	if o.Warn != nil {
		s.warn(watch, o.Warn)
		s.rounded = watch.rounded()
	}
	return s, nil
}

func (s *sourceStats) warn(w *featureStats, tell func(errtext.Text)) {
	file := prefix(s.info.File)
	warn := func(text any) { tell(errtext.Sprintf("%s%s", file, text)) }
	if n := s.leftOut.count(); n > 0 {
		var others []string // rows that lack something else than a value
		if n := s.lacks[lacksImage]; n > 0 {
			others = append(others, units.Count(n)+" without the name of an image")
		}
		if n := s.lacks[lacksDegrees]; n > 0 {
			others = append(others, units.Count(n)+" whose labels are all 0")
		}
		text := strings.Join(others, ", ")
		if text != "" {
			text = " (" + text + ")"
		}
		warn(fmt.Sprintf("%s of %s samples have missing values and are left out%s; other samples keep their row numbers", units.Count(n), units.Count(s.rows+n), text))
	}
	if total := s.totals.label(2); total >= 0 {
		warn(totalHint(&s.info, total, "in every sample"))
	}
	if s.turned > 0 {
		warn(turnedText(s.turned))
	}
	if s.rescaled > 0 {
		warn(rescaledNote(s.rescaled))
	}
	for _, line := range warnings(w.suspects()) {
		warn(line)
	}
}

// rescaledNote says that the labels of so many rows were rescaled.
func rescaledNote(rows int) string {
	return fmt.Sprintf("the labels of %s sum to 1 only within the tolerance, so they are divided by their sum", counted(rows, "sample"))
}

// turnedText says that so many images were turned.
func turnedText(n int) string {
	return "images that are rotated by their EXIF orientation: " + units.Count(n)
}

// manifest returns the manifest without the digests of the shards.
func (s *sourceStats) manifest() *Manifest {
	m := &Manifest{
		Format: ManifestFormat, Rows: s.rows, Features: s.info.Features, Labels: s.info.Labels,
		NonZeros: s.nonZeros, Sparse: SparseStorage(s.rows, s.info.Features, s.nonZeros),
		FeatureNames: s.info.FeatureNames, LabelNames: s.info.LabelNames,
		LabelType: s.info.LabelType, HasValues: s.info.HasValues, HasIntervals: s.info.HasIntervals, Groups: s.groups,
		Shape: s.info.Shape, HasRowNames: s.info.HasRowNames, LabelColumns: s.info.LabelColumns, MeanLabel: s.meanLabel,
		Missing: s.info.Missing.String(), LeftOut: s.leftOut, CountedFrom: s.info.CountedFrom, Reading: s.info.Reading,
	}
	m.Shards = make([]ShardRef, ShardCount(m.Rows, m.contentBytes()))
	return m
}

// scanChecked scans src and calls f with each row that is not left out, and with the checker
// that has the row's values as float32.
func scanChecked(src Source, o *ImportOptions, phase string, of int, f func(*Row, *checker) error) error {
	c, done := &checker{info: src.Info(), normalize: o.Normalize, tolerance: cmp.Or(o.Tolerance, DefaultTolerance)}, 0
	return src.Scan(func(r *Row) error {
		if r.Number != done || done == MaxRows {
			return rowErrorf(c.info.File, r.Number, "the rows are not in order or too many: want row %d of at most %d rows here", done, MaxRows)
		}
		if done++; done%progressRows == 0 || c.info.slow {
			if err := o.report(phase, done, of, r.file); err != nil {
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

// sortRows is the second pass over src: it calls put with each row and the number of its shard. The row is valid until put
// returns. The groups of the rows are returned as the blob that m names; nil: there are none.
func (s *sourceStats) sortRows(src Source, m *Manifest, o *ImportOptions, put func(shard int, r *storedRow) error) (blob []byte, err error) {
	var known *identityIndex
	var groups []uint16 // by row
	if m.Groups != nil {
		known, groups = newIdentityIndex("", "group", m.Groups.Names), make([]uint16, 0, m.Rows)
	}
	_, of := importOrder(m.Rows)
	file, row, rows, nonZeros := prefix(s.info.File), storedRow{}, 0, int64(0)
	err = scanChecked(src, o, "sort", m.Rows, func(r *Row, c *checker) error {
		if s.rounded != nil {
			s.rounded.add(r)
		}
		if rows >= m.Rows {
			return fmt.Errorf("%sthe file has more samples than the %d of the first pass: %w", file, m.Rows, ErrChanged)
		}
		if known != nil {
			group, ok, err := known.find(r.Group, r)
			if err != nil || !ok {
				return fmt.Errorf("%srow %d (counted from 0): the group %q did not occur in the first pass: %w", file, r.Number, r.Group, ErrChanged)
			}
			groups = append(groups, uint16(group))
		}
		position := int(of(uint64(rows)))
		row.position, row.number, row.labels, row.name = uint32(position), uint32(rows), c.labels, r.Name
		row.columns, row.values = c.stored(m.Sparse)
		row.numbers = row.numbers[:0]
		if m.HasValues {
			row.numbers = append(row.numbers, r.Value)
		}
		if m.HasIntervals {
			row.numbers = append(row.numbers, r.Interval[:]...)
		}
		rows++
		nonZeros += int64(c.nonZeros)
		return put(shardOf(position, len(m.Shards), m.Rows), &row)
	})
	if err != nil {
		return nil, err
	}
	if rows != m.Rows || nonZeros != m.NonZeros {
		return nil, fmt.Errorf("dataset: the first pass found %d samples with %d non-zero values, the second pass %d with %d: %w",
			m.Rows, m.NonZeros, rows, nonZeros, ErrChanged)
	}
	if known != nil {
		blob = EncodeFolds(groups)
		sum := sha256.Sum256(blob)
		m.Groups.Digest = hex.EncodeToString(sum[:])
		if o.Groups != nil {
			o.Groups(groups)
		}
	}
	if s.rounded != nil {
		for _, line := range s.rounded.lines() {
			o.Warn(errtext.Sprintf("%s%s", file, line))
		}
	}
	return blob, nil
}

// Blocks reads src in the order of the file and hands it to f in blocks of at
// most size rows, for prediction and evaluation without an import. f may keep the block and
// the names (nil if rows have none). Each block is stored sparse or dense by its own
// density.
func Blocks(src Source, size int, o ImportOptions, f func(*Rows, []string) error) error {
	info := src.Info()
	if err := info.check(); err != nil {
		return err
	}
	b := newBlock(info, size)
	err := scanChecked(src, &o, "read", info.Rows, func(r *Row, c *checker) error {
		b.add(r, c)
		if b.rows.N < size {
			return nil
		}
		rows, names := b.finish()
		b = newBlock(info, size)
		return f(rows, names)
	})
	if err != nil || b.rows.N == 0 {
		return err
	}
	return f(b.finish())
}

// block collects rows as compressed sparse rows.
type block struct {
	info  Info
	rows  *Rows
	names []string
}

func newBlock(info Info, size int) *block {
	return &block{info: info, rows: &Rows{
		Features: info.Features, Labels: info.Labels, Sparse: true,
		Start: make([]uint32, 1, size+1), Row: make([]uint32, 0, size),
	}}
}

func (b *block) add(r *Row, c *checker) {
	columns, values := c.stored(true)
	b.rows.N++
	b.rows.X = append(b.rows.X, values...)
	b.rows.Index = append(b.rows.Index, columns...)
	b.rows.Start = append(b.rows.Start, uint32(len(b.rows.X)))
	b.rows.D = append(b.rows.D, c.labels...)
	b.rows.Row = append(b.rows.Row, uint32(r.Number))
	if b.info.HasValues {
		b.rows.Value = append(b.rows.Value, r.Value)
	}
	if b.info.HasIntervals {
		b.rows.Interval = append(b.rows.Interval, r.Interval[:]...)
	}
	if b.info.HasRowNames {
		b.names = append(b.names, r.Name)
	}
}

func (b *block) finish() (*Rows, []string) {
	r := b.rows
	if SparseStorage(r.N, r.Features, int64(len(r.X))) {
		return r, b.names
	}
	dense := make([]float32, r.N*r.Features)
	for i := range r.N {
		columns, values := r.NonZeros(i)
		for j, column := range columns {
			dense[i*r.Features+int(column)] = values[j]
		}
	}
	r.Sparse, r.X, r.Index, r.Start = false, dense, nil, nil
	return r, b.names
}

// CountRows returns the number of rows of src that are not left out. It scans src if
// Info.Rows is unknown.
func CountRows(src Source) (rows int, err error) {
	if n := src.Info().Rows; n >= 0 {
		return n, nil
	}
	err = src.Scan(func(r *Row) error {
		if !r.LeftOut {
			rows++
		}
		return nil
	})
	return rows, err
}
