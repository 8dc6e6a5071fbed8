package coordinator

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"

	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/internal/files"
)

// The files that keep the cluster's name: its id and a checksum, a line each. The
// second is for when the first is damaged.
const (
	clusterName = "CLUSTER"
	clusterCopy = "CLUSTER.copy"
)

// clusterID returns the id of the cluster that the folder is of, or nothing if the folder is
// new. If both copies in the folder are damaged the error wraps store.ErrCorrupt and names the
// first. The id is told once more by the folder of Raft, which may have been lost.
func (c *Config) clusterID() (string, error) {
	id, err := readClusterID(c.clusterFile())
	if err == nil {
		return id, nil
	}
	other, second := readClusterID(filepath.Join(c.Dir, clusterCopy))
	switch {
	case second == nil: // keepClusterID writes the first anew
		c.Log.Error("the file of the cluster's name is damaged; its copy is used", "error", err)
		return other, nil
	case !errors.Is(err, fs.ErrNotExist):
		return "", err
	case !errors.Is(second, fs.ErrNotExist):
		return "", second
	}
	return "", nil
}

// clusterText matches the file's contents; the checksum may be missing.
var clusterText = regexp.MustCompile(`^([A-Za-z0-9_-]+)\n(?:([0-9a-f]{8})\n)?$`)

// readClusterID reads one of the files.
func readClusterID(path string) (string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	m := clusterText.FindSubmatch(b)
	if m == nil || len(m[2]) > 0 && string(m[2]) != clusterSum(string(m[1])) {
		return "", fmt.Errorf("%w: %s: want the name of the cluster and its checksum, got %.80q", store.ErrCorrupt, path, b)
	}
	return string(m[1]), nil
}

func clusterSum(id string) string { return fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(id))) }

// keepClusterID writes the cluster's name into the folder, whole or not at all,
// where it is not there: it never changes.
func (c *Config) keepClusterID(id string) error {
	text := id + "\n" + clusterSum(id) + "\n"
	for _, name := range []string{clusterName, clusterCopy} {
		path := filepath.Join(c.Dir, name)
		if b, err := os.ReadFile(path); err == nil && string(b) == text {
			continue
		}
		if err := files.Replace(path, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (c *Config) clusterFile() string { return filepath.Join(c.Dir, clusterName) }

// peerList is --peers as it must be the same on each coordinator.
func (c *Config) peerList() string {
	var names []string
	for _, p := range c.Peers {
		names = append(names, p.ID+"="+p.addr(0))
	}
	sort.Strings(names)
	return strings.Join(names, ",")
}
