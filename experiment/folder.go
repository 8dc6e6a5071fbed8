package experiment

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/coppice-ldl/coppice/internal/files"
	"github.com/coppice-ldl/coppice/job/pipeline"
)

// The files of a folder.
const (
	runsFile   = "cells.log"
	layoutFile = "plan.json"
	modelsDir  = "models"
)

// Folder keeps the records of runs that ended. One process writes to it at a time. It is safe
// for concurrent use.
type Folder struct {
	dir  string
	lock *os.File

	works *works // says on the disk which runs are computed

	mu   sync.Mutex
	file *os.File // nil: for reading only
	end  int64    // of the last record: a piece behind it, of a write that failed, is written over
	have map[string]*Record

	// Damaged are the numbers of lines of the records that cannot be read: their runs have no record.
	Damaged []int
}

// OpenFolder opens a folder to write to, which is made if it is not there. An unfinished record at the end, of a
// process that was killed, is cut off.
func OpenFolder(dir string) (_ *Folder, err error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	if err := own(dir); err != nil {
		return nil, err
	}
	f := &Folder{dir: dir}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	f.lock, err = files.Lock(filepath.Join(dir, lockFile), 0o666)
	if errors.Is(err, files.ErrLocked) {
		return nil, fmt.Errorf("%s: another process runs this experiment", dir)
	} else if err != nil {
		return nil, fmt.Errorf("%s cannot be locked: %w", dir, err)
	}
	path := filepath.Join(dir, runsFile)
	if f.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666); err != nil {
		return nil, err
	}
	if f.have, f.end, f.Damaged, err = readRecords(f.file); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := f.file.Truncate(f.end); err != nil {
		return nil, err
	}
	f.works = startWorks(f.lock)
	return f, nil
}

// own returns an error if a folder has files but none of an experiment, or a symbolic link in place of a file of an
// experiment.
func own(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	has := false
	for _, e := range entries {
		if name := e.Name(); name == runsFile || name == layoutFile || name == lockFile {
			if has = true; !e.Type().IsRegular() {
				return fmt.Errorf("%s: %w", filepath.Join(dir, name), errNoFile)
			}
		}
	}
	if len(entries) > 0 && !has {
		return fmt.Errorf("%s: %w: it holds %q, which is no file of an experiment; give a folder that is empty or does not "+
			"exist", dir, ErrFolder, entries[0].Name())
	}
	return nil
}

// errNoFile is the error of a file of an experiment that is a symbolic link or a folder, say.
var errNoFile = errors.New("it is no regular file; delete it, and run the experiment again")

// openFile opens a file of a folder to read. Folders of others are read, too: so no symbolic link is followed, and
// nothing waits for a pipe.
func openFile(dir, name string) (*os.File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	info, err := root.Lstat(name)
	if err == nil && !info.Mode().IsRegular() {
		err = errNoFile
	}
	var f *os.File
	if err == nil {
		f, err = root.Open(name)
	}
	if err != nil {
		if in, ok := errors.AsType[*fs.PathError](err); ok {
			err = in.Err
		}
		return nil, &fs.PathError{Op: "open", Path: filepath.Join(dir, name), Err: err}
	}
	return f, nil
}

// FolderContent is what a folder has.
type FolderContent struct {
	Layout  *Layout
	Records map[string]*Record
	Damaged []int // as in Folder
}

// ReadFolder reads a folder, which another process may be writing.
func ReadFolder(dir string) (*FolderContent, error) {
	l, err := FolderLayout(dir)
	if err != nil {
		return nil, err
	}
	c := &FolderContent{Layout: l}
	err = readRuns(dir, func(in io.Reader) error {
		c.Records, _, c.Damaged, err = readRecords(in)
		return err
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// FillFolder reads a folder as ReadFolder does, and fills the table of the layout with the records. It does not keep
// the outcomes, which take several times as much memory as the table.
func FillFolder(ctx context.Context, dir string) (l *Layout, damaged []int, err error) {
	if l, err = FolderLayout(dir); err != nil {
		return nil, nil, err
	}
	f := l.Filling()
	f.latest = true
	err = readRuns(dir, func(in io.Reader) error {
		_, damaged, err = eachLine(ctx, in, func(line []byte) bool {
			r, err := decodeRecord(line)
			if err == nil {
				f.Put(r)
			}
			return err == nil
		})
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	return l, damaged, nil
}

// FolderLayout reads the layout of a folder, which another process may be writing.
func FolderLayout(dir string) (*Layout, error) {
	l, err := readLayout(dir)
	if errors.Is(err, fs.ErrNotExist) && Begun(dir) {
		return nil, fmt.Errorf("%s: %w", dir, ErrNoPlan)
	}
	if errors.Is(err, ErrFolder) {
		err = fmt.Errorf("%w; coppice experiment run writes plan.json again and keeps the runs that have ended", err)
	}
	return l, err
}

// readRuns calls read with the records in a folder, if there are any.
func readRuns(dir string, read func(io.Reader) error) error {
	in, err := openFile(dir, runsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	if err := read(in); err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(dir, runsFile), err)
	}
	return nil
}

// Begun reports whether a run began in a folder: it has a plan or runs.
func Begun(dir string) bool {
	if _, err := os.Stat(filepath.Join(dir, layoutFile)); err == nil {
		return true
	}
	cells, err := os.Stat(filepath.Join(dir, runsFile))
	return err == nil && cells.Size() > 0
}

func readLayout(dir string) (*Layout, error) {
	in, err := openFile(dir, layoutFile)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	b, err := io.ReadAll(in)
	if err != nil {
		return nil, err
	}
	l, err := decodeLayout(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, layoutFile), err)
	}
	return l, nil
}

func decodeLayout(b []byte) (*Layout, error) {
	l := new(Layout)
	if err := json.Unmarshal(b, l); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFolder, err)
	}
	if l.Table == nil || len(l.Keys) != len(l.Table.Runs) {
		return nil, fmt.Errorf("%w: plan.json does not list one key for each run", ErrFolder)
	}
	for i := range l.Table.Hyperparameters {
		h := &l.Table.Hyperparameters[i]
		for k := range h.Methods {
			m := &h.Methods[k]
			if m.Values == nil {
				m.Values = make(map[string]string)
			}
			maps.Copy(m.Values, h.Shared)
		}
		h.Shared = nil
	}
	if err := l.Table.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFolder, err)
	}
	return l, nil
}

// Records returns what is recorded, by key. The map is a copy.
func (f *Folder) Records() map[string]*Record {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.have)
}

// Begin notes that a run is computed from now on, until Put or Drop is called with its key.
func (f *Folder) Begin(key string) { f.works.set(key, true) }

// Drop notes that a run is not computed any more.
func (f *Folder) Drop(key string) { f.works.set(key, false) }

// Put records a run. If it has a model, Put writes the file models/DIGEST.model. Both are on the
// disk when Put returns.
func (f *Folder) Put(r *Record) error {
	if model := r.Outcome.Model; len(model) > 0 {
		dir := filepath.Join(f.dir, modelsDir)
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return err
		}
		if err := files.Replace(filepath.Join(dir, r.Outcome.ModelDigest+".model"), model, 0o644); err != nil {
			return err
		}
	}
	b, err := encodeRecord(r)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, err := f.file.WriteAt(b, f.end); err != nil {
		return err
	}
	if err := f.file.Sync(); err != nil {
		return err
	}
	f.end += int64(len(b))
	kept := *r.Outcome
	kept.Model = nil
	attempts := 1
	if before := f.have[r.Key]; before != nil {
		attempts += before.Attempts
	}
	f.have[r.Key] = &Record{Key: r.Key, Seconds: r.Seconds, Attempts: attempts, Outcome: &kept}
	f.Drop(r.Key)
	return nil
}

// Layout returns the layout that was put last; nil: there is none that can be read.
func (f *Folder) Layout() *Layout {
	l, _ := readLayout(f.dir)
	return l
}

// PutLayout writes the layout.
func (f *Folder) PutLayout(l *Layout) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(l); err != nil {
		return err
	}
	return files.Replace(filepath.Join(f.dir, layoutFile), b.Bytes(), 0o644)
}

// Close lets go of the folder.
func (f *Folder) Close() error {
	var err error
	if f.works != nil {
		f.works.end()
	}
	if f.file != nil {
		err = f.file.Close()
	}
	if f.lock != nil {
		err = errors.Join(err, f.lock.Close())
	}
	return err
}

// MaxRecord bounds a line of the records, in bytes.
const MaxRecord = 16 << 20

// recordJSON is a Record as files have it, with what is recorded beside the outcome, encoded.
type recordJSON struct {
	Key         string            `json:"key"`
	Seconds     float64           `json:"seconds,omitempty"`
	Outcome     *pipeline.Outcome `json:"result"`
	Curve       []byte            `json:"curve,omitempty"`
	Predictions []byte            `json:"predictions,omitempty"`
}

// readRecords reads records up to the end of the last whole one. A later record of a run replaces an earlier
// one: it was run again.
func readRecords(in io.Reader) (records map[string]*Record, end int64, damaged []int, err error) {
	records = make(map[string]*Record)
	end, damaged, err = eachLine(context.Background(), in, func(line []byte) bool {
		record, err := decodeRecord(line)
		if err != nil {
			return false
		}
		if before := records[record.Key]; before != nil {
			record.Attempts += before.Attempts
		}
		records[record.Key] = record
		return true
	})
	if err != nil {
		return nil, 0, nil, err
	}
	return records, end, damaged, nil
}

// eachLine calls take with each line of records. take returns false if the line cannot be read. end is the end of the
// last line that can be read. Damaged are the numbers of lines between records that cannot be read: their runs have no
// record. What cannot be read behind the last record is the end of a crash.
func eachLine(ctx context.Context, in io.Reader, take func(line []byte) bool) (end int64, damaged []int, err error) {
	var unread []int // since the last record
	number, records := 0, 0
	at := int64(0)
	_, err = eachWholeLine(ctx, in, func(line []byte, size int64) {
		number, at = number+1, at+size
		if !take(line) {
			unread = append(unread, number)
			return
		}
		records++
		damaged, unread, end = append(damaged, unread...), nil, at
	})
	switch n := len(unread); {
	case err != nil:
		return 0, nil, fmt.Errorf("line %d: %w", number+1, err)
	case records == 0 && n > 1:
		return 0, nil, noRecord(n)
	case n > 1: // a crash leaves one
		damaged = append(damaged, unread[:n-1]...)
	}
	return end, damaged, nil
}

// eachWholeLine calls take with each line that has an end, and with the number of its bytes. size is the number of the
// bytes of all these lines.
func eachWholeLine(ctx context.Context, in io.Reader, take func(line []byte, size int64)) (size int64, err error) {
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		line, n, err := readLine(r)
		if err == io.EOF {
			return size, nil
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return size, err
		}
		size += n
		take(line, n)
	}
}

// noRecord is the error about a file whose lines cannot be read.
func noRecord(lines int) error {
	return fmt.Errorf("%w: none of the %d lines is a record of a run; move the file away to repeat the runs", ErrFolder,
		lines)
}

// readLine reads a line, which it returns without its end, and with at most MaxRecord bytes; size counts all of
// its bytes. The error is io.EOF if the rest has no end of a line.
func readLine(r *bufio.Reader) (line []byte, size int64, err error) {
	for {
		piece, err := r.ReadSlice('\n')
		size += int64(len(piece))
		if len(line) <= MaxRecord {
			line = append(line, piece...)
		}
		switch {
		case err == nil:
			return line[:len(line)-1], size, nil
		case err != bufio.ErrBufferFull:
			return nil, size, err
		}
	}
}

// sumLength is the length of a CRC-32 in hex and a space. Each line begins with them.
const sumLength = 9

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func encodeRecord(r *Record) ([]byte, error) {
	v := recordJSON{Key: r.Key, Seconds: r.Seconds, Outcome: r.Outcome, Predictions: r.Outcome.Predictions}
	if r.Outcome.Curve != nil {
		v.Curve = r.Outcome.Curve.Append(nil)
	}
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "%08x %s\n", crc32.Checksum(b, castagnoli), b), nil
}

func decodeRecord(line []byte) (*Record, error) {
	if len(line) < sumLength || line[sumLength-1] != ' ' {
		return nil, fmt.Errorf("%w: a line does not begin with a checksum", ErrFolder)
	}
	want, err := strconv.ParseUint(string(line[:sumLength-1]), 16, 32)
	if err != nil || uint32(want) != crc32.Checksum(line[sumLength:], castagnoli) {
		return nil, fmt.Errorf("%w: the checksum at the beginning of a line does not match the line", ErrFolder)
	}
	var v recordJSON
	d := json.NewDecoder(bytes.NewReader(line[sumLength:]))
	d.DisallowUnknownFields() // a record of another version: what it says would be lost
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFolder, err)
	}
	r := &Record{Key: v.Key, Seconds: v.Seconds, Attempts: 1, Outcome: v.Outcome}
	if r.Outcome == nil || len(r.Key) != 64 || !(r.Seconds >= 0) {
		return nil, fmt.Errorf("%w: a record has no key, no result or no valid time", ErrFolder)
	}
	if err := r.SetRecorded(v.Curve, v.Predictions); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFolder, err)
	}
	return r, nil
}
