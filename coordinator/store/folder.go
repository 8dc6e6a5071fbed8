package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/internal/files"
)

// Identity is what a folder says about its node. It has no cluster until the node begins or
// joins one; from then on it never changes.
type Identity struct {
	ID        string `json:"id"`
	Directory string `json:"directory"`
	Cluster   string `json:"cluster,omitempty"`
	// Founders are the voters that the cluster began with, by ID. It is empty if the node
	// was added to a running cluster.
	Founders []Server `json:"founders,omitempty"`
	// Seeded is true if the folder was restored from a backup: the cluster begins with that
	// state.
	Seeded bool `json:"seeded,omitempty"`
}

// settled reports whether it is decided how the node begins. A restored folder has its
// cluster before that.
func (i *Identity) settled() bool { return i.Cluster != "" && (!i.Seeded || len(i.Founders) > 0) }

// server returns the node as a server of Raft.
func (i *Identity) server() Server { return Server{ID: i.ID, Directory: i.Directory} }

// owned lists the names in a folder that this package makes.
var owned = []string{lockName, formatName, formatCopy, stableName, ackedName, logName, snapshotsName, seedName,
	corruptName, probeName}

// Folder is the folder of a node, which this process has locked. DESIGN.md, A node that
// starts, says what it proves.
type Folder struct {
	config Config
	path   string
	lock   *os.File
	stable *stable

	mu       sync.Mutex // guards what follows
	identity Identity   // as on the disk
	adopting bool       // true while the node is about to begin as another one told it to
	waits    string     // what Decide waits for
}

// Claim locks the folder of a node, which it makes if it does not exist. An empty folder
// gets a directory id. Errors wrap ErrLocked, ErrFolder, or ErrCorrupt if the folder does
// not prove what the node has done: see Reset.
func Claim(config Config) (*Folder, error) { return claim(config, false) }

// Reset moves the content of the folder of a node into its folder "corrupt", and claims the
// rest as a new folder. The node is another server from then on, so it can contradict
// nothing that the old one has said.
func Reset(config Config) (*Folder, error) { return claim(config, true) }

func claim(config Config, reset bool) (*Folder, error) {
	c, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	lock, err := files.Lock(filepath.Join(c.Dir, lockName), 0o600) // the kernel drops it with the process
	if errors.Is(err, files.ErrLocked) {
		err = ErrLocked
	}
	if err != nil {
		return nil, fmt.Errorf("store: folder %s: %w", c.Dir, err)
	}
	f := &Folder{config: c, path: c.Dir, lock: lock}
	if reset {
		// Without FORMAT the rest belongs to no node, so a crash between two of these steps
		// loses nothing.
		for _, name := range []string{formatName, formatCopy, stableName, ackedName, logName, snapshotsName, seedName} {
			if err := f.setAside(filepath.Join(f.path, name)); err != nil {
				return nil, errors.Join(err, f.Close())
			}
		}
	}
	if err := f.open(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// open reads the identity of the folder, or draws one, and opens VOTE.
func (f *Folder) open() error {
	identity, stale, err := readIdentity(f.path, f.config.ID)
	if errors.Is(err, fs.ErrNotExist) {
		if err := f.checkEmpty(); err != nil {
			return err
		}
		identity, stale = Identity{ID: f.config.ID, Directory: NewID()}, true
	} else if err != nil {
		return err
	}
	f.identity = identity
	if stale {
		if err := f.writeIdentity("identity", identity); err != nil {
			return err
		}
	}
	if err := f.config.fails("votes"); err != nil {
		return err
	}
	// Nothing was voted or acknowledged before the node was settled.
	if f.stable, err = openStable(f.path, string(raftID(identity.server())), !identity.settled()); err != nil {
		return err
	}
	f.stable.fault = f.config.fault
	if err := os.MkdirAll(f.log(), 0o700); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return errors.Join(syncFolder(f.path), syncFolder(filepath.Dir(f.path)))
}

// checkEmpty refuses a folder that has no identity and is not empty.
func (f *Folder) checkEmpty() error {
	entries, err := os.ReadDir(f.path)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	for _, e := range entries {
		switch name := strings.TrimSuffix(e.Name(), ".tmp"); {
		case !slices.Contains(owned, name):
			return fmt.Errorf("store: folder %s is %w: it holds %q but no %s file", f.path, ErrFolder, e.Name(), formatName)
		case name == e.Name() && name != lockName && name != corruptName && name != probeName:
			return corrupted(filepath.Join(f.path, formatName),
				fmt.Errorf("the format file is missing, although the folder contains %s", name))
		}
	}
	return nil
}

// Identity returns what the folder says about its node.
func (f *Folder) Identity() Identity {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.identity
}

// Begin settles that the node begins a cluster with these founders.
func (f *Folder) Begin(cluster string, founders []Server) error {
	i := f.Identity()
	i.Cluster, i.Founders = cluster, founders
	return f.writeIdentity("settle", i)
}

// Join settles that the node belongs to a running cluster, and its leader adds it. A state
// that was restored from a backup is deleted.
func (f *Folder) Join(cluster string) error {
	i := f.Identity()
	i.Cluster, i.Founders, i.Seeded = cluster, nil, false
	if err := f.writeIdentity("settle", i); err != nil {
		return err
	}
	if err := f.dropSeed(); err != nil {
		return err
	}
	return syncFolder(f.path)
}

// writeIdentity writes the identity to the disk before anybody is told.
func (f *Folder) writeIdentity(step string, i Identity) error {
	for _, name := range []string{formatName, formatCopy} {
		if err := f.config.fails(step); err != nil {
			return err
		}
		if err := replaceFile(filepath.Join(f.path, name), i.encode()); err != nil {
			return err
		}
		step += "-copy"
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.identity, f.adopting, f.waits = i, false, ""
	return nil
}

// dropSeed deletes the state of a backup.
func (f *Folder) dropSeed() error {
	if err := os.Remove(filepath.Join(f.path, seedName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

func (f *Folder) log() string { return filepath.Join(f.path, logName) }

// Close releases the folder.
func (f *Folder) Close() error {
	if f.stable != nil {
		return errors.Join(f.stable.close(), f.lock.Close())
	}
	return f.lock.Close()
}

// setAside moves a damaged file or folder into the folder "corrupt", which keeps the last
// two of a name.
func (f *Folder) setAside(path string) error {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	aside := filepath.Join(f.path, corruptName)
	if err := os.MkdirAll(aside, 0o700); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	old, err := filepath.Glob(filepath.Join(aside, filepath.Base(path)+".[0-9]*"))
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	slices.Sort(old)
	for len(old) >= 2 {
		if err := os.RemoveAll(old[0]); err != nil {
			return fmt.Errorf("store: %w", err)
		}
		old = old[1:]
	}
	to := filepath.Join(aside, fmt.Sprintf("%s.%020d", filepath.Base(path), time.Now().UnixNano()))
	if err := os.Rename(path, to); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return syncFolder(f.path)
}

const (
	folderFormat = 5        // the version of the layout
	maxFormat    = 64 << 10 // bytes of a FORMAT file, with at most seven founders
)

// formatLine matches the first line of a FORMAT file of any version and node.
var formatLine = regexp.MustCompile(`^coppice raft folder, format ([0-9]+), node (.+)$`)

// encode returns a FORMAT file. The first line has the version and the node, as in every
// version; the second line has the identity after its checksum.
func (i *Identity) encode() string {
	b, err := json.Marshal(i)
	if err != nil {
		panic(err) // strings and a bool
	}
	return fmt.Sprintf("coppice raft folder, format %d, node %s\n%s %s\n", folderFormat, i.ID, checksum(string(b)), b)
}

// parseIdentity reads a FORMAT file. The error wraps ErrFolder if the file has another
// version or another node.
func parseIdentity(b []byte, id string) (i Identity, err error) {
	first, rest, _ := strings.Cut(string(b), "\n")
	switch m := formatLine.FindStringSubmatch(first); {
	case m == nil:
		return i, fmt.Errorf("the first line of the file is not valid: %.80q", first)
	case m[1] != fmt.Sprint(folderFormat):
		return i, fmt.Errorf("%w: the folder has format %s, but this version reads format %d: use the version that wrote "+
			"the folder, or start with an empty folder and import the datasets again",
			ErrFolder, m[1], folderFormat)
	case m[2] != id:
		// The checksum tells a damaged name from another one.
		if other, err := parseIdentity(b, m[2]); err != nil {
			return i, errors.New("the first line of the file is damaged")
		} else if other.ID != id {
			return i, fmt.Errorf("%w: the folder is used by coordinator %s, not %s", ErrFolder, other.ID, id)
		}
	}
	sum, text, ok := strings.Cut(rest, " ")
	text, whole := strings.CutSuffix(text, "\n")
	if !ok || !whole || sum != checksum(text) {
		return i, errors.New("the checksum in the second line does not match")
	}
	if err := json.Unmarshal([]byte(text), &i); err != nil {
		return i, err
	}
	if i.Directory == "" || strings.ContainsAny(i.Directory, ".@") {
		return i, fmt.Errorf("the directory id is not valid: %q", i.Directory)
	}
	return i, nil
}

// readIdentity reads the identity of node id from a folder. stale is true if a copy must be
// written again. The error is fs.ErrNotExist if neither copy exists, and wraps ErrCorrupt
// if both are damaged.
func readIdentity(folder, id string) (found Identity, stale bool, err error) {
	var errs []error
	missing, ok := 0, false
	for _, name := range []string{formatName, formatCopy} {
		path := filepath.Join(folder, name)
		b, err := readBounded(path, maxFormat)
		if errors.Is(err, fs.ErrNotExist) {
			missing++
		}
		var i Identity
		if err == nil {
			i, err = parseIdentity(b, id)
		}
		switch {
		case errors.Is(err, ErrFolder):
			errs = append(errs, fmt.Errorf("store: folder %s is %w", folder, err))
		case err != nil:
			errs = append(errs, corrupted(path, err))
		case !ok:
			found, ok = i, true
		default:
			stale = string(b) != found.encode()
		}
	}
	switch {
	case ok:
		return found, stale || len(errs) > 0, nil
	case missing == len(errs):
		return found, false, fs.ErrNotExist
	}
	for _, err := range errs { // if one copy is of another node or cannot be read now, the other one may be intact
		if !errors.Is(err, ErrCorrupt) {
			return found, false, err
		}
	}
	return found, false, errors.Join(errs...)
}

// readBounded reads a file of at most so many bytes.
func readBounded(path string, most int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > most {
		return nil, fmt.Errorf("the file has %d bytes, want at most %d", info.Size(), most)
	}
	return os.ReadFile(path)
}
