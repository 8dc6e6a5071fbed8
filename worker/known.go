package worker

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/protocol"
)

// knownName is the file of the coordinators that a worker has learnt of: those of its
// last cluster, for when all that --join names are replaced.
//
//	coppice worker's coordinators 1
//	cluster 5f0c1c8a77aa
//	join 10.0.0.1:7100 10.0.0.2:7100
//	10.0.0.4:7100
//
// It counts only for the list of --join with which it was written: a worker that is
// given another may be meant for another cluster.
const knownName = "COORDINATORS"

const (
	knownHead    = "coppice worker's coordinators 1"
	maxKnown     = 64       // coordinators
	maxKnownFile = 16 << 10 // bytes
)

// known is what the file says.
type known struct {
	cluster   string // id
	join      string // the addresses of --join, with blanks between
	addresses []string
}

func (k *known) encode() string {
	return strings.Join(append([]string{knownHead, "cluster " + k.cluster, "join " + k.join}, k.addresses...), "\n") + "\n"
}

// parseKnown reads a file. Errors name the line.
func parseKnown(text string) (k known, err error) {
	lines := strings.Split(text, "\n")
	if len(lines) < 4 || lines[0] != knownHead || lines[len(lines)-1] != "" {
		return k, errors.New("the file ends too early, or has another version")
	}
	var ok bool
	if k.cluster, ok = strings.CutPrefix(lines[1], "cluster "); !ok || protocol.CheckID(k.cluster) != nil {
		return k, fmt.Errorf("line 2: want the name of the cluster, got %.80q", lines[1])
	}
	if k.join, ok = strings.CutPrefix(lines[2], "join "); !ok {
		return k, fmt.Errorf("line 3: want the value of --join, got %.80q", lines[2])
	}
	k.addresses = lines[3 : len(lines)-1]
	if len(k.addresses) > maxKnown {
		return k, fmt.Errorf("the file lists %d coordinators, want at most %d", len(k.addresses), maxKnown)
	}
	for i, a := range k.addresses {
		if err := protocol.CheckAddress(a); err != nil {
			return k, fmt.Errorf("line %d: %.80q: %w", i+4, a, err)
		}
	}
	return k, nil
}

// readKnown reads a folder's file; a folder without one knows nobody.
func (f *folder) readKnown() (k known, err error) {
	file, err := os.Open(f.path(knownName))
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	if err != nil {
		return k, err
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, maxKnownFile+1))
	if err == nil && len(b) > maxKnownFile {
		err = fmt.Errorf("the file is larger than %d bytes", maxKnownFile)
	}
	if err != nil {
		return k, err
	}
	return parseKnown(string(b))
}

// remember has the joiner try the coordinators that a folder knows, after its own,
// and keep those that it learns of there. A file that cannot be read is passed over.
func (j *joiner) remember(f *folder) {
	j.folder = f
	k, err := f.readKnown()
	if err != nil {
		j.log.Warn("the saved list of coordinators cannot be read; the worker knows only the coordinators of --join", "file", f.path(knownName), "error", err)
		return
	}
	j.last = k
	if len(k.addresses) > 0 && k.join != j.joined {
		j.log.Info("--join has changed, so the saved list of coordinators is not used", "before", k.join, "cluster", k.cluster)
		return
	}
	for _, a := range k.addresses {
		if slices.Contains(j.addresses, a) {
			continue
		}
		j.addresses = append(j.addresses, a)
		j.of[a] = k.cluster
	}
}

// keep writes down the coordinators of the cluster that has answered, where they
// have changed. One that hears no leader may name those of long ago, so it counts only
// where none is known.
func (j *joiner) keep(c *protocol.Cluster) {
	k := known{cluster: c.ID, join: j.joined}
	for _, m := range c.Coordinators {
		if protocol.CheckAddress(m.HTTP) == nil && len(k.addresses) < maxKnown {
			k.addresses = append(k.addresses, m.HTTP)
		}
	}
	same := k.cluster == j.last.cluster && k.join == j.last.join && slices.Equal(k.addresses, j.last.addresses)
	old := c.Leader == "" && k.cluster == j.last.cluster && k.join == j.last.join
	if j.folder == nil || len(k.addresses) == 0 || same || old || protocol.CheckID(k.cluster) != nil {
		return
	}
	if err := j.folder.write(knownName, k.encode()); err != nil {
		j.log.Warn("the list of coordinators could not be saved", "error", err)
		return
	}
	j.last = k
}
