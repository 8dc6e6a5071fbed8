package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/internal/files"
)

// The names in a folder. The snapshot store makes "snapshots" by itself.
const (
	lockName    = "LOCK"
	logName     = "log"
	seedName    = "SEED"
	corruptName = "corrupt"
	probeName   = "PROBE"
)

// owned lists the names in a folder that this package makes.
var owned = []string{lockName, formatName, formatCopy, stableName, ackedName, logName, snapshotsName, seedName, corruptName, probeName}

// Folder is a node's folder while this process has it. DESIGN.md, A node that starts,
// says what it proves.
type Folder struct {
	config Config
	path   string
	lock   *os.File
	stable *stable

	mu       sync.Mutex
	identity Identity
	adopting bool   // true while the node is about to begin as another one told it to
	waits    string // what Decide waits for
}

// Claim takes a node's folder, which is made if it does not exist. An empty one gets a
// directory id of its own. Errors wrap ErrLocked, ErrFolder, or ErrCorrupt if the folder does
// not prove what the node has done: see Reset.
func Claim(config Config) (*Folder, error) {
	c, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	f, err := lockFolder(c)
	if err != nil {
		return nil, err
	}
	if err := f.claim(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Reset moves what is in a node's folder aside, into its folder "corrupt", and claims what is
// left as a new one. The node is another server from then on, so it can contradict nothing
// that the old one has said.
func Reset(config Config) (*Folder, error) {
	c, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	f, err := lockFolder(c)
	if err != nil {
		return nil, err
	}
	// Without FORMAT the rest is of no node, so a crash between two of these steps loses nothing.
	for _, name := range []string{formatName, formatCopy, stableName, ackedName, logName, snapshotsName, seedName} {
		if err := f.setAside(filepath.Join(f.path, name)); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	if err := f.claim(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// lockFolder makes or opens a folder and takes its lock. The kernel drops the lock with the
// process, however that ends.
func lockFolder(c Config) (*Folder, error) {
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	lock, err := files.Lock(filepath.Join(c.Dir, lockName), 0o600)
	if errors.Is(err, files.ErrLocked) {
		err = ErrLocked
	}
	if err != nil {
		return nil, fmt.Errorf("store: folder %s: %w", c.Dir, err)
	}
	return &Folder{config: c, path: c.Dir, lock: lock}, nil
}

// claim reads the identity of the folder, or draws one.
func (f *Folder) claim() error {
	identity, damaged, err := readIdentity(f.path, f.config.ID)
	if errors.Is(err, fs.ErrNotExist) {
		if err := f.checkEmpty(); err != nil {
			return err
		}
		identity, damaged = Identity{ID: f.config.ID, Directory: NewID()}, true
	} else if err != nil {
		return err
	}
	f.identity = identity
	if damaged {
		if err := f.writeIdentity("identity", identity); err != nil {
			return err
		}
	}
	if err := f.config.fails("votes"); err != nil {
		return err
	}
	// Nothing was voted or acknowledged before the node was settled.
	if f.stable, err = openStable(f.path, string(identity.server().raftID()), !identity.settled()); err != nil {
		return err
	}
	f.stable.fault = f.config.fault
	if err := os.MkdirAll(f.log(), 0o700); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return errors.Join(syncFolder(f.path), syncFolder(filepath.Dir(f.path)))
}

// checkEmpty refuses a folder without an identity that holds something.
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
			return corrupted(filepath.Join(f.path, formatName), fmt.Errorf("the format file is missing, although the folder contains %s", name))
		}
	}
	return nil
}

// Identity returns what the folder says of its node.
func (f *Folder) Identity() Identity {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.identity
}

// writeIdentity writes the identity to the disk before it is told to anybody.
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

// Begin settles that the node begins a cluster with these founders.
func (f *Folder) Begin(cluster string, founders []Server) error {
	i := f.Identity()
	i.Cluster, i.Founders = cluster, founders
	return f.writeIdentity("settle", i)
}

// Join settles that the node belongs to a cluster that runs already, whose leader adds it.
// What was restored from a backup is dropped.
func (f *Folder) Join(cluster string) error {
	i := f.Identity()
	i.Cluster, i.Founders, i.Seeded = cluster, nil, false
	if err := f.writeIdentity("settle", i); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(f.path, seedName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("store: %w", err)
	}
	return syncFolder(f.path)
}

func (f *Folder) log() string { return filepath.Join(f.path, logName) }

func (f *Folder) meta() string { return filepath.Join(f.log(), metaName) }

// Close releases the folder.
func (f *Folder) Close() error {
	if f.stable != nil {
		return errors.Join(f.stable.close(), f.lock.Close())
	}
	return f.lock.Close()
}

// setAside moves a file or folder that is corrupt out of the way, into the folder
// "corrupt", which keeps the last two of a name.
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

// replaceFile writes a small file of the folder; see files.Replace.
func replaceFile(path, text string) error {
	if err := files.Replace(path, []byte(text), 0o600); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

func syncFolder(path string) error {
	if err := files.SyncFolder(path); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}
