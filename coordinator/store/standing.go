package store

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The files of a folder whose node has not begun, and of how it did.
const (
	newName     = "NEW"   // the mark of a new folder; gone once its first entry is on the disk
	begunName   = "BEGUN" // the marks of the new folders that the cluster began with
	recoverName = "RECOVER"
)

// maxBegun bounds a BEGUN file: seven coordinators at most begin a cluster.
const maxBegun = 64 << 10

// standing is what a folder proves of what its node has done.
type standing struct {
	phase    Phase             // New, Begun (not written yet, perhaps), Opening, or Lost
	mark     string            // of a new folder that has one
	founders map[string]string // once it has been decided that the cluster begins
	why      string            // Lost
}

// ours lists the names in a folder that this package makes; any other name in one
// without FORMAT is somebody else's.
var ours = []string{
	lockName, formatName, logName, stableName, ackedName, snapshotsName, newName, begunName, recoverName, "corrupt", "PROBE",
}

// look tells how a node's folder stands. It changes nothing. An error wraps
// ErrFolder where the folder is of another node or of somebody else.
func (f *folder) look(id string) (s standing, err error) {
	entries, err := os.ReadDir(f.path)
	if err != nil {
		return s, fmt.Errorf("store: %w", err)
	}
	formatted, err := f.format(id)
	if err != nil {
		return s, err
	}
	used := false
	for _, e := range entries {
		name := e.Name()
		if !formatted && !slices.Contains(ours, strings.TrimSuffix(name, ".tmp")) {
			return s, fmt.Errorf("store: folder %s is %w: it holds %q but no %s file", f.path, ErrFolder, name, formatName)
		}
		used = used || !slices.Contains([]string{lockName, newName, begunName}, name) && !strings.HasSuffix(name, ".tmp")
	}
	voted := readStable(f.path, id)
	if withheld(voted) || passes(voted) {
		return s, voted
	}
	s.mark = readMark(f.path, id)
	s.founders = readBegun(f.path, id)
	_, missing := os.Stat(f.recover())
	switch {
	case voted == nil && s.mark != "" && missing != nil: // cut short before its first entry
		s.phase = PhaseNew
	case voted == nil:
		s.phase = PhaseOpening
	case used:
		s.phase, s.why = PhaseLost, voted.Error()
	default:
		s.phase = PhaseNew
	}
	if s.phase == PhaseNew && s.mark != "" && len(s.founders) > 0 {
		s.phase = PhaseBegun
	}
	return s, nil
}

// alone is the error of a node that has forgotten its term and has nobody to ask.
func (s *standing) alone(path string) error {
	return fmt.Errorf("store: %s: %w: %s; alone this coordinator cannot fetch what it remembered: restore a backup, or empty its whole folder to begin again", path, ErrCorrupt, s.why)
}

// format reports whether the folder has a FORMAT file, be it damaged, and refuses
// that of another node or version.
func (f *folder) format(id string) (bool, error) {
	got, err := os.ReadFile(filepath.Join(f.path, formatName))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("store: %w", err)
	}
	return true, f.foreign(got, id)
}

// keepMark draws the mark of a new folder, unless it has one, and writes it.
func (f *folder) keepMark(id string, s *standing) error {
	if s.mark != "" {
		return nil
	}
	s.mark = rand.Text()
	return replaceFile(filepath.Join(f.path, newName), fmt.Sprintf("coppice new raft folder, node %s, mark %s\n", id, s.mark))
}

// readMark returns the mark of a new folder, or nothing: a file that is damaged is
// as good as none, since another mark is known to nobody.
func readMark(path, id string) string {
	b, err := os.ReadFile(filepath.Join(path, newName))
	if err != nil {
		return ""
	}
	mark, ok := strings.CutPrefix(string(b), fmt.Sprintf("coppice new raft folder, node %s, mark ", id))
	mark, whole := strings.CutSuffix(mark, "\n")
	if !ok || !whole || strings.ContainsAny(mark, " \n") {
		return ""
	}
	return mark
}

// keepBegun writes down that the cluster begins, with these new folders.
func (f *folder) keepBegun(id string, founders map[string]string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "coppice cluster begun, node %s\n", id)
	for _, node := range sorted(founders) {
		fmt.Fprintf(&b, "%s %s\n", node, founders[node])
	}
	return replaceFile(filepath.Join(f.path, begunName), b.String())
}

// readBegun returns whom a cluster began with, or nothing where that is not known
// or the file is damaged.
func readBegun(path, id string) map[string]string {
	info, err := os.Stat(filepath.Join(path, begunName))
	if err != nil || info.Size() > maxBegun {
		return nil
	}
	b, err := os.ReadFile(filepath.Join(path, begunName))
	if err != nil {
		return nil
	}
	return parseBegun(b, id)
}

func parseBegun(b []byte, id string) map[string]string {
	lines := bufio.NewScanner(bytes.NewReader(b))
	if !bytes.HasSuffix(b, []byte("\n")) || !lines.Scan() || lines.Text() != "coppice cluster begun, node "+id {
		return nil
	}
	founders := make(map[string]string)
	for lines.Scan() {
		node, mark, ok := strings.Cut(lines.Text(), " ")
		if !ok || node == "" || mark == "" || founders[node] != "" {
			return nil
		}
		founders[node] = mark
	}
	if lines.Err() != nil || founders[id] == "" {
		return nil
	}
	return founders
}

// lose writes down that the node must not vote until it has caught up, and that its
// folder is not new.
func (f *folder) lose(why string) error {
	if err := replaceFile(f.recover(), why+"\n"); err != nil {
		return err
	}
	return f.drop(newName, begunName)
}

// drop removes files that need not be there.
func (f *folder) drop(names ...string) error {
	for _, name := range names {
		if err := os.Remove(filepath.Join(f.path, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("store: %w", err)
		}
	}
	return syncFolder(f.path)
}

func sorted[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
