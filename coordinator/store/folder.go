package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"golang.org/x/sys/unix"
)

// folderFormat is the version of the folder's layout.
const folderFormat = 4

// The names in a folder. The snapshot store makes "snapshots" by itself.
const (
	formatName = "FORMAT"
	lockName   = "LOCK"
	logName    = "log"
)

// folder is a node's folder while this process has it.
type folder struct {
	path   string
	lock   *os.File
	stable *stable

	begins   bool              // the first entry is still to be written
	founders map[string]string // with whom the cluster began, where that is known
}

// claim makes or opens a node's folder and takes its lock.
func claim(path string) (*folder, error) {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	lock, err := takeLock(path)
	if err != nil {
		return nil, err
	}
	return &folder{path: path, lock: lock}, nil
}

// openFolder opens the folder of a node that may begin, or has.
func openFolder(c *Config) (*folder, error) {
	f, err := claim(c.Dir)
	if err != nil {
		return nil, err
	}
	if err := f.open(c); err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

// errUndecided says that nobody has found out whether an empty folder is that of a
// new cluster.
var errUndecided = errors.New("store: it is not decided yet how this node begins")

func (f *folder) open(c *Config) error {
	s, err := f.look(c.ID)
	if err != nil {
		return err
	}
	switch {
	case s.phase == PhaseLost && !c.replicated():
		return s.alone(c.Dir)
	case s.phase == PhaseLost, s.phase == PhaseNew && len(c.Peers) > 1 && !c.Join:
		return fmt.Errorf("%w: %s", errUndecided, f.path)
	case s.phase == PhaseNew:
		if err := f.keepMark(c.ID, &s); err != nil { // before there are votes: an empty folder has none
			return err
		}
	}
	f.begins, f.founders = !c.Join && (s.phase == PhaseNew || s.phase == PhaseBegun), s.founders
	if err := f.checkFormat(c); err != nil {
		return err
	}
	if err := os.MkdirAll(f.log(), 0o755); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	// A power cut must not leave FORMAT and VOTE without the log: it would look lost.
	return errors.Join(syncFolder(f.path), syncFolder(filepath.Dir(f.path)))
}

// takeLock locks the folder; the kernel drops the lock with the process, however
// it ends.
func takeLock(path string) (*os.File, error) {
	lock, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	err = unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = ErrLocked
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("store: folder %s: %w", path, err), lock.Close())
	}
	return lock, nil
}

func (f *folder) log() string { return filepath.Join(f.path, logName) }

func (f *folder) meta() string { return filepath.Join(f.log(), metaName) }

// recover is the file that says that the node must catch up before it votes.
func (f *folder) recover() string { return filepath.Join(f.path, recoverName) }

func (f *folder) close() error {
	if f.stable != nil {
		return errors.Join(f.stable.close(), f.lock.Close())
	}
	return f.lock.Close()
}

// checkFormat compares the FORMAT file with what this node writes; a new folder
// gets one, and the file of its votes before.
func (f *folder) checkFormat(c *Config) (err error) {
	path, want := filepath.Join(f.path, formatName), formatText(c.ID)
	got, err := os.ReadFile(path)
	missing := errors.Is(err, os.ErrNotExist)
	if err != nil && !missing {
		return fmt.Errorf("store: %w", err)
	}
	if err := f.foreign(got, c.ID); err != nil {
		return err
	}
	if err := c.fails("votes"); err != nil {
		return err
	}
	if f.stable, err = openStable(f.path, c.ID, missing); err != nil {
		return err
	}
	if string(got) == want {
		return nil
	}
	if !missing { // the votes bear the node's name
		c.Logger.Error("a file was corrupt and is written again", "error", corrupted(path, fmt.Errorf("it says %.100q", got)))
	}
	if err := c.fails("format"); err != nil {
		return err
	}
	return replaceFile(path, want)
}

func formatText(id string) string {
	return fmt.Sprintf("coppice raft folder, format %d, node %s\n", folderFormat, id)
}

// formatted matches the FORMAT file of any version and node.
var formatted = regexp.MustCompile(`^coppice raft folder, format ([0-9]+), node (.+)\n$`)

// foreign refuses the FORMAT file of another version or node. One that is damaged, empty
// or missing says nothing of either.
func (f *folder) foreign(got []byte, id string) error {
	m := formatted.FindSubmatch(got)
	switch {
	case m == nil || string(got) == formatText(id):
		return nil
	case string(m[2]) != id:
		return fmt.Errorf("store: folder %s is %w: it is of coordinator %s, not of %s", f.path, ErrFolder, m[2], id)
	}
	return fmt.Errorf("store: folder %s is %w: it has format %s, this version reads format %d; go on with the version that wrote it, or begin with an empty folder and import the datasets again",
		f.path, ErrFolder, m[1], folderFormat)
}

func writeSynced(path, text string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Sync(), file.Close())
}

// syncFolder makes a rename in the folder survive a power cut.
func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}
