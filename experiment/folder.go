package experiment

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/coppice-ldl/coppice/internal/files"
)

// The files of a folder.
const (
	runsFile   = "cells.log"
	layoutFile = "plan.json"
	lockFile   = "lock"
	modelsDir  = "models"
)

// Folder keeps the records of runs that ended. One process writes to it at a time. It is safe
// for concurrent use.
type Folder struct {
	dir  string
	lock *os.File

	mu   sync.Mutex
	file *os.File // nil: for reading only
	end  int64    // of the last record: a piece behind it, of a write that failed, is written over
	have map[string]*Record

	// Damaged are the numbers of lines of the records that cannot be read: their runs have no record.
	Damaged []int
}

// OpenFolder opens a folder to write to, which is made if it is not there. An unfinished record at the end, of a process that
// was killed, is cut off.
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
	return f, nil
}

// own refuses a folder with files of others and none of an experiment.
func own(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if name := e.Name(); name == runsFile || name == layoutFile || name == lockFile {
			return nil
		}
	}
	if len(entries) > 0 {
		return fmt.Errorf("%s: %w: it holds %q, which is no file of an experiment; give a folder that is empty or does not exist", dir, ErrFolder, entries[0].Name())
	}
	return nil
}

// FolderContent is what a folder has.
type FolderContent struct {
	Layout  *Layout
	Records map[string]*Record
	Damaged []int // as in Folder
}

// ReadFolder reads a folder, which another process may be writing.
func ReadFolder(dir string) (*FolderContent, error) {
	l, err := readLayout(filepath.Join(dir, layoutFile))
	if errors.Is(err, fs.ErrNotExist) && Begun(dir) {
		return nil, fmt.Errorf("%s: %w", dir, ErrNoPlan)
	}
	if errors.Is(err, ErrFolder) {
		err = fmt.Errorf("%w; coppice experiment run writes plan.json again and keeps the runs that have ended", err)
	}
	if err != nil {
		return nil, err
	}
	c, path := &FolderContent{Layout: l}, filepath.Join(dir, runsFile)
	in, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return nil, err
	}
	defer in.Close()
	if c.Records, _, c.Damaged, err = readRecords(in); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// Begun reports whether a run began in a folder: it has a plan or runs.
func Begun(dir string) bool {
	if _, err := os.Stat(filepath.Join(dir, layoutFile)); err == nil {
		return true
	}
	cells, err := os.Stat(filepath.Join(dir, runsFile))
	return err == nil && cells.Size() > 0
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
	if l.Table == nil || len(l.Keys) != len(l.Table.Runs) {
		return nil, fmt.Errorf("%w: plan.json does not list one key for each run", ErrFolder)
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
	records := make(map[string]*Record, len(f.have))
	for key, r := range f.have {
		records[key] = r
	}
	return records
}

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
	f.have[r.Key] = &Record{r.Key, r.Seconds, attempts, &kept}
	return nil
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
	return files.Replace(filepath.Join(f.dir, layoutFile), b.Bytes(), 0o644)
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
