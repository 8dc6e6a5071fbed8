package coordinator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/internal/files"
	"github.com/coppice-ldl/coppice/internal/wait"
	"github.com/coppice-ldl/coppice/protocol"
)

// ErrUsage is wrapped by errors about wrong flags.
var ErrUsage = errors.New("wrong usage")

// The files of a coordinator's folder, apart from the log of Raft and the blobs.
// CLUSTER has the id of the cluster, and MEMBERS the last list of coordinators. Each
// has a checksum, and a copy that counts if the first file is damaged. RESTORING marks
// a folder in which a restore has not ended.
const (
	clusterName   = "CLUSTER"
	clusterCopy   = "CLUSTER.copy"
	membersName   = "MEMBERS"
	membersCopy   = "MEMBERS.copy"
	restoringName = "RESTORING"
)

// folderNames are the entries of a coordinator's folder. A file that is being written
// has the suffix .tmp.
var folderNames = []string{"blobs", "raft", clusterName, clusterCopy, membersName, membersCopy, restoringName}

// checkFolder refuses a folder that is not a coordinator's: a worker's folder, or one
// that has files but none of a coordinator. It opens and writes nothing else.
func checkFolder(dir string) error {
	b, err := os.ReadFile(filepath.Join(dir, "FORMAT"))
	if err == nil {
		return fmt.Errorf("%w: %s is not a folder of a coordinator: its FORMAT file says %.80q", ErrUsage, dir,
			strings.TrimSpace(string(b)))
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("the coordinator's folder cannot be used: %w", err)
	}
	other := ""
	for _, e := range entries {
		switch name := e.Name(); {
		case slices.Contains(folderNames, strings.TrimSuffix(name, ".tmp")):
			return nil
		case name != "lost+found":
			other = name
		}
	}
	if other != "" {
		return fmt.Errorf("%w: %s is not a folder of a coordinator: it holds %q; give a folder that is empty or does not "+
			"exist", ErrUsage, dir, other)
	}
	return nil
}

// checkRestored refuses a folder in which a restore did not end.
func checkRestored(dir string) error {
	_, err := os.Stat(filepath.Join(dir, restoringName))
	if err == nil {
		return fmt.Errorf("%s holds the files of an interrupted restore; empty the folder and restore again", dir)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func checksum(text string) string { return fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(text))) }

// clusterID returns the id of the cluster of a folder, or "" if the folder is new. If
// both files are damaged, the error wraps store.ErrCorrupt and names the first. Raft's
// folder has the id as well.
func clusterID(dir string, log *slog.Logger) (string, error) {
	id, err := readClusterFile(filepath.Join(dir, clusterName))
	if err == nil {
		return id, nil
	}
	other, second := readClusterFile(filepath.Join(dir, clusterCopy))
	switch {
	case second == nil: // keepClusterID writes the first file again
		log.Error("the file of the cluster's name is damaged; its copy is used", "error", err)
		return other, nil
	case !errors.Is(err, fs.ErrNotExist):
		return "", err
	case !errors.Is(second, fs.ErrNotExist):
		return "", second
	}
	return "", nil
}

// clusterText matches the contents of CLUSTER: the id, and on the second line its
// checksum, which may be missing.
var clusterText = regexp.MustCompile(`^([A-Za-z0-9_-]+)\n(?:([0-9a-f]{8})\n)?$`)

func readClusterFile(path string) (string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	m := clusterText.FindSubmatch(b)
	if m == nil || len(m[2]) > 0 && string(m[2]) != checksum(string(m[1])) {
		return "", fmt.Errorf("%w: %s: want the name of the cluster and its checksum, got %.80q", store.ErrCorrupt, path, b)
	}
	return string(m[1]), nil
}

// keepClusterID writes the id of the cluster to the files that do not have it. Each is
// replaced as a whole.
func keepClusterID(dir, id string) error {
	text := id + "\n" + checksum(id) + "\n"
	for _, name := range []string{clusterName, clusterCopy} {
		path := filepath.Join(dir, name)
		if b, err := os.ReadFile(path); err == nil && string(b) == text {
			continue
		}
		if err := files.Replace(path, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// memberFile is the content of MEMBERS: a checksum on the first line, then this value
// as JSON.
type memberFile struct {
	Format  int                    `json:"format"`
	Members []protocol.MemberEntry `json:"members"`
	// Given has the addresses of --peers that the log has, by id.
	Given map[string]string `json:"given,omitempty"`
	// External is the external NATS of the cluster that this coordinator joined, if
	// there is one.
	External string `json:"external_nats,omitempty"`
	// Used is true if the folder had a list of members, but it is damaged.
	Used bool `json:"-"`
}

const (
	membersFormat = 2
	maxMembers    = 1 << 20 // bytes of the file
)

// find returns a coordinator's entry.
func (k *memberFile) find(id string) (protocol.MemberEntry, bool) {
	for _, m := range k.Members {
		if m.ID == id {
			return m, true
		}
	}
	return protocol.MemberEntry{}, false
}

// readMembers reads MEMBERS, or its copy. If the folder has neither, the result is
// empty. damaged describes the damaged files. If no file is intact, the result only has
// Used: the log will name the members.
func readMembers(dir string) (k memberFile, damaged, err error) {
	missing := true
	for _, name := range []string{membersName, membersCopy} {
		k, err := readMembersFile(filepath.Join(dir, name))
		switch {
		case err == nil:
			return k, damaged, nil
		case errors.Is(err, store.ErrCorrupt):
			damaged, missing = errors.Join(damaged, err), false
		case !errors.Is(err, fs.ErrNotExist):
			return k, nil, err
		}
	}
	return memberFile{Format: membersFormat, Used: !missing}, damaged, nil
}

// readMembersFile reads one file. The error of a damaged file wraps store.ErrCorrupt.
func readMembersFile(path string) (k memberFile, err error) {
	corrupt := func(why string) error { return fmt.Errorf("%s: %w: %s", path, store.ErrCorrupt, why) }
	info, err := os.Stat(path)
	if err != nil {
		return k, err
	}
	if info.Size() > maxMembers {
		return k, corrupt(fmt.Sprintf("the file has %d bytes, want at most %d", info.Size(), maxMembers))
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return k, err
	}
	sum, text, _ := strings.Cut(string(b), "\n")
	if sum != checksum(text) {
		return k, corrupt("the checksum does not match the file")
	}
	if err := json.Unmarshal([]byte(text), &k); err != nil {
		return k, corrupt(err.Error())
	}
	if k.Format != membersFormat {
		return k, fmt.Errorf("%s: the file has format %d, but this version reads format %d", path, k.Format, membersFormat)
	}
	return k, nil
}

// write replaces both files, each as a whole.
func (k *memberFile) write(dir string) error {
	b, err := json.MarshalIndent(k, "", "  ")
	if err != nil {
		return err
	}
	text := string(b) + "\n"
	text = checksum(text) + "\n" + text
	return errors.Join(
		files.Replace(filepath.Join(dir, membersName), []byte(text), 0o600),
		files.Replace(filepath.Join(dir, membersCopy), []byte(text), 0o600),
	)
}

// setAsideMembers renames damaged files of members, so that people can look at them.
func setAsideMembers(dir string) error {
	for _, name := range []string{membersName, membersCopy} {
		path := filepath.Join(dir, name)
		if _, err := readMembersFile(path); !errors.Is(err, store.ErrCorrupt) {
			continue
		}
		if err := os.Rename(path, path+".corrupt"); err != nil {
			return err
		}
	}
	return nil
}

// folderEvery is the time between two checks that the folder still exists.
const folderEvery = 250 * time.Millisecond

// heldFolder is the folder of a running coordinator. It holds the folder itself and
// "raft" open, and so notices if another folder is at their paths. The store checks its
// own files. The folder of blobs is not held: if it is deleted, the fetcher of blobs
// makes it again.
type heldFolder struct {
	places *files.Places
	blobs  *blobs.Folder
}

// holdFolder opens a folder that has "raft" already.
func holdFolder(dir string, blobs *blobs.Folder) (*heldFolder, error) {
	places, err := files.Hold(dir, filepath.Join(dir, "raft"))
	if err != nil {
		return nil, fmt.Errorf("the coordinator's folder cannot be used: %w", err)
	}
	return &heldFolder{places, blobs}, nil
}

// watch waits until the folder is lost, and then returns an error that wraps
// files.ErrGone. It returns nil once ctx is done.
func (f *heldFolder) watch(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := f.places.Check(); errors.Is(err, files.ErrGone) {
			return err
		}
		wait.For(ctx, folderEvery)
	}
	return nil
}

// fault returns why this process cannot write to its folder, or nil.
func (f *heldFolder) fault() error {
	return cmp.Or(f.places.Check(), f.places.Writable(), f.blobs.Fault())
}

func (f *heldFolder) close() { f.places.Close() }
