package experiment

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
)

// The files of a folder.
const (
	cellsFile  = "cells.log"
	layoutFile = "plan.json"
	lockFile   = "lock"
	modelsDir  = "models"
)

// MaxRecord bounds a line of the records, in bytes.
const MaxRecord = 16 << 20

// ErrFolder is wrapped by errors about what is in a folder.
var ErrFolder = errors.New("this is no folder of an experiment, or it is damaged")

// Folder keeps the records of cells that ended. One process writes to it at a time. It is safe
// for concurrent use.
type Folder struct {
	dir  string
	lock *os.File

	mu   sync.Mutex
	file *os.File // nil: for reading only
	end  int64    // of the last record: a piece behind it, of a write that failed, is written over
	have map[string]*Record
}

// OpenFolder opens a folder to write to, which is made where it is not there. An unfinished
// record at the end, of a process that was killed, is cut off.
func OpenFolder(dir string) (*Folder, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	if err := own(dir); err != nil {
		return nil, err
	}
	f := &Folder{dir: dir}
	if err := f.open(); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (f *Folder) open() (err error) {
	if f.lock, err = lock(filepath.Join(f.dir, lockFile)); err != nil {
		return fmt.Errorf("%s: %w", f.dir, err)
	}
	path := filepath.Join(f.dir, cellsFile)
	if f.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666); err != nil {
		return err
	}
	if f.have, f.end, err = readRecords(f.file); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return f.file.Truncate(f.end)
}

// own refuses a folder with files of others and none of an experiment.
func own(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if name := e.Name(); name == cellsFile || name == layoutFile || name == lockFile {
			return nil
		}
	}
	if len(entries) > 0 {
		return fmt.Errorf("%s: %w: it has %q; give a folder that is empty or does not exist", dir, ErrFolder, entries[0].Name())
	}
	return nil
}

// ReadFolder reads the records and the layout of a folder, which another process may be writing.
func ReadFolder(dir string) (*Layout, map[string]*Record, error) {
	l, err := readLayout(filepath.Join(dir, layoutFile))
	if err != nil {
		return nil, nil, err
	}
	path := filepath.Join(dir, cellsFile)
	in, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer in.Close()
	records, _, err := readRecords(in)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return l, records, nil
}

// Begun reports whether a run began in a folder, so that it can be read.
func Begun(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, layoutFile))
	return err == nil
}

func readLayout(path string) (*Layout, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	l, err := decodeLayout(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return l, nil
}

func decodeLayout(b []byte) (*Layout, error) {
	l := new(Layout)
	if err := json.Unmarshal(b, l); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFolder, err)
	}
	if l.Table == nil || len(l.Keys) != len(l.Table.Cells) {
		return nil, fmt.Errorf("%w: its cells and keys do not go together", ErrFolder)
	}
	return l, l.Table.Validate()
}

// readRecords reads records up to the end of the last whole one. A later record of a cell
// replaces an earlier one: it was run again.
func readRecords(in io.Reader) (records map[string]*Record, end int64, err error) {
	records = make(map[string]*Record)
	r := bufio.NewReaderSize(in, 64<<10)
	for line := 1; ; line++ {
		b, err := readLine(r)
		if err == io.EOF {
			return records, end, nil
		}
		if err != nil {
			return nil, 0, fmt.Errorf("line %d: %w", line, err)
		}
		record, err := decodeRecord(b)
		if err != nil {
			if _, more := r.Peek(1); more == io.EOF {
				return records, end, nil // the end of a crash
			}
			return nil, 0, fmt.Errorf("line %d: %w", line, err)
		}
		records[record.Key] = record
		end += int64(len(b)) + 1
	}
}

// readLine reads a line without its end; io.EOF where the rest has none.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		piece, err := r.ReadSlice('\n')
		line = append(line, piece...)
		switch {
		case err == nil:
			return line[:len(line)-1], nil
		case err != bufio.ErrBufferFull:
			return nil, err
		case len(line) > MaxRecord:
			return nil, fmt.Errorf("%w: it has more than %d bytes", ErrFolder, MaxRecord)
		}
	}
}

// sumLength is that of a CRC-32 in hex and a space, which a line begins with.
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
		return nil, fmt.Errorf("%w: a line without a sum", ErrFolder)
	}
	want, err := strconv.ParseUint(string(line[:sumLength-1]), 16, 32)
	if err != nil || uint32(want) != crc32.Checksum(line[sumLength:], castagnoli) {
		return nil, fmt.Errorf("%w: a line whose sum is wrong", ErrFolder)
	}
	var v recordJSON
	if err := json.Unmarshal(line[sumLength:], &v); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFolder, err)
	}
	r := &Record{Key: v.Key, Seconds: v.Seconds, Outcome: v.Outcome}
	if r.Outcome == nil || len(r.Key) != 64 || !(r.Seconds >= 0) {
		return nil, fmt.Errorf("%w: a record without a key or a result", ErrFolder)
	}
	if err := r.SetRecords(v.Curve, v.Predictions); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFolder, err)
	}
	return r, nil
}

// Records returns what is recorded, by key. The map is a copy.
func (f *Folder) Records() map[string]*Record {
	f.mu.Lock()
	defer f.mu.Unlock()
	records := make(map[string]*Record, len(f.have))
	for key, r := range f.have {
		records[key] = r
	}
	return records
}

// Put records a cell, and its model where it has one. The record is on the disk when Put
// returns.
func (f *Folder) Put(r *Record) error {
	if model := r.Outcome.Model; len(model) > 0 {
		if err := f.putModel(r.Key, model); err != nil {
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
	f.have[r.Key] = &Record{r.Key, r.Seconds, &kept}
	return nil
}

func (f *Folder) putModel(key string, model []byte) error {
	dir := filepath.Join(f.dir, modelsDir)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	return writeWhole(filepath.Join(dir, key+".model"), model)
}

// Layout returns the layout that was put last; nil: there is none that can be read.
func (f *Folder) Layout() *Layout {
	l, err := readLayout(filepath.Join(f.dir, layoutFile))
	if err != nil {
		return nil
	}
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
	return writeWhole(filepath.Join(f.dir, layoutFile), b.Bytes())
}

// writeWhole writes a file that is there whole or not at all.
func writeWhole(path string, b []byte) (err error) {
	out, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(out.Name())
		}
	}()
	_, err = out.Write(b)
	err = errors.Join(err, out.Chmod(0o644), out.Sync(), out.Close())
	if err != nil {
		return err
	}
	return os.Rename(out.Name(), path)
}

// Close lets go of the folder.
func (f *Folder) Close() error {
	var err error
	if f.file != nil {
		err = f.file.Close()
	}
	if f.lock != nil {
		err = errors.Join(err, f.lock.Close())
	}
	return err
}
