package served

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/coppice-ldl/coppice/algorithms/kit/modelfile"
	"github.com/coppice-ldl/coppice/internal/units"
)

// The bounds of a scan: MaxDepth folders below each other, and MaxEntries files and folders.
const (
	MaxDepth   = 4
	MaxEntries = 100_000
)

// The names of files of an experiment, as package experiment writes them.
const (
	planFile  = "plan.json"
	runsFile  = "cells.log"
	lockFile  = "lock"
	modelsDir = "models"
	folderEnd = ".experiment" // of the name of a folder that coppice experiment run makes
	modelEnd  = ".model"      // of the name of the file of a run's model
)

// stamp says which version of a file was read: another version has another stamp. The zero stamp is of no file.
type stamp struct {
	size, modified int64 // modified in nanoseconds since 1970
	of             fs.FileInfo
}

func stampOf(info fs.FileInfo) stamp {
	return stamp{info.Size(), info.ModTime().UnixNano(), info}
}

// is reports whether two stamps are of the same version of a file.
func (s stamp) is(other stamp) bool {
	if s.of == nil || other.of == nil {
		return s.of == nil && other.of == nil
	}
	return s.size == other.size && s.modified == other.modified && os.SameFile(s.of, other.of)
}

// seconds is when the file was written, in Unix seconds.
func (s stamp) seconds() int64 { return s.modified / int64(time.Second) }

// place is an experiment or a model file that a scan has found.
type place struct {
	name string // in the API
	path string // below the folder, with slashes; "." is the folder itself
	plan stamp  // of an experiment: of its plan
	file stamp  // of a model file, or of the records of an experiment
	id   uint64 // of the training that made a model file
}

// newest is when something of a place was written last, in nanoseconds since 1970.
func (p *place) newest() int64 { return max(p.plan.modified, p.file.modified) }

// contents is what a scan has found. Nobody changes it.
type contents struct {
	experiments, models []*place // by name
	curves              map[string]stamp
	byExperiment        map[string]*place
	byModel             map[string]*place
	note                string // if not empty, says what was left out
}

// shelf scans a folder, at most once a second.
type shelf struct {
	dir  string        // absolute, without symbolic links
	root *os.Root      // of dir
	turn chan struct{} // has a value while nobody scans

	mu    sync.Mutex // guards the fields below
	last  *contents
	next  time.Time         // of the next scan
	known map[string]file   // by path, of all files that were seen
	ids   map[string]uint64 // of the trainings of model files, by path: a number stays
}

// openShelf returns the shelf of a folder.
func openShelf(dir string) (*shelf, error) {
	dir, err := filepath.Abs(dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: dir, Err: syscall.ENOTDIR}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	s := &shelf{dir: dir, root: root, turn: make(chan struct{}, 1), ids: make(map[string]uint64)}
	s.turn <- struct{}{}
	return s, nil
}

// Close lets go of the folder.
func (s *shelf) Close() error { return s.root.Close() }

// Dir returns the absolute path of the folder.
func (s *shelf) Dir() string { return s.dir }

// path returns the path of something that a scan has found.
func (s *shelf) path(at string) string { return filepath.Join(s.dir, filepath.FromSlash(at)) }

// stamp returns the stamp of a regular file in the folder, or the zero stamp.
func (s *shelf) stamp(name string) stamp {
	info, err := s.root.Lstat(name)
	if err != nil || !info.Mode().IsRegular() {
		return stamp{}
	}
	return stampOf(info)
}

// begun is when an experiment was begun, by the times of its files, in Unix seconds.
func begun(plan, runs stamp) int64 {
	if plan.of == nil || runs.of != nil && runs.modified < plan.modified {
		return runs.seconds()
	}
	return plan.seconds()
}

// index grows with each change of an experiment.
func index(plan, runs stamp) uint64 {
	return uint64(max(0, plan.modified, runs.modified)) / uint64(time.Millisecond)
}

// file is what is known of a file.
type file struct {
	stamp
	isModel bool
}

// contents returns what the folder has. The answer may be a second old, or as old as ten scans take.
func (s *shelf) contents(ctx context.Context) (*contents, error) {
	fresh := func() *contents {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.last != nil && time.Now().Before(s.next) {
			return s.last
		}
		return nil
	}
	if c := fresh(); c != nil {
		return c, nil
	}
	select {
	case <-s.turn:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { s.turn <- struct{}{} }()
	if c := fresh(); c != nil { // another request has scanned meanwhile
		return c, nil
	}
	began := time.Now()
	w := &walk{ctx: ctx, root: s.root, before: s.known, known: make(map[string]file), found: &contents{
		curves: make(map[string]stamp)}}
	if err := w.folder(".", 0); err != nil {
		return nil, err
	}
	w.found.nameAll(s.dir)
	s.number(w.found.models)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last, s.known, s.next = w.found, w.known, time.Now().Add(max(time.Second, looksApart*time.Since(began)))
	return s.last, nil
}

// number gives each model file the number of its training: the oldest file first, and each path the same as before.
func (s *shelf) number(models []*place) {
	byAge := slices.SortedStableFunc(slices.Values(models), func(a, b *place) int {
		return cmp.Compare(a.file.modified, b.file.modified)
	})
	for _, m := range byAge {
		if s.ids[m.path] == 0 {
			s.ids[m.path] = uint64(len(s.ids)) + 1
		}
		m.id = s.ids[m.path]
	}
}

// walk is one scan.
type walk struct {
	ctx           context.Context
	root          *os.Root
	before, known map[string]file
	found         *contents
	entries       int
}

// readAtOnce is how many entries of a folder are read at a time.
const readAtOnce = 1024

// folder scans a folder, and those below it. A folder that cannot be read has nothing, except the first one.
func (w *walk) folder(at string, depth int) error {
	d, err := w.root.Open(at)
	if err != nil {
		return unless(depth > 0, err)
	}
	defer d.Close()
	var below []string
	of := make(map[string]stamp) // the files of an experiment
	for {
		entries, err := d.ReadDir(readAtOnce)
		if err != nil && !errors.Is(err, io.EOF) && depth == 0 {
			return err
		}
		for _, e := range entries {
			if w.entries++; w.entries > MaxEntries {
				w.found.note = fmt.Sprintf("the folder has more than %s files: only some were looked at",
					units.Count(MaxEntries))
				entries = nil
				break
			}
			name := path.Join(at, e.Name())
			switch {
			case strings.HasPrefix(e.Name(), "."):
			case e.IsDir():
				below = append(below, name)
			case e.Type().IsRegular():
				if info, err := e.Info(); err == nil {
					w.file(name, info, of)
				}
			}
		}
		if w.ctx.Err() != nil {
			return w.ctx.Err()
		}
		if err != nil || len(entries) == 0 {
			break
		}
	}
	isExperiment := of[planFile].of != nil || of[runsFile].size > 0
	if isExperiment {
		w.found.experiments = append(w.found.experiments, &place{path: at, plan: of[planFile], file: of[runsFile]})
		if depth > 0 {
			return nil
		}
	}
	if depth == MaxDepth {
		if len(below) > 0 && w.found.note == "" {
			w.found.note = fmt.Sprintf("%s and other folders more than %d below each other were not looked at", below[0],
				MaxDepth)
		}
		return nil
	}
	slices.Sort(below)
	for _, name := range below {
		if isExperiment && path.Base(name) == modelsDir {
			continue
		}
		if err := w.folder(name, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// unless returns err if a condition is not met.
func unless(ignored bool, err error) error {
	if ignored {
		return nil
	}
	return err
}

// file looks at a file.
func (w *walk) file(name string, info fs.FileInfo, of map[string]stamp) {
	switch base := path.Base(name); base {
	case planFile, runsFile:
		of[base] = stampOf(info)
		return
	case lockFile:
		return
	default:
		if strings.HasSuffix(base, ".csv") {
			w.found.curves[name] = stampOf(info)
			return
		}
	}
	now := file{stamp: stampOf(info)}
	if before, ok := w.before[name]; ok && before.is(now.stamp) {
		now.isModel = before.isModel
	} else if f, err := w.root.Open(name); err == nil {
		now.isModel = modelfile.IsModel(f)
		f.Close()
	}
	if w.known[name] = now; now.isModel {
		w.found.models = append(w.found.models, &place{path: name, file: now.stamp})
	}
}

// nameAll gives each experiment and each model file a name, which no other has: its path without the usual end, and
// with a colon in place of each slash, since a name is one element of a path in the API. dir is the folder.
func (c *contents) nameAll(dir string) {
	without := func(end string) func(*place) string {
		return func(p *place) string {
			name := p.path
			if name == "." {
				name = path.Base(dir)
			}
			name = strings.ToValidUTF8(strings.ReplaceAll(name, "/", ":"), "\uFFFD")
			return cmp.Or(strings.TrimSuffix(name, end), name)
		}
	}
	c.byExperiment, c.byModel = named(c.experiments, without(folderEnd)), named(c.models, without(modelEnd))
}

// named sets the names of places, and sorts the places by them.
func named(all []*place, of func(*place) string) map[string]*place {
	slices.SortFunc(all, func(a, b *place) int { return cmp.Compare(a.path, b.path) })
	byName := make(map[string]*place)
	for _, p := range all {
		p.name = of(p)
		for n := 2; byName[p.name] != nil; n++ {
			p.name = fmt.Sprintf("%s~%d", of(p), n)
		}
		byName[p.name] = p
	}
	slices.SortFunc(all, func(a, b *place) int { return cmp.Compare(a.name, b.name) })
	return byName
}
