package store

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/hashicorp/raft"
)

// Server is one voter or nonvoter of Raft: a coordinator and the folder that it has.
// Raft's server ID is both, so a coordinator whose folder was emptied is another server.
type Server struct {
	ID        string `json:"id"`        // of the coordinator
	Directory string `json:"directory"` // the random id of its folder
	RaftAddr  string `json:"raft"`      // host:port, where it was when it became a member
}

// raftID returns the ID that Raft knows the server by.
func (s Server) raftID() raft.ServerID { return raft.ServerID(s.ID + "." + s.Directory) }

// address returns the address that Raft dials. It names the server, so that the stream
// layer knows which server must answer there.
func (s Server) address() raft.ServerAddress {
	return raft.ServerAddress(string(s.raftID()) + "@" + s.RaftAddr)
}

// parseServer splits a server ID and an address of Raft.
func parseServer(id raft.ServerID, address raft.ServerAddress) Server {
	s := Server{ID: string(id), RaftAddr: string(address)}
	if at := strings.IndexByte(s.RaftAddr, '@'); at >= 0 {
		s.RaftAddr = s.RaftAddr[at+1:]
	}
	if dot := strings.LastIndexByte(s.ID, '.'); dot >= 0 {
		s.ID, s.Directory = s.ID[:dot], s.ID[dot+1:]
	}
	return s
}

// Identity is what a folder says of its node. It has no cluster until the node begins
// one or belongs to one; from then on it never changes.
type Identity struct {
	ID        string `json:"id"`
	Directory string `json:"directory"`
	Cluster   string `json:"cluster,omitempty"`
	// Founders are the voters that the cluster began with, by ID; empty if the node was
	// added to a cluster that ran already.
	Founders []Server `json:"founders,omitempty"`
	// Seeded is true if the folder was restored from a backup: the cluster begins with
	// that state.
	Seeded bool `json:"seeded,omitempty"`
}

// settled reports whether it is decided how the node begins. A restored folder has the
// name of its cluster before.
func (i *Identity) settled() bool { return i.Cluster != "" && (!i.Seeded || len(i.Founders) > 0) }

// server returns the node as a server of Raft.
func (i *Identity) server() Server { return Server{ID: i.ID, Directory: i.Directory} }

// NewID draws an identifier for a folder or a cluster: 48 random bits in hexadecimal.
func NewID() string {
	var b [6]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// folderFormat is the version of the folder's layout.
const folderFormat = 5

// The two copies of the file that says what a folder is. The first line names the format and
// the node, and stays as it is in every format; the second is the identity after its checksum.
const (
	formatName = "FORMAT"
	formatCopy = "FORMAT.copy"
)

// formatLine matches the first line of a FORMAT file of any version and node.
var formatLine = regexp.MustCompile(`^coppice raft folder, format ([0-9]+), node (.+)$`)

// maxFormat bounds a FORMAT file, in bytes: seven founders at most.
const maxFormat = 64 << 10

// encode returns a FORMAT file.
func (i *Identity) encode() string {
	b, err := json.Marshal(i)
	if err != nil {
		panic(err) // strings and a bool
	}
	return fmt.Sprintf("coppice raft folder, format %d, node %s\n%s %s\n", folderFormat, i.ID, checksum(string(b)), b)
}

// parseIdentity reads a FORMAT file. The error wraps ErrFolder if the file is of another
// version or of another node.
func parseIdentity(b []byte, id string) (i Identity, err error) {
	first, rest, _ := strings.Cut(string(b), "\n")
	switch m := formatLine.FindStringSubmatch(first); {
	case m == nil:
		return i, fmt.Errorf("the first line of the file is not valid: %.80q", first)
	case m[1] != fmt.Sprint(folderFormat):
		return i, fmt.Errorf("%w: the folder has format %s, but this version reads format %d: use the version that wrote the folder, or start with an empty folder and import the datasets again",
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

// readIdentity reads the identity of node id from a folder. stale is true if a copy has to be
// written again. The error is fs.ErrNotExist if there is neither copy, and wraps ErrCorrupt
// if neither can be read.
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
	for _, err := range errs { // of another node or version, or not to be read just now: then nothing is known to be damaged
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
